"""The discrete Laplace (two-sided geometric): P(x) proportional to exp(-|x| / scale).

Claim: on an integer value that moves by at most D in L1 it is (D / scale)-DP: Ghosh, Roughgarden,
Sundararajan 2009, Theorem 2.1; summed over coordinates by the triangle inequality.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from stillroom.gate.entropy import Entropy
from stillroom.gate.sampling import TAIL_BITS, WEIGHT_BITS, Table, exp_minus
from stillroom.vocabulary import Integers

_BASE = 256


@lru_cache(maxsize=8)
def _digit_tables(scale: Fraction) -> tuple[Table, ...]:
    """A table per base-256 digit: the digits of a geometric number are independent.

    exp(-(a + 256 b) / s) = exp(-a / s) exp(-256 b / s); only the highest digit is unbounded.
    """
    tables = []
    place = 1
    while True:
        highest = place * _BASE > scale
        ratio = exp_minus(Fraction(place) / scale, WEIGHT_BITS).low
        weight = 1 << WEIGHT_BITS
        smallest = weight >> TAIL_BITS
        weights: list[int] = []
        while weight > smallest and (highest or len(weights) < _BASE):
            weights.append(weight)
            weight = weight * ratio >> WEIGHT_BITS
        tables.append(Table(weights))
        if highest:
            return tuple(tables)
        place *= _BASE


def _signed(entropy: Entropy, tables: tuple[Table, ...], size: int) -> Integers:
    magnitude = np.zeros(size, dtype=np.int64)
    for position, table in enumerate(tables):
        magnitude += table.draw(entropy, size) * _BASE**position
    signs = entropy.signs(size)
    kept = (magnitude > 0) | (signs > 0)  # zero must not be counted twice
    return (signs * magnitude)[kept]


def noise(entropy: Entropy, scale: Fraction, size: int) -> Integers:
    """`size` discrete Laplace integers of the given scale."""
    tables = _digit_tables(scale)
    drawn = [_signed(entropy, tables, size)]
    while (missing := size - sum(map(len, drawn))) > 0:
        drawn.append(_signed(entropy, tables, 2 * missing + 8))
    return np.concatenate(drawn)[:size]
