"""Noisy answers of an ensemble: what passes, what is refused, and what it costs."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from drawing import drawn
from stillroom.data import Split, digits
from stillroom.engine import Engine
from stillroom.errors import BadInput, NotSanitised
from stillroom.features import pixels
from stillroom.gate import Budget, Gate, GaussianAnswers, GaussianSum, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.ledger import verify
from stillroom.gate.mechanisms import mechanism_from_json
from stillroom.private import Ensemble, EnsemblePlan, Hints
from stillroom.vocabulary import RECORD, Bounded, Pair, Unit

GRID, STEPS = 1024, 512
SIGMA = 4 * GRID
SIMPLEX, BALL = 2 * GRID**2, (2 * STEPS) ** 2
SPLIT = Split.by_fraction(digits(), key="a test", public="1/10", test="1/10")
QUERIES, LABELS = SPLIT.test.x[:60], SPLIT.test.y[:60]


@pytest.fixture(scope="module")
def answers():
    """Each kind of answer of one small ensemble, with the squared diameter of its set."""
    plan = EnsemblePlan(count=20, key="a test", shard_cap=100)
    teachers = Ensemble.train(SPLIT.sensitive, None, plan, engine=Engine("serial"))
    basis = np.random.default_rng(0).normal(size=(65, 6))
    public = SPLIT.public.x[:80]
    hints, centre = Hints(public, pixels(public) @ basis), pixels(QUERIES) @ basis
    return {
        "soft votes": (teachers.soft_votes(QUERIES, GRID, temperature=0.2), SIMPLEX),
        "group means": (teachers.group_means(QUERIES, LABELS, GRID, temperature=0.2), SIMPLEX),
        "hints": (teachers.hint_residuals(QUERIES, centre, hints, "1/2", GRID), BALL),
    }


KINDS = ["soft votes", "group means", "hints"]


@pytest.fixture
def gate(tmp_path):
    ids = SPLIT.sensitive.ids
    ledger = Ledger.create(tmp_path / "ledger.sqlite", ids=ids, purpose="benchmark")
    ledger.set_budget(Budget(100.0, 1e-5), reason="a test")
    return Gate(ledger, ids=ids)


@pytest.mark.parametrize("kind", KINDS)
def test_an_ensembles_answers_pass_the_gate(kind, answers, gate):
    bounded, distance = answers[kind]
    rows, width = bounded.shape
    mechanism = GaussianAnswers(SIGMA, width, distance)
    way = gate.reserve(mechanism, rows)
    noisy = drawn(way, bounded)
    assert noisy.value.shape == (rows, width)
    assert (len(noisy.receipts), way.left) == (1, 0)
    noise = noisy.value - bounded.open_bounded()
    # A sum of squares of at least 100 draws is within these bounds but once in 10^7 times.
    assert 0.5 < (noise / SIGMA).std() < 1.6
    verify(gate.ledger)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_not_sold_as_a_sum_of_records(kind, answers, gate):
    """A sum's price for one more record is that of the radius; a teacher moves by the diameter."""
    bounded, distance = answers[kind]
    way = gate.reserve(GaussianSum(SIGMA, bounded.shape[1], distance), 1)
    with pytest.raises(NotSanitised):
        drawn(way, bounded)
    assert way.left == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_diameter_that_was_not_paid_for_is_refused(kind, answers, gate):
    bounded, distance = answers[kind]
    way = gate.reserve(GaussianAnswers(SIGMA, bounded.shape[1], distance - 1), len(LABELS))
    with pytest.raises(NotSanitised):
        drawn(way, bounded)
    assert way.left == len(LABELS)


def test_shards_of_records_do_not_hide_a_person(answers, gate):
    bounded, distance = answers["hints"]
    mechanism = GaussianAnswers(SIGMA, 6, distance, Unit.PERSON)
    assert Pair.parse("person/change") in mechanism.sensitivity.bounds
    with pytest.raises(NotSanitised):
        drawn(gate.reserve(mechanism, len(LABELS)), bounded)


def test_rows_of_another_width_are_refused(answers, gate):
    bounded, distance = answers["hints"]
    with pytest.raises(BadInput, match="rows of 7"):
        drawn(gate.reserve(GaussianAnswers(SIGMA, 7, distance), len(LABELS)), bounded)


def test_a_question_asked_again_is_free(answers, gate):
    bounded, distance = answers["soft votes"]
    way = gate.reserve(GaussianAnswers(SIGMA, 10, distance), len(LABELS))
    first = way.answer(QUERIES.tobytes(), lambda: bounded)
    again = way.answer(QUERIES.tobytes(), pytest.fail)
    assert np.array_equal(first.value, again.value)
    assert first.receipts == again.receipts


def test_soft_votes_cost_what_votes_cost():
    """500 answers at sigma 40 votes: epsilon 3.34 (theory.md#rona-e); hints cost twice as much."""
    soft = GaussianAnswers(40 * GRID, 10, SIMPLEX).lines(500)
    hint = GaussianAnswers(40 * GRID, 10, (2 * GRID) ** 2).lines(250)
    for pair in (RECORD, Pair.parse("record/change"), Pair.parse("entity/change")):
        assert price(soft, pair).epsilon(1e-5) == pytest.approx(3.34, abs=0.02)
        assert price(hint, pair).epsilon(1e-5) == pytest.approx(price(soft, pair).epsilon(1e-5))
    assert price(soft, Pair.parse("person/change")).epsilon(1e-5) == float("inf")


def test_a_description_is_read_again():
    mechanism = GaussianAnswers(Fraction("81.92"), 10, SIMPLEX, Unit.PERSON)
    again = mechanism_from_json(json.loads(json.dumps(mechanism.describe())))
    assert again == mechanism
    assert again.lines(3) == mechanism.lines(3)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"sigma": 2}, {"sigma": 0}, {"sigma": float("nan")}),
        *({"width": 0}, {"squared_distance": 0}, {"squared_distance": 2.5}),
    ],
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput):
        GaussianAnswers(**{"sigma": 9, "width": 3, "squared_distance": 2, **wrong})


def test_many_rows_are_one_draw(gate):
    mechanism = GaussianAnswers(9, 2, 50)
    way = gate.reserve(mechanism, 5)
    drawn(way, Bounded(np.zeros((3, 2), dtype=np.int64), mechanism.sensitivity))
    assert way.left == 2
    draws = list(gate.ledger.store.rows("kind = 'draw'"))
    assert [row.body["count"] for row in draws] == [3]
