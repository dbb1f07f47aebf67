"""Training: it learns the digits at epsilon 2, spends what it reserved, and nothing else."""

from __future__ import annotations

import shutil
from fractions import Fraction

import numpy as np
import pytest

from stillroom.data import Split, digits
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.features import edges
from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.gate.ledger import draws, verify
from stillroom.methods.registry import parse
from stillroom.private import LinearRecords
from stillroom.public import Descent
from stillroom.sources.training import TrainingSection, train_linear
from stillroom.vocabulary import RECORD, Sanitised

SIZE = 1440
"""Declared, not counted."""


@pytest.fixture
def split():
    return Split.by_fraction(digits(), key="direct", public=0, test="1/5")


def test_digits_at_epsilon_2(split, tmp_path):
    plan = TrainingSection.of(steps=60, rate=Fraction(1, 2), clip="1/2")
    records = LinearRecords(edges(split.sensitive.x), split.sensitive.y, classes=10)
    noise = smallest_sigma(
        lambda scale: plan.mechanism(records.width, scale).lines(60), 2, 1e-5, RECORD
    )
    mechanism = plan.mechanism(records.width, noise)
    assert 1.999 < price(mechanism.lines(60), RECORD).epsilon(1e-5) <= 2
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=split.sensitive.ids)
    ledger.set_budget(Budget(2.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=split.sensitive.ids)
    way = gate.reserve(mechanism, 60, recipe="this run")
    steps = []
    weights = train_linear(way, records, plan, SIZE, on_step=steps.append).result()
    accuracy = ((edges(split.test.x) @ weights.T).argmax(axis=1) == split.test.y).mean()
    # Five trainings gave 94.6 % on average and 0.8 points of spread.
    assert accuracy >= 0.85
    assert steps == list(range(1, 61))
    kinds = [row.kind for row in ledger.store.rows("block = ?", (way.block,))]
    assert kinds == ["draw", "commit"] * 60
    verify(ledger)
    # The block is used up: training again replays it and draws nothing.
    (way,) = gate.reopen("this run").values()
    assert np.array_equal(train_linear(way, records, plan, SIZE).result(), weights)
    assert len(list(ledger.store.rows("kind = 'draw'"))) == 60


def test_a_cut_off_run_goes_on(split, tmp_path):
    plan = TrainingSection.of(steps=12, rate=Fraction(1, 2), clip="1/2")
    records = LinearRecords(edges(split.sensitive.x), split.sensitive.y, classes=10)
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=split.sensitive.ids)
    ledger.set_budget(Budget(2.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=split.sensitive.ids)
    mechanism = plan.mechanism(records.width, 20)
    assert gate.reopen("this run") is None
    way = gate.reserve(mechanism, 12, recipe="this run")

    def cut(step):
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_linear(way, records, plan, SIZE, on_step=cut)
    way.poisson()  # a step that is lost
    again = Gate(Ledger.open(ledger.path), ids=split.sensitive.ids)
    assert again.reopen("another run") is None
    (way,) = again.reopen("this run").values()
    assert (way.mechanism, way.left) == (mechanism, 6)
    steps = []
    train_linear(way, records, plan, SIZE, on_step=steps.append)
    assert steps == [7, 8, 9, 10, 11, 12]
    assert len(draws.committed(ledger.store, way.block, 0)) == 11
    verify(again.ledger)


def test_an_old_copy_cannot_draw_a_block_again(split, tmp_path):
    plan = TrainingSection.of(steps=3, rate=Fraction(1), clip="1/2")
    records = LinearRecords(edges(split.sensitive.x), split.sensitive.y, classes=10)
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=split.sensitive.ids)
    ledger.set_budget(Budget(2.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=split.sensitive.ids)
    way = gate.reserve(plan.mechanism(records.width, 20), 3, recipe="this run")
    ledger.close()
    shutil.copy(ledger.path, tmp_path / "copy")
    train_linear(way, records, plan, SIZE)
    ledger.close()
    shutil.copy(tmp_path / "copy", ledger.path)
    with pytest.raises(DoesNotVerify, match="seen before"):
        Ledger.open(ledger.path)


def test_full_batch_needs_no_sample(split, tmp_path):
    plan = TrainingSection.of(steps=5, rate=Fraction(1), clip="1/2")
    records = LinearRecords(edges(split.sensitive.x), split.sensitive.y, classes=10)
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=split.sensitive.ids, purpose="benchmark")
    ledger.set_budget(Budget(2.0, 1e-5), reason="a test")
    way = Gate(ledger, ids=split.sensitive.ids).reserve(plan.mechanism(records.width, 20), 5)
    assert train_linear(way, records, plan, SIZE).result().any()


def test_the_step_does_not_know_the_real_size(split):
    """The divisor is the declared size: one record more or less changes the sum only."""
    plan = TrainingSection.of(steps=1, rate=1, clip="1/2", learning_rate=1.0)

    class NoNoise:
        count = left = 1
        replaying = False

        def ahead(self, rows):
            return self.left

        def answer(self, question, ask):
            self.left = 0
            return Sanitised(ask().open_bounded(), ())

    rows, labels = edges(split.sensitive.x), split.sensitive.y
    whole = train_linear(NoNoise(), LinearRecords(rows, labels, 10), plan, 1000).result()
    half = train_linear(NoNoise(), LinearRecords(rows[::2], labels[::2], 10), plan, 1000).result()
    other = train_linear(
        NoNoise(), LinearRecords(rows[1::2], labels[1::2], 10), plan, 1000
    ).result()
    assert whole == pytest.approx(half + other, abs=1e-5)


@pytest.mark.parametrize(
    "numbers",
    [
        {"steps": 0},
        {"rate": 0},
        {"rate": 2},
        {"learning_rate": 0},
        {"learning_rate": float("inf")},
        {"momentum": 1},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        TrainingSection.of(**{"steps": 60, "rate": 1, "clip": "1/2", **numbers})
    assert caught.value.what.startswith(f"{next(iter(numbers))}: ")
    assert caught.value.where == "TrainingSection"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("declared_size = 9", "declared_size = 0", "data.declared_size: "),
        ("steps = 60", "steps = 60\naverage_from = 60", "training.average_from: "),
    ],
)
def test_numbers_that_the_whole_recipe_decides(old, new, where):
    text = (
        "[data]\nsource = 'digits'\ndeclared_size = 9\n[training]\nsteps = 60\nrate = 1\n"
        "[privacy]\nepsilon = 2\n"
    )
    parse(text)
    with pytest.raises(BadInput) as caught:
        parse(text.replace(old, new))
    assert caught.value.what.startswith(where)


def test_averaging_is_of_the_last_weights():
    layer = Descent(
        np.zeros((1, 1), np.float32), unit=1.0, divisor=1.0, learning_rate=1.0, average_from=1
    )
    for _ in range(3):
        layer.step(Sanitised(np.array([[1]]), ()))
    assert layer.weights.tolist() == [[-3.0]]
    assert layer.result().tolist() == [[-2.5]]
