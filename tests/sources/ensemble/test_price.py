"""What an ensemble pays: the noise of its section, and sections that do not fit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sources.ensemble.ensembles import (
    GATED,
    HINTED,
    NOISE,
    PLAN,
    NoNoise,
    Source,
    changed,
    cost,
    multiplier,
    paid,
    wishes,
)
from stillroom.errors import BadInput, NotSanitised
from stillroom.gate import GaussianAnswers
from stillroom.sources.teachers import VOTES, TeachersSection
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
    assert 0.9 * epsilon <= cost(wishes(plan, noise)) <= epsilon


def test_the_price_is_that_of_the_mathematics():
    """theory.md#rona-e: Q_h 200, sigma_h 60, Q_d 1800, sigma_d 60 cost epsilon 4.92."""
    squares = Fraction(4 * 200, 60**2), Fraction(2 * 1800, 60**2)
    share = squares[0] / sum(squares)
    plan = TeachersSection.of(count=250, shard_cap=10, hints=200, votes=1800, hint_share=share)
    noise = Fraction(float(sum(squares)) ** -0.5)
    wanted = wishes(plan, noise, width=8)
    (votes, _), (hints, _) = wanted.values()
    assert float(votes.sigma) == pytest.approx(60 * 1024, rel=1e-6)
    assert float(hints.sigma) == pytest.approx(60 * 1024, rel=1e-6)
    assert cost(wanted) == pytest.approx(4.92, abs=0.005)


@pytest.mark.parametrize("plan", [HINTED, GATED])
def test_half_the_noise_is_caught(plan):
    """Epsilon 1 is what noise of 3.731 sensitivities costs (theory.md#gaussian-noise)."""
    wanted = wishes(plan, Fraction(374, 100))
    assert 0.95 < cost(wanted) <= 1
    halves = {name: (replace(m, sigma=m.sigma / 2), n) for name, (m, n) in wanted.items()}
    assert cost(halves) > 1.5


@pytest.mark.parametrize("noise", [Fraction(1, 3), Fraction(3731, 1000), Fraction(40)])
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(2, 7)])
def test_mu_squared_is_split_exactly_and_noise_only_rounded_up(noise, share):
    plan = changed(HINTED, hint_share=share)
    for_votes, for_hints = plan.squared_mus(noise)
    assert for_hints / for_votes == share / (1 - share)
    assert for_votes + for_hints == 1 / noise**2
    wanted = list(wishes(plan, noise).values())
    for (mechanism, count), planned in zip(wanted, (for_votes, for_hints), strict=True):
        told = count * mechanism.squared_distance / (mechanism.sigma**2 - 4)
        assert planned * Fraction(99999, 100000) <= told <= planned
    assert [m.width for m, _ in wanted] == [10, 10]
    assert [m.squared_distance for m, _ in wanted] == [2 * 1024**2, 4 * 1024**2]


def test_gating_pays_for_every_test_and_the_most_answers():
    noise = Fraction(2)
    ((mechanism, count),) = wishes(GATED, noise).values()
    assert (count, mechanism.most_answers, mechanism.threshold) == (60, 55, 27)
    assert mechanism.threshold_sigma == 3 * mechanism.sigma
    told = 60 / mechanism.threshold_sigma**2 + 55 * 2 / mechanism.sigma**2
    assert Fraction(999, 1000) / noise**2 <= told <= 1 / noise**2


# -- what does not fit ----------------------------------------------------------------------


def test_passages_and_teachers_must_be_those_of_the_section(split, ensemble, ledger, x):
    passages = paid(ledger, split, wishes(PLAN, NOISE))
    nine = {name: NoNoise(*wish) for name, wish in wishes(PLAN, NOISE, classes=9).items()}
    more = {name: NoNoise(*wish) for name, wish in wishes(HINTED, NOISE).items()}
    for section, given in (
        (HINTED, passages),
        (PLAN, more),
        (GATED, passages),
        (PLAN, nine),
        (changed(PLAN, count=31), passages),
    ):
        with pytest.raises(BadInput, match="not those of the section"):
            Source(section, ensemble, given, split)
    # Noise for coarser votes is refused by the gate itself, before anything is drawn.
    coarse = paid(ledger, split, {VOTES: (GaussianAnswers(5000, 10, 2 * 100**2), 60)})
    with pytest.raises(NotSanitised, match="further than"):
        Source(PLAN, ensemble, coarse, split).scores(x)
    assert coarse[VOTES].left == 60


def test_persons_are_protected_where_the_recipe_says_so():
    for section in (PLAN, GATED):
        ((mechanism, _),) = wishes(section, Fraction(1), unit=Unit.PERSON).values()
        assert mechanism.unit is Unit.PERSON


@pytest.mark.parametrize(
    "numbers",
    [
        {"hints": -1},
        {"votes": 0},
        {"hint_share": 0},
        {"hint_share": 1},
        {"temperature": 0.0},
        {"threshold": 0},
        {"threshold_noise": 0},
        {"count": 1},
        {"shard_cap": 0},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        changed(HINTED, **numbers)
    assert caught.value.what.startswith(f"{next(iter(numbers))}: ")


def test_more_answers_than_questions_do_not_fit():
    misfits = changed(GATED, votes=61).misfits(1000)
    assert [text for text, wrong in misfits.items() if wrong] == [
        "teachers.asked: fewer queries than teachers.votes answers"
    ]


def test_hints_without_numbers_have_no_price():
    with pytest.raises(BadInput):
        wishes(HINTED, NOISE, width=0)
