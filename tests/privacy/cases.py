"""Every mechanism with its law and its worst neighbours, worked out apart from the package."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from privacy.conformance import Case
from privacy.entity_cases import ENTITY_CASES
from privacy.laws import REACH, as_law, first_column, gaussian, joint, laplace
from stillroom.gate import (
    UNANSWERED,
    ConfidentVotes,
    ExponentialChoice,
    GaussianAnswers,
    GaussianSum,
    LaplaceCounts,
    NoisyArgmax,
    NoisyCounts,
    NoisyVotes,
    PrivateSelection,
    RandomisedResponse,
)
from stillroom.vocabulary import Pair, Relation, Unit

SIGMA = Fraction(5, 2)


def one_vote_moves(pair: Pair):
    s = float(SIGMA)
    return joint(gaussian(s, 1), gaussian(s, 0)), joint(gaussian(s, 0), gaussian(s, 1))


VOTES = np.array([[6, 3, 1]])


def votes() -> Case:
    mechanism = NoisyVotes(teachers=10, classes=3, sigma=SIGMA)
    return Case(mechanism, VOTES, first_column, as_law(gaussian(2.5), 6), one_vote_moves)


def argmax_law(counts: np.ndarray, sigma: float) -> np.ndarray:
    """P(each class has the most noisy votes, the first of equals), by summing the joint law."""
    pmfs = [gaussian(sigma, int(c)) for c in counts]
    whole = joint(*pmfs)
    place = np.indices(whole.shape)
    winner = place.argmax(axis=0)
    return np.array([whole[winner == k].sum() for k in range(len(counts))])


def argmax() -> Case:
    mechanism = NoisyArgmax(teachers=10, classes=3, sigma=SIGMA)
    law = dict(enumerate(argmax_law(VOTES[0], 2.5)))
    return Case(mechanism, VOTES, lambda answers: answers, law, one_vote_moves)


def confident() -> Case:
    mechanism = ConfidentVotes(
        teachers=10,
        classes=3,
        sigma=SIGMA,
        threshold=5,
        threshold_sigma=Fraction(3),
        most_answers=10**6,
    )
    passes = gaussian(3.0, 6)[REACH + 5 :].sum()
    law = {k: float(p * passes) for k, p in enumerate(argmax_law(VOTES[0], 2.5))}
    law[UNANSWERED] = float(1 - passes)

    def worlds(pair: Pair):
        one, other = one_vote_moves(pair)
        return joint(gaussian(3.0, 1), one), joint(gaussian(3.0, 0), other)

    return Case(mechanism, VOTES, lambda answers: answers, law, worlds)


def counts() -> Case:
    mechanism = NoisyCounts(sigma=SIGMA, width=2)

    def worlds(pair: Pair):
        if pair.relation is Relation.CHANGE:
            return one_vote_moves(pair)
        return gaussian(2.5, 1), gaussian(2.5, 0)

    return Case(mechanism, np.array([[4, 9]]), first_column, as_law(gaussian(2.5), 4), worlds)


def counts_of_persons() -> Case:
    """All three records of a person stand in one cell; changed, they leave it for another (K1b)."""
    sigma, most = 9.0, 3
    mechanism = NoisyCounts(sigma=Fraction(9), width=2, records=most, unit=Unit.PERSON)

    def worlds(pair: Pair):
        there, not_there = gaussian(sigma, most, 80), gaussian(sigma, 0, 80)
        if pair.relation is Relation.CHANGE:
            return joint(there, not_there), joint(not_there, there)
        return there, not_there

    return Case(
        mechanism, np.array([[4, 9]]), first_column, as_law(gaussian(sigma, 0, 80), 4), worlds
    )


def laplace_counts() -> Case:
    mechanism = LaplaceCounts(scale=Fraction(3), width=1, l1=2)

    def worlds(pair: Pair):
        return laplace(3.0, 4 if pair.relation is Relation.CHANGE else 2), laplace(3.0)

    return Case(mechanism, np.array([[5]]), first_column, as_law(laplace(3.0), 5), worlds)


def gaussian_sum(rate: Fraction) -> Case:
    radius, sigma, q = 6, 8.0, float(rate)
    mechanism = GaussianSum(Fraction(8), width=1, squared_norm=radius**2, rate=rate)

    def term(centre: int) -> np.ndarray:
        return (1 - q) * gaussian(sigma, 0, 120) + q * gaussian(sigma, centre, 120)

    def worlds(pair: Pair):
        other = term(-radius) if pair.relation is Relation.CHANGE else gaussian(sigma, 0, 120)
        return term(radius), other

    law = as_law(gaussian(sigma, 0, 120), 5)
    return Case(mechanism, np.array([[5]]), first_column, law, worlds)


def soft_votes() -> Case:
    """One teacher is sure of one class, then of another: its whole grid moves, twice."""
    grid, sigma = 6, 8.0
    mechanism = GaussianAnswers(Fraction(8), width=2, squared_distance=2 * grid**2)

    def worlds(pair: Pair):
        sure, not_at_all = gaussian(sigma, grid, 80), gaussian(sigma, 0, 80)
        return joint(sure, not_at_all), joint(not_at_all, sure)

    law = as_law(gaussian(sigma, 0, 120), 4)
    return Case(mechanism, np.array([[4, 2]]), first_column, law, worlds)


def hints() -> Case:
    """One teacher's hint swings from one end of its ball to the other."""
    steps, sigma = 5, 8.0
    mechanism = GaussianAnswers(Fraction(8), width=1, squared_distance=(2 * steps) ** 2)

    def worlds(pair: Pair):
        return gaussian(sigma, steps, 120), gaussian(sigma, -steps, 120)

    law = as_law(gaussian(sigma, 0, 120), 3)
    return Case(mechanism, np.array([[3]]), first_column, law, worlds)


