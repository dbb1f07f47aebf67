"""Votes of entities with their laws and worst neighbours, worked out apart from the package."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from privacy.conformance import Case
from privacy.laws import as_law, first_column, gaussian, joint, laplace
from stillroom.gate import GaussianShare, ResponseShare, TruncatedGeometric, UnaryEncoding
from stillroom.vocabulary import Pair


def clamped(classes: int, scale: float, truth: int, reach: int = 400) -> np.ndarray:
    """Every noisy number goes to the nearest class."""
    noisy = np.arange(-reach, reach + 1) + truth
    weights = laplace(scale, reach=reach)
    return np.bincount(np.clip(noisy, 0, classes - 1), weights=weights, minlength=classes)


def drawn_again(classes: int, scale: float, truth: int) -> np.ndarray:
    """A law on one class more, conditioned on not being that one."""
    valid = clamped(classes + 1, scale, truth + 1, 2000)[1:]
    return valid / valid.sum()


def truncated_geometric() -> Case:
    mechanism = TruncatedGeometric(classes=8, scale=Fraction(5))
    law = dict(enumerate(clamped(8, 5.0, 3)))

    def worlds(pair: Pair):
        return clamped(8, 5.0, 0), clamped(8, 5.0, 7)

    return Case(mechanism, np.array([[3]]), lambda answers: answers, law, worlds)


def unary() -> Case:
    """The true bit and one other; two truths swap the laws of two bits."""
    mechanism = UnaryEncoding(classes=7, flip=Fraction(1, 5))
    true, other = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    law = {2 * a + b: true[a] * other[b] for a in (0, 1) for b in (0, 1)}

    def worlds(pair: Pair):
        return joint(true, other), joint(other, true)

    return Case(mechanism, np.array([[3]]), lambda bits: 2 * bits[:, 3] + bits[:, 0], law, worlds)


def summed_gaussian(share: float, honest: int, centre: int = 0, reach: int = 60) -> np.ndarray:
    """The law of the sum of the shares, by convolving them one after the other."""
    return reduce(
        np.convolve, [gaussian(share, 0, reach)] * (honest - 1) + [gaussian(share, centre, reach)]
    )


def gaussian_share(weight: int = 1) -> Case:
    """Two of six may be missing; the vote goes from one class to another in the opened sum."""
    share = 4.0
    mechanism = GaussianShare(6, 1, 1, classes=2, share=Fraction(4), weight=weight)

    def worlds(pair: Pair):
        here, there = (summed_gaussian(share, 4, w) for w in (weight, 0))
        return joint(here, there), joint(there, here)

    law = as_law(gaussian(share), weight)
    return Case(mechanism, np.array([[weight, 0]]), first_column, law, worlds)


def response_law(classes: int, keep: float, truth: int | None) -> np.ndarray:
    """Of one report; None sits out."""
    if truth is None:
        return np.full(classes, 1 / classes)
    law = np.full(classes, (1 - keep) / (classes - 1))
    law[truth] = keep
    return law


def histograms(laws: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """The law of how many reports fall on each class, by going through all of them."""
    found: Counter[tuple[int, ...]] = Counter()
    for reports in product(range(len(laws[0])), repeat=len(laws)):
        chance = np.prod([law[report] for law, report in zip(laws, reports, strict=True)])
        found[tuple(sorted(reports))] += float(chance)
    return found


def summed_worlds(classes: int, keep: float, two, others) -> tuple[np.ndarray, np.ndarray]:
    """The opened sums when one entity answers the first or the second of `two`."""
    rest = [response_law(classes, keep, truth) for truth in others]
    here, there = (histograms([response_law(classes, keep, one), *rest]) for one in two)
    return np.array([here[h] for h in here]), np.array([there[h] for h in here])


def response_share() -> Case:
    """One of three may collude; the other honest one answers a class of its own."""
    mechanism = ResponseShare(3, 0, 1, classes=7, keep=Fraction(1, 2))
    law = {k: 0.5 if k == 3 else 1 / 12 for k in range(7)}

    def worlds(pair: Pair):
        return summed_worlds(7, 0.5, (0, 1), [2])

    return Case(mechanism, np.array([[3]]), lambda rows: rows.argmax(axis=1), law, worlds)


ENTITY_CASES = {
    "truncated-geometric": truncated_geometric,
    "unary-encoding": unary,
    "gaussian-share": gaussian_share,
    "gaussian-share-of-weight": lambda: gaussian_share(weight=3),
    "response-share": response_share,
}
