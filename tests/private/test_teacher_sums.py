"""Bounded sums: every teacher's term is exact, within its set, and its own."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from stillroom.errors import BadInput, NotSanitised
from stillroom.gate import Budget, Gate, GaussianSum, Ledger, NoisyVotes
from stillroom.gate.accounting import price
from stillroom.gate.events import GaussianEvent
from stillroom.private import teacher_sums
from stillroom.private.quantise import softmax
from stillroom.private.teacher_sums import TeacherSums
from stillroom.vocabulary import RECORD, Norm, Pair, Sensitivity, Unit

WILD = [0.0, -0.0, 1.0, -3.5, 1e-300, 88.0, 1e30, -1e308, 1e308, np.inf, -np.inf, np.nan]


class Given(TeacherSums):
    """Teachers that say what they were told, some at a time."""

    def __init__(self, scores, default_class=0, unit=Unit.RECORD):
        self.scores = np.asarray(scores, dtype=np.float64)  # query, teacher, class
        self.classes, self.default_class, self.unit = self.scores.shape[2], default_class, unit

    def _scores(self, queries):
        for first in range(0, self.scores.shape[1], 3):
            yield self.scores[:, first : first + 3].copy()


def scores_of(seed, queries=6, teachers=7, classes=4, wild=True):
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=5, size=(queries, teachers, classes))
    if wild:
        odd = rng.random(scores.shape) < 0.2
        scores[odd] = rng.choice(WILD, size=int(odd.sum()))
    return scores


def asked(scores, how):
    teachers, queries = Given(scores), np.zeros((scores.shape[0], 2))
    if how == "votes":
        return teachers.votes(queries)
    if how == "soft":
        return teachers.soft_votes(queries, grid=1000, temperature=0.7)
    return teachers.group_means(queries, np.arange(len(queries)) % 3 - 1, grid=1000)


HOW = ["votes", "soft", "means"]


def farthest(how, seed):
    """How far one teacher's change moves a row, at most, as a share of what the answer allows."""
    scores = scores_of(seed)
    other = scores.copy()
    other[:, 4] = scores_of(seed + 1)[:, 4]
    answer = asked(scores, how)
    moved = answer.open_bounded() - asked(other, how).open_bounded()
    (bound,) = set(answer.sensitivity.bounds.values())
    if answer.sensitivity.norm is Norm.UNIT_STEPS:
        assert np.abs(moved).max() <= 1
        return (moved != 0).sum(axis=1).max() / bound
    return (moved.astype(object) ** 2).sum(axis=1).max() / bound


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(HOW))
def test_one_teacher_moves_a_row_within_its_sensitivity(seed, how):
    assert farthest(how, seed) <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(HOW))
def test_the_sum_is_the_sum_of_single_teachers(seed, how):
    scores = scores_of(seed)
    alone = [asked(scores[:, [j]], how).open_bounded() for j in range(scores.shape[1])]
    assert np.array_equal(asked(scores, how).open_bounded(), sum(alone))
    most = 1 if how == "votes" else 1000
    for term in alone:
        assert term.min() >= 0
        assert term.sum(axis=1).max() <= most


def test_the_bound_is_reached_by_opposite_teachers():
    certain = np.array([[[100.0, 0.0]]]), np.array([[[0.0, 100.0]]])
    one, other = (asked(s, "soft").open_bounded() for s in certain)
    assert int(((one - other) ** 2).sum()) == pytest.approx(2 * 1000**2, rel=0.01)


def test_rounding_up_is_caught(monkeypatch):
    """The twin rounds every share up: its rows then add up to more than one vote."""

    def rounded(probabilities, grid):
        return np.ceil(probabilities * grid).astype(np.int64)

    monkeypatch.setattr(teacher_sums, "on_grid", rounded)
    sums = asked(scores_of(3)[:, :1], "soft").open_bounded().sum(axis=1)
    assert sums.max() > 1000


def test_scores_that_are_not_normalised_are_caught(monkeypatch):
    monkeypatch.setattr(teacher_sums, "softmax", lambda scores, temperature: np.abs(scores))
    monkeypatch.setattr(
        teacher_sums, "on_grid", lambda shares, grid: np.floor(shares * grid).astype(np.int64)
    )
    tame = scores_of(5, wild=False)
    other = tame.copy()
    other[:, 4] = 0
    moved = asked(tame, "soft").open_bounded() - asked(other, "soft").open_bounded()
    assert (moved**2).sum(axis=1).max() > 2 * 1000**2


