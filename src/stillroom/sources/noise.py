"""Noise rounded the safe way."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, isqrt

SIGMA_STEPS = 1000


def least_sigma(squared: Fraction) -> Fraction:
    """The square root, rounded up to thousandths: a little more noise than needed, never less.

    >>> least_sigma(Fraction(9)), least_sigma(Fraction(2)) ** 2 > 2
    (Fraction(3, 1), True)
    """
    return Fraction(isqrt(ceil(squared * SIGMA_STEPS**2) - 1) + 1, SIGMA_STEPS)
