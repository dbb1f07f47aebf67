"""The discrete Gaussian: P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.

Claim: integer noise of parameter sigma on an integer value that moves by D in Euclidean distance
is (D^2 / (2 sigma^2))-zCDP: Canonne, Kamath, Steinke 2020, Theorem 14 (the sampled law is within
2^-128 of it, E2). Pricing: accounting.py, E3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stillroom.documents import LARGEST, exact
from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import GaussianEvent, Line
from stillroom.gate.mechanisms.base import Mechanism, check_count
from stillroom.gate.sampling import (
    TAIL_BITS,
    WEIGHT_BITS,
    Table,
    exp_minus,
    falls_below_exp_minus,
)
from stillroom.vocabulary import Integers, Norm

LARGEST_TABLE = 10_000
"""Above this sigma the high part comes from a table and the low part is uniform (E2)."""

LARGEST_SIGMA = 2**56
"""Beyond, 15 sigma would not fit 64-bit integers."""


def check_sigma(sigma: Fraction | float | int | str, where: str = "sigma") -> Fraction:
    """An exact sigma, or a clear refusal.

    >>> check_sigma("0.5")
    Fraction(1, 2)
    """
    try:
        found = exact(sigma)
    except ValueError:
        found = Fraction(0)
    # Its square stands in the ledger, as a number of a reasonable length.
    short = max(found.numerator, found.denominator) ** 2 < LARGEST
    if not 0 < found <= LARGEST_SIGMA or not short:
        raise BadInput(
            f"sigma must be a number in (0, 2^56], got {str(sigma)[:60]}",
            where=where,
            why="sigma is the noise; without it the answer is the sensitive value itself",
            remedy="give sigma > 0, or let `stillroom plan --epsilon` find the smallest one",
        )
    return found


def check_fine_sigma(sigma: Fraction | float | int | str) -> Fraction:
    """An exact sigma that the price of grid vectors covers, or a clear refusal (E3)."""
    found = check_sigma(sigma)
    if found <= 2:
        raise BadInput(
            f"sigma is {float(found):g} grid units, and must exceed 2",
            where="sigma",
            why="on so coarse a grid the discrete noise is not covered by the Gaussian price",
            remedy="use a finer grid: more grid units for the same noise",
        )
    return found


def _weights(spread: Fraction) -> list[int]:
    """exp(-x^2 spread) for x = 0, 1, ... in fixed point, by w[x+1] = w[x] exp(-(2x+1) spread)."""
    weight = 1 << WEIGHT_BITS
    ratio = exp_minus(spread, WEIGHT_BITS).low
    shrink = exp_minus(2 * spread, WEIGHT_BITS).low
    smallest = weight >> TAIL_BITS
    weights = []
    while weight > smallest:
        weights.append(weight)
        weight = weight * ratio >> WEIGHT_BITS
        ratio = ratio * shrink >> WEIGHT_BITS
    return weights


@lru_cache(maxsize=8)
def _whole_table(sigma: Fraction) -> tuple[Table, int]:
    """The law on -R..R, and R."""
    right = _weights(1 / (2 * sigma * sigma))
    return Table(right[:0:-1] + right), len(right) - 1


class _Split:
    """|x| = k L + l: k from a table, l uniform, accepted with exp(-(2 k L l + l^2) / (2 sigma^2)).

    L is a power of two with 2048 <= sigma / L < 4096, so nearly every proposal is accepted by
    comparing 64-bit integers alone.
    """

    def __init__(self, sigma: Fraction) -> None:
        self.low_bits = (int(sigma) // 2048).bit_length() - 1
        self.step = 1 << self.low_bits
        self.doubled_variance = 2 * sigma * sigma
        weights = _weights(self.step * self.step / self.doubled_variance)
        self.high = Table(weights)
        self.surely_kept = np.array([self._sure(k) for k in range(len(weights))], dtype=np.uint64)

    def exponent(self, high: int, low: int) -> Fraction:
        return (2 * high * self.step * low + low * low) / self.doubled_variance

    def _sure(self, high: int) -> int:
        """Words below this are accepted whatever l is: exp(-x) >= 1 - x."""
        worst = self.exponent(high, self.step - 1)
        return max(0, (1 << 64) - 1 - worst.numerator * (1 << 64) // worst.denominator)

    def draw(self, entropy: Entropy, size: int) -> Integers:
        high = self.high.draw(entropy, size)
        low = (entropy.words(size) >> np.uint64(64 - self.low_bits)).astype(np.int64)
        words = entropy.words(size)
        signs = entropy.signs(size)
        kept = words < self.surely_kept[high]
        for i in np.flatnonzero(~kept):
            x = self.exponent(int(high[i]), int(low[i]))
            kept[i] = falls_below_exp_minus(entropy, int(words[i]), x)
        magnitude = (high << self.low_bits) | low
        kept &= (magnitude > 0) | (signs > 0)  # zero must not be counted twice
        return (signs * magnitude)[kept]


@lru_cache(maxsize=8)
def _split(sigma: Fraction) -> _Split:
    return _Split(sigma)


def noise(entropy: Entropy, sigma: Fraction, size: int) -> Integers:
    """`size` discrete Gaussian integers of parameter sigma."""
    if sigma <= LARGEST_TABLE:
        table, radius = _whole_table(sigma)
        return table.draw(entropy, size) - radius
    split = _split(sigma)
    drawn = [split.draw(entropy, size)]
    while (missing := size - sum(map(len, drawn))) > 0:
        drawn.append(split.draw(entropy, missing + missing // 64 + 8))
    return np.concatenate(drawn)[:size]


def noisy(entropy: Entropy, sigma: Fraction, value: Integers) -> Integers:
    """The value with discrete Gaussian noise on every integer of it."""
    return value + noise(entropy, sigma, value.size).reshape(value.shape)


@dataclass(frozen=True)
class GaussianVectors(Mechanism):
    """Rows of integers with Gaussian noise on each; what a unit can move is up to the subclass.

    Where no coordinate moves by more than one the exact discrete law is priced; anywhere else
    sigma has to exceed 2 (E3).
    """

    sigma: Fraction
    width: int

    def __post_init__(self) -> None:
        check_count("width", self.width)
        unit_steps = self.sensitivity.norm is Norm.UNIT_STEPS
        check = check_sigma if unit_steps else check_fine_sigma
        object.__setattr__(self, "sigma", check(self.sigma))

    def lines(self, count: int) -> list[Line]:
        return [(GaussianEvent(self.sigma * self.sigma, self.width, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        return noisy(entropy, self.sigma, value)


def pmf(sigma: Fraction, radius: int) -> npt.NDArray[np.float64]:
    """The probabilities of -radius..radius, in double precision, for laws and audits."""
    x = np.arange(-radius, radius + 1, dtype=np.float64)
    weights = np.exp(-(x * x) / (2 * float(sigma) ** 2))
    reach = int(40 * float(sigma)) + 40
    tail = np.arange(radius + 1, max(radius + 1, reach), dtype=np.float64)
    total = weights.sum() + 2 * np.exp(-(tail * tail) / (2 * float(sigma) ** 2)).sum()
    normalised: npt.NDArray[np.float64] = weights / total
    return normalised
