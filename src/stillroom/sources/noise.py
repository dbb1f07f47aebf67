"""Noise rounded the safe way, and how much of it a paid passage adds."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, isqrt

from stillroom.gate import GaussianAnswers, GaussianSum, Passage

SIGMA_STEPS = 1000


def least_sigma(squared: Fraction) -> Fraction:
    """The square root, rounded up to thousandths: a little more noise than needed, never less.

    >>> least_sigma(Fraction(9)), least_sigma(Fraction(2)) ** 2 > 2
    (Fraction(3, 1), True)
    """
    return Fraction(isqrt(ceil(squared * SIGMA_STEPS**2) - 1) + 1, SIGMA_STEPS)


def sigma_of(passage: Passage) -> float:
    """The noise on each number of a passage's answers, in grid units."""
    assert isinstance(passage.mechanism, (GaussianAnswers, GaussianSum))
    return float(passage.mechanism.sigma)
