"""The sketch: it costs what it says, goes on after a cut, and its samples look like the classes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from stillroom.data import digits
from stillroom.errors import BadInput, NotSanitised
from stillroom.gate import Budget, Gate, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.ledger import draws, verify
from stillroom.private import sketch_records
from stillroom.recipe.common import FeaturesSection
from stillroom.sources import sketch as source
from stillroom.sources.sketch import SHARES, SketchSection
from stillroom.vocabulary import RECORD, Sanitised, Sealed, Unit

SHAPE, FULL_SCALE = (8, 8), 16.0
SMALL = {"mu": 3, "directions": 8, "radius": 6, "residual": 4}


@pytest.fixture(scope="module")
def data():
    return digits()


class NoNoise:
    """A passage that says what it was given."""

    def __init__(self, name, mechanism):
        self.name, self.mechanism, self.count, self.left, self.given = name, mechanism, 1, 1, []

    def ahead(self, rows):
        return self.left

    def answer(self, question, ask):
        bounded = ask()
        self.mechanism.check(bounded.open_bounded())
        assert self.mechanism.sensitivity.covers(bounded.sensitivity)
        assert bounded.sensitivity.covers(self.mechanism.sensitivity)  # no noise is wasted
        self.left, self.given = 0, [Sanitised(bounded.open_bounded(), ())]
        return self.given[0]


def correlations(mixture, data):
    """Of each class: its mean sample with its true mean."""
    pictures, classes = mixture.sample(1, 4000)
    return [
        np.corrcoef(
            pictures[classes == c].mean(axis=0).ravel(), data.x[data.y == c].mean(axis=0).ravel()
        )[0, 1]
        for c in range(10)
    ]


def requests(sketch, classes=10, shape=SHAPE):
    """Mechanisms by name; a sketch's noise is the recipe's own, whatever scale is sought."""
    asked = sketch.requests(shape, classes)
    assert all((request.count, request.sought) == (1, False) for request in asked)
    return {request.name: request.at(Fraction(1)) for request in asked}


def lines(sketch):
    return [line for one in requests(sketch, shape=(28, 28)).values() for line in one.lines(1)]


def records_of(data, sketch):
    return sketch_records(
        Sealed(data), basis=sketch.basis(SHAPE), full_scale=FULL_SCALE, clip=sketch.clip
    )


def passages_without_noise(sketch):
    return {name: NoNoise(name, one) for name, one in requests(sketch).items()}


@pytest.mark.parametrize("lloyd", [1, 3, 7])
def test_the_shares_are_mu_squared_exactly(lloyd):
    sketch = SketchSection.of(mu="0.1", lloyd=lloyd)
    assert sum(SHARES) == 1
    assert sum(sketch.squared_mus()) == Fraction(1, 100)
    asked = requests(sketch, shape=(28, 28)).values()
    for mechanism, mu in zip(asked, sketch.squared_mus(), strict=True):
        # Never less noise than mu allows, and hardly more.
        assert mechanism.sigma**2 * mu >= mechanism.squared_norm
        assert mechanism.sigma**2 * mu <= mechanism.squared_norm * (1 + Fraction(1, 10**5))


def gaussian_epsilon(mu, delta):
    """The exact epsilon of one Gaussian release (Balle and Wang 2018, Theorem 8)."""
    return brentq(
        lambda e: ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu) - delta, 0, 5
    )


def test_mu_one_tenth_is_epsilon_0_34():
    exact = gaussian_epsilon(0.1, 1e-5)
    assert exact == pytest.approx(0.3407, abs=1e-4)
    sketch = SketchSection.of(mu=0.1)
    assert exact < price(lines(sketch), RECORD).epsilon(1e-5) < exact + 1e-5
    # The twin whose steps of Lloyd's do not share costs visibly more.
    cheap = lines(SketchSection.of(mu=0.1, lloyd=1))
    assert price([*cheap[:2], *[cheap[2]] * 3, cheap[3]], RECORD).epsilon(1e-5) > exact + 0.05


def test_a_person_is_not_hidden():
    with pytest.raises(BadInput, match="one record, not one person"):
        SketchSection.of(mu="1/10").requests((28, 28), 10, Unit.PERSON)


@pytest.mark.parametrize(
    "numbers",
    [
        {"mu": 0},
        {"mu": "much"},
        {"mu": float("nan")},
        {"coefficients": 0},
        {"directions": 0},
        {"centres": 0},
        {"lloyd": 0},
        {"radius": 0},
        {"residual": -1},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        SketchSection.of(**{**SMALL, **numbers})
    assert caught.value.what.startswith(f"{next(iter(numbers))}: ")


@pytest.mark.parametrize("full_scale", [0, float("inf")])
def test_a_white_that_is_none(full_scale):
    with pytest.raises(BadInput) as caught:
        FeaturesSection.of(full_scale=full_scale)
    assert caught.value.what.startswith("full_scale: ")


@pytest.mark.parametrize(
    ("numbers", "shape"), [({}, (1, 8)), ({}, (8, 8, 3)), ({"directions": 65}, SHAPE)]
)
def test_pictures_that_have_no_such_basis(numbers, shape):
    sketch = SketchSection.of(**{**SMALL, **numbers})
    for ask in (sketch.basis, lambda shape: sketch.requests(shape, 10)):
        with pytest.raises(BadInput, match="grey pictures") as caught:
            ask(shape)
        assert caught.value.where == "sketch"


def test_a_sketch_without_classes():
    with pytest.raises(BadInput, match="width"):
        requests(SketchSection.of(**SMALL), classes=0)


def test_a_grid_too_coarse_for_the_noise_is_refused(monkeypatch):
    monkeypatch.setattr(source, "GRID", 2)
    with pytest.raises(BadInput, match="finer grid"):
        requests(SketchSection.of(**{**SMALL, "mu": 50}))


def test_a_grid_of_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(source, "GRID", 0)
    with pytest.raises(BadInput, match="grid"):
        requests(SketchSection.of(**SMALL))


def test_the_requests_are_the_records_own_bounds(data):
    """Without noise: every request has the width and the sensitivity of what is released."""
    sketch = SketchSection.of(**SMALL)
    passages = passages_without_noise(sketch)
    mixture = sketch.draw(passages, records_of(data, sketch))
    assert all(passage.given for passage in passages.values())
    assert min(correlations(mixture, data)) > 0.95
    assert mixture.weights.sum() == pytest.approx(len(data))


def test_digits_through_the_gate(data, tmp_path):
    sketch = SketchSection.of(**SMALL)
    records = records_of(data, sketch)
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=data.ids, purpose="benchmark")
    ledger.set_budget(Budget(30.0, 1e-5), reason="a test")
    gate = Gate(ledger, ids=data.ids)
    wishes = {name: (mechanism, 1) for name, mechanism in requests(sketch).items()}
    passages = gate.reserve_all(wishes, recipe="this run")
    names = list(passages)

    # A cut after the second release; what was drawn is read again, the rest is drawn once.
    class Cut:
        mechanism = passages[names[2]].mechanism

        def ahead(self, rows):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sketch.draw({**passages, **dict.fromkeys(names[2:], Cut())}, records)
    passages = Gate(Ledger.open(ledger.path), ids=data.ids).reopen("this run")
    assert list(passages) == names
    assert [passage.left for passage in passages.values()] == [0, 0, 1, 1, 1, 1]
    early = [answers_of(passages[name])[0] for name in names[:2]]
    mixture = sketch.draw(passages, records)
    assert min(correlations(mixture, data)) > 0.9
    for name, before in zip(names, early, strict=False):
        assert np.array_equal(answers_of(passages[name])[0], before)

    # The block is used up: drawing again reads it and gives the same pictures.
    block = passages[names[0]].block
    passages = Gate(Ledger.open(ledger.path), ids=data.ids).reopen("this run")
    nobody = records_of(data.select(np.arange(0)), sketch)
    again = sketch.draw(passages, nobody)
    assert np.array_equal(again.sample(2, 50)[0], mixture.sample(2, 50)[0])
    kinds = [row.kind for row in ledger.store.rows("block = ?", (block,))]
    assert kinds == ["draw", "commit"] * 6
    verify(ledger)


def answers_of(passage):
    """What a passage has said so far, as the ledger keeps it."""
    store = passage._ledger.store
    return [
        draws.answers(store, one.draw)
        for one in draws.committed(store, passage.block, passage._place)
    ]


def test_a_lost_answer_is_not_drawn_again(data):
    sketch = SketchSection.of(**SMALL)
    passages = passages_without_noise(sketch)
    list(passages.values())[3].left = 0
    with pytest.raises(BadInput, match=r"incomplete.*lost.*new run"):
        sketch.draw(passages, records_of(data, sketch))
    assert [bool(passage.given) for passage in passages.values()] == [True] * 3 + [False] * 3


def test_other_passages_than_the_sketch_needs(data):
    """They are found by name before anything is drawn."""
    sketch = SketchSection.of(**SMALL)
    passages = passages_without_noise(sketch)
    last = passages.pop("sketch: cluster moments")
    with pytest.raises(KeyError, match="cluster moments"):
        sketch.draw({**passages, "sketch: more": last}, records_of(data, sketch))
    assert not any(passage.given for passage in passages.values())


def test_records_with_a_wider_clip_do_not_pass(data, tmp_path):
    """The gate compares what was paid for with what the records can do."""
    sketch, wider = SketchSection.of(**SMALL), SketchSection.of(**{**SMALL, "radius": 7})
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=data.ids, purpose="benchmark")
    ledger.set_budget(Budget(30.0, 1e-5), reason="a test")
    wishes = {name: (mechanism, 1) for name, mechanism in requests(sketch).items()}
    passages = Gate(ledger, ids=data.ids).reserve_all(wishes)
    with pytest.raises(NotSanitised, match="further"):
        sketch.draw(passages, records_of(data, wider))
