"""Exact sampling in integer arithmetic: cumulative tables, coins, exponentials.

No floating-point number takes part in a draw. A table's law differs from the ideal one by less
than `TABLE_ERROR` in total variation; coins and exponential coins are exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stillroom.gate.entropy import Entropy, Words

TABLE_ERROR = Fraction(1, 2**128)
"""Total variation between one noise sample and its ideal law; accounted as delta (E2)."""

WEIGHT_BITS = 416
"""Fixed-point precision of table weights: 2^-150 tails keep 266 correct bits."""

TAIL_BITS = 150
"""Weights below 2^-150 of the largest are cut off; 2^18 of them stay below 2^-132."""

_HIGH = 64
_LOW = 96


class Interval(NamedTuple):
    """A real number between `low` and `high`, in units of 2^-bits."""

    low: int
    high: int


def exp_minus(x: Fraction, bits: int) -> Interval:
    """Bounds on exp(-x) for x >= 0, in units of 2^-bits, a few units wide."""
    halvings = max(0, (x.numerator // x.denominator).bit_length() + 1)
    guard = 2 * halvings + 40
    one = 1 << (bits + guard)
    step = x / (1 << halvings)
    total, term, k = one, one, 0
    while term:
        k += 1
        term = term * step.numerator // (step.denominator * k)
        total += -term if k % 2 else term
    # Each of the k truncations errs by at most k units in the last place; squaring `halvings`
    # times doubles the relative error each time, which the guard bits absorb.
    for _ in range(halvings):
        total = total * total >> (bits + guard)
    slack = (k * k + 4) << (2 * halvings)
    return Interval(max(0, total - slack) >> guard, ((total + slack) >> guard) + 1)


class Table:
    """Draws an index with probability proportional to integer weights.

    Inversion on 160-bit thresholds: 64 bits decide almost always, 96 more are drawn for the
    2^-64 chance that they do not.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        total = sum(weights)
        if not weights or total <= 0 or len(weights) > 2**20:
            raise ValueError("a table needs between 1 and 2^20 positive weights")
        running = 0
        self._thresholds: list[int] = []
        for weight in weights[:-1]:
            running += weight
            self._thresholds.append((running << (_HIGH + _LOW)) // total)
        self._high = np.array([t >> _LOW for t in self._thresholds], dtype=np.uint64)
        self._build_guide()

    def _build_guide(self) -> None:
        """Most of the unit interval holds no threshold: there, one look-up is the answer."""
        bits = min(20, max(8, (16 * len(self._high)).bit_length()))
        self._shift = np.uint64(_HIGH - bits)
        starts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        ends = starts | ((np.uint64(1) << self._shift) - np.uint64(1))
        first = np.searchsorted(self._high, starts, side="left")
        last = np.searchsorted(self._high, ends, side="right")
        self._guide = np.where(first == last, first, -1).astype(np.int32)

    def draw(self, entropy: Entropy, size: int) -> npt.NDArray[np.int64]:
        """`size` independent indices."""
        words = entropy.words(size)
        found = self._guide[(words >> self._shift).astype(np.int64)].astype(np.int64)
        unclear = np.flatnonzero(found < 0)
        if unclear.size:
            found[unclear] = self._search(words[unclear], entropy)
        return found

    def _search(self, words: Words, entropy: Entropy) -> npt.NDArray[np.int64]:
        index = np.searchsorted(self._high, words, side="right").astype(np.int64)
        tie = (index > 0) & (self._high[np.maximum(index, 1) - 1] == words)
        for i in np.flatnonzero(tie):
            exact = (int(words[i]) << _LOW) | entropy.integer(_LOW)
            index[i] = bisect_right(self._thresholds, exact)
        return index


def coins(entropy: Entropy, probability: Fraction, size: int) -> npt.NDArray[np.bool_]:
    """`size` exact coins that show heads with a rational probability."""
    scaled = probability.numerator << 64
    threshold, rest = divmod(scaled, probability.denominator)
    if threshold >> 64:
        return np.ones(size, dtype=np.bool_)
    words = entropy.words(size)
    heads = words < np.uint64(threshold)
    for i in np.flatnonzero(words == np.uint64(threshold)):
        heads[i] = coins(entropy, Fraction(rest, probability.denominator), 1)[0]
    return heads


def uniform_below(entropy: Entropy, bound: int, size: int) -> npt.NDArray[np.int64]:
    """`size` exact uniform integers in [0, bound), bound <= 2^62."""
    limit = (1 << 64) - (1 << 64) % bound
    words = entropy.words(size)
    if limit < 1 << 64:
        while (bad := np.flatnonzero(words >= np.uint64(limit))).size:
            words = words.copy()
            words[bad] = entropy.words(bad.size)
    return (words % np.uint64(bound)).astype(np.int64)


def falls_below_exp_minus(entropy: Entropy, word: int, x: Fraction) -> bool:
    """Whether the uniform real whose first 64 bits are `word` lies below exp(-x), exactly.

    Draws further bits of the real, and computes further bits of exp(-x), until they differ.
    """
    bits = 64
    while True:
        bound = exp_minus(x, bits)
        if word + 1 <= bound.low:
            return True
        if word >= bound.high:
            return False
        word = (word << 64) | entropy.integer(64)
        bits += 64