def response() -> Case:
    mechanism = RandomisedResponse(classes=7, keep=Fraction(1, 2))
    law = {k: 0.5 if k == 3 else 1 / 12 for k in range(7)}

    def worlds(pair: Pair):
        first, second = np.full(7, 1 / 12), np.full(7, 1 / 12)
        first[0] = second[1] = 0.5
        return first, second

    return Case(mechanism, np.array([[3]]), lambda answers: answers, law, worlds)


def chosen(entries: list[int], grid: int, window: list[int], steepness: float) -> np.ndarray:
    """The exponential mechanism's law on a grid, point by point."""
    scores = [
        sum(window[abs(t - e)] if abs(t - e) < len(window) else 0 for e in entries)
        for t in range(grid)
    ]
    weights = np.exp(steepness * np.array(scores))
    return weights / weights.sum()


def choice(moved: int = 1) -> Case:
    """Entries far apart: one leaves a point that has all the mass for one that has none."""
    window, steepness = [2, 1], Fraction(1, 2)
    mechanism = ExponentialChoice(5, 7, tuple(window), steepness, moved)

    def worlds(pair: Pair):
        changed = 1 if pair.unit is Unit.ENTITY else moved
        here, there = [0] * 5, [6] * changed + [0] * (5 - changed)
        return tuple(chosen(entries, 7, window, 0.5) for entries in (here, there))

    entries = [3, 3, 3, 4, 6]
    law = dict(enumerate(chosen(entries, 7, window, 0.5)))
    return Case(mechanism, np.array([entries]), lambda answers: answers, law, worlds)


def selection() -> Case:
    """Without a judge the best is the first, so the law is that of one run."""
    one = choice()
    mechanism = PrivateSelection(one.mechanism, rows=1, stop=Fraction(2, 3))

    def worlds(pair: Pair):
        return tuple(best_of(law, Fraction(2, 3)) for law in one.worlds(pair))

    return Case(mechanism, one.value, lambda answers: answers[:, 0], one.law, worlds, draws=6000)


def best_of(law: np.ndarray, stop: Fraction) -> np.ndarray:
    """The law of the largest outcome of a geometric number of runs.

    P(best <= x) = sum over k of P(K = k) F(x)^k = stop F / (1 - (1 - stop) F).
    """
    below = np.concatenate([[0.0], np.cumsum(law)])
    return np.diff(float(stop) * below / (1 - float(1 - stop) * below))


CASES = {
    "noisy-votes": votes,
    "noisy-argmax": argmax,
    "confident-votes": confident,
    "noisy-counts": counts,
    "noisy-counts-of-persons": counts_of_persons,
    "laplace-counts": laplace_counts,
    "gaussian-sum": lambda: gaussian_sum(Fraction(1)),
    "sampled-gaussian-sum": lambda: gaussian_sum(Fraction(1, 4)),
    "gaussian-answers": soft_votes,
    "gaussian-answers-of-hints": hints,
    "randomised-response": response,
    "exponential-choice": choice,
    "exponential-choice-of-shared-models": lambda: choice(moved=3),
    "private-selection": selection,
    **ENTITY_CASES,
}