def test_soft_votes_are_the_softmax():
    scores = scores_of(8, wild=False)
    expected = np.exp(scores / 0.7)
    expected /= expected.sum(axis=2, keepdims=True)
    got = asked(scores, "soft").open_bounded() / 1000
    assert got == pytest.approx(expected.sum(axis=1), abs=7 * 0.001 + 1e-9)
    means = np.stack([expected[1::3].mean(axis=0), expected[2::3].mean(axis=0)]).sum(axis=1)
    got = Given(scores).group_means(np.zeros((6, 1)), np.arange(6) % 3 - 1, 1000, 0.7)
    assert got.open_bounded() / 1000 == pytest.approx(means, abs=7 * 0.001 + 1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.5])
def test_what_says_nothing_counts_as_the_public_default(value):
    """NaN, infinity, and a teacher whose scores are all equal."""
    silent = Given(np.full((2, 1, 4), value), default_class=2)
    assert silent.votes(np.zeros((2, 1))).open_bounded().tolist() == [[0, 0, 1, 0]] * 2
    assert silent.soft_votes(np.zeros((2, 1)), 1001).open_bounded().tolist() == [[250] * 4] * 2
    means = silent.group_means(np.zeros((2, 1)), [0, 0], 1001)
    assert means.open_bounded().tolist() == [[250] * 4]


def test_answers_carry_their_sensitivity_for_every_unit_the_shards_prove():
    person = Given(scores_of(1), unit=Unit.PERSON)
    for answer in (
        person.soft_votes(np.zeros((6, 1)), 64),
        person.group_means(np.zeros((6, 1)), [0] * 6, 64),
    ):
        assert answer.sensitivity == Sensitivity.uniform(Norm.L2_SQUARED, 2 * 64**2, Unit.PERSON)
        assert Pair.parse("person/change") in answer.sensitivity.bounds
    assert person.votes(np.zeros((6, 1))).sensitivity == Sensitivity.uniform(
        Norm.UNIT_STEPS, 2, Unit.PERSON
    )


def test_the_price_of_soft_votes_is_that_of_votes():
    """250 teachers, 500 answers at sigma 40 votes: theory.md#rona-e says epsilon 3.34."""
    grid = 1024
    proven = Given(scores_of(1)).soft_votes(np.zeros((6, 1)), grid).sensitivity
    event = GaussianEvent(Fraction(40 * grid) ** 2, 10, proven)
    assert price([(event, 500)], RECORD).guarantee(1e-5).epsilon == pytest.approx(3.34, abs=0.02)


def test_votes_pass_the_gate_and_soft_votes_are_not_sold_as_a_sum_of_records(tmp_path):
    """A sum's price for one more record is that of the radius; a teacher moves by the diameter."""
    ledger = Ledger.create(tmp_path / "ledger.sqlite", ids=["a"], purpose="benchmark")
    ledger.set_budget(Budget(50.0, 1e-5), reason="a test")
    gate, teachers = Gate(ledger, ids=["a"]), Given(scores_of(1))
    votes = gate.reserve(NoisyVotes(teachers=7, classes=4, sigma=20), 6)
    assert drawn(votes, teachers.votes(np.zeros((6, 1)))).value.shape == (6, 4)
    total = gate.reserve(GaussianSum(Fraction(20 * 64), 4, squared_norm=2 * 64**2), 6)
    with pytest.raises(NotSanitised):
        drawn(total, teachers.soft_votes(np.zeros((6, 1)), 64))


def test_scores_of_many_teachers_are_never_there_at_once():
    class Many(Given):
        def _scores(self, queries):
            for first in range(40):
                yield np.random.default_rng(first).normal(size=(400, 25, 10))

    many = Many(np.zeros((1, 1, 10)))
    whole = 40 * 25 * 400 * 10 * 8
    tracemalloc.start()
    try:
        many.votes(np.zeros((400, 1)))
        many.soft_votes(np.zeros((400, 1)), 1000)
        assert tracemalloc.get_traced_memory()[1] < whole / 4
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, q: t.soft_votes(q, 0),
        lambda t, q: t.soft_votes(q, 2**50),
        lambda t, q: t.soft_votes(q, 2.5),
        lambda t, q: t.soft_votes(q, 10, temperature=0.0),
        lambda t, q: t.soft_votes(q, 10, temperature=np.nan),
        lambda t, q: t.group_means(q, [0, 0], 10),
        lambda t, q: t.group_means(q, [0, 0, 2, 2, 2, 2], 10),
        lambda t, q: t.group_means(q, [-1] * 6, 10),
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(BadInput):
        wrong(Given(scores_of(1)), np.zeros((6, 1)))


def test_softmax_of_finite_scores_is_finite():
    extreme = np.array([[[1e308, -1e308, 0.0]], [[-1e308, -1e308, -1e308]]])
    found = softmax(extreme, 1e-6)
    assert np.isfinite(found).all()
    assert found.sum(axis=2) == pytest.approx(1)
