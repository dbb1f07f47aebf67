"""What RONA-E pays: the noise of its plan, and plans that do not fit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from methods.rona_ensemble.ensembles import (
    GATED,
    HINTED,
    NOISE,
    PLAN,
    TEACHERS,
    NoNoise,
    cost,
    multiplier,
    paid,
)
from stillroom.errors import BadInput
from stillroom.gate import GaussianAnswers
from stillroom.methods.rona.answers import Confident, EnsembleAnswers
from stillroom.methods.rona.ensemble import EnsembleSource
from stillroom.private import EnsemblePlan
from stillroom.vocabulary import Unit

# -- the price ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "epsilon"),
    [
        (HINTED, 1.0),
        pytest.param(PLAN, 8.0, marks=pytest.mark.slow),
        pytest.param(HINTED, 8.0, marks=pytest.mark.slow),
        pytest.param(GATED, 1.0, marks=pytest.mark.slow),
        pytest.param(GATED, 8.0, marks=pytest.mark.slow),
    ],
)
def test_the_price_fits_and_is_used(plan, epsilon):
    noise = multiplier(plan, epsilon)
    assert 0.9 * epsilon <= cost(plan.wishes(noise)) <= epsilon


def test_the_price_is_that_of_the_mathematics():
    """theory.md#rona-e: Q_h 200, sigma_h 60, Q_d 1800, sigma_d 60 cost epsilon 4.92."""
    teachers = EnsemblePlan(count=250, key="k", shard_cap=10)
    squares = Fraction(4 * 200, 60**2), Fraction(2 * 1800, 60**2)
    share = squares[0] / sum(squares)
    plan = EnsembleAnswers(teachers, 10, 200, 8, 1800, share)
    noise = Fraction(float(sum(squares)) ** -0.5)
    (votes, _), (hints, _) = plan.wishes(noise)
    assert float(votes.sigma) == pytest.approx(60 * 1024, rel=1e-6)
    assert float(hints.sigma) == pytest.approx(60 * 1024, rel=1e-6)
    assert cost(plan.wishes(noise)) == pytest.approx(4.92, abs=0.005)


@pytest.mark.parametrize("plan", [HINTED, GATED])
def test_half_the_noise_is_caught(plan):
    """Epsilon 1 is what noise of 3.731 sensitivities costs (theory.md#gaussian-noise)."""
    noise = Fraction(374, 100)
    assert 0.95 < cost(plan.wishes(noise)) <= 1
    halves = [(replace(m, sigma=m.sigma / 2), n) for m, n in plan.wishes(noise)]
    assert cost(halves) > 1.5


@pytest.mark.parametrize("noise", [Fraction(1, 3), Fraction(3731, 1000), Fraction(40)])
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(2, 7)])
def test_mu_squared_is_split_exactly_and_noise_only_rounded_up(noise, share):
    plan = replace(HINTED, hint_share=share)
    for_votes, for_hints = plan.squared_mus(noise)
    assert for_hints / for_votes == share / (1 - share)
    assert for_votes + for_hints == 1 / noise**2
    for (mechanism, count), planned in zip(plan.wishes(noise), (for_votes, for_hints), strict=True):
        told = count * mechanism.squared_distance / (mechanism.sigma**2 - 4)
        assert planned * Fraction(99999, 100000) <= told <= planned
    assert [m.width for m, _ in plan.wishes(noise)] == [10, 10]
    assert [m.squared_distance for m, _ in plan.wishes(noise)] == [2 * 1024**2, 4 * 1024**2]


def test_gating_pays_for_every_test_and_the_most_answers():
    noise = Fraction(2)
    ((mechanism, count),) = GATED.wishes(noise)
    assert (count, mechanism.most_answers, mechanism.threshold) == (60, 55, 27)
    assert mechanism.threshold_sigma == 3 * mechanism.sigma
    told = 60 / mechanism.threshold_sigma**2 + 55 * 2 / mechanism.sigma**2
    assert Fraction(999, 1000) / noise**2 <= told <= 1 / noise**2


# -- what does not fit ----------------------------------------------------------------------


def test_ways_and_teachers_must_be_those_of_the_plan(split, ensemble, ledger):
    ways = paid(ledger, split, PLAN.wishes(NOISE))
    coarse = GaussianAnswers(100, 10, 2 * 100**2)
    for plan, given in (
        (HINTED, ways),
        (GATED, ways),
        (replace(PLAN, grid=512), ways),
        (replace(PLAN, classes=9), ways),
        (replace(PLAN, teachers=replace(TEACHERS, count=31)), ways),
        (PLAN, [NoNoise(coarse, 60)]),
    ):
        with pytest.raises(BadInput, match="not those of the plan"):
            EnsembleSource(plan, ensemble, given)


def test_persons_are_protected_where_the_plan_says_so():
    ((mechanism, _),) = replace(PLAN, unit=Unit.PERSON).wishes(Fraction(1))
    assert mechanism.unit is Unit.PERSON
    ((mechanism, _),) = replace(GATED, unit=Unit.PERSON).wishes(Fraction(1))
    assert mechanism.unit is Unit.PERSON


@pytest.mark.parametrize(
    "numbers",
    [
        {"classes": 1},
        {"hints": -1},
        {"hint_width": 0},
        {"votes": 0},
        {"hint_share": 0},
        {"hint_share": 1},
        {"temperature": 0.0},
        {"confident": Confident(Fraction(0), Fraction(1), 5)},
        {"confident": Confident(Fraction(1, 2), Fraction(0), 5)},
        {"confident": Confident(Fraction(1, 2), Fraction(1), 61)},
        {"grid": 0},
        {"hint_steps": 2**25},
        {"chunk": 0},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        replace(HINTED, **numbers)
    assert caught.value.where == next(iter(numbers))
    with pytest.raises(BadInput):
        replace(PLAN, hint_share=Fraction(1, 2))
