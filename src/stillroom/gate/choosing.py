"""Exact choices with probabilities proportional to exp(rate * score), many rows at once.

Scores are integers and the rate is rational, so the law is known exactly. Floating-point sums
decide where they are sure to be right; where a draw comes too close to the border between two
candidates, it is decided in integers, to as many bits as it takes. So no draw depends on rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.gate.entropy import Entropy
from stillroom.gate.rounding import up
from stillroom.gate.sampling import exp_minus
from stillroom.vocabulary import Integers

MOST_CANDIDATES = 1 << 12
LARGEST_SCORE = 1 << 52
"""Integers that doubles hold exactly."""

_SURE = 2.0**-36
"""How far from a border, as a share of the whole, a draw is sure.

An exponent of at most 700 is rounded by 2^-42 at most, its exponential by some 2^-51 of itself, a
sum of 2^12 of them by 2^-40; all together that stays below 2^-39 of the whole.
"""
_FARTHEST = 700.0


def choose(
    entropy: Entropy, scores: npt.NDArray[np.floating], rate: Fraction, sure: float = _SURE
) -> Integers:
    """One candidate per row.

    Args:
        entropy: where the draws come from.
        scores: whole numbers, one row per choice and one column per candidate.
        rate: of the logarithm of a candidate's weight per unit of its score.
        sure: see above; larger values ask for integers more often, with the same law.
    """
    behind = scores.max(axis=1, keepdims=True) - scores
    weights = np.exp(np.maximum(behind.astype(np.float64) * -up(rate), -_FARTHEST))
    borders = np.cumsum(weights, axis=1)
    whole = borders[:, -1]
    words = entropy.words(len(scores))
    places = words.astype(np.float64) * 2.0**-64 * whole
    found: Integers = np.minimum(
        (borders <= places[:, None]).sum(axis=1), scores.shape[1] - 1
    ).astype(np.int64)
    rows, slack = np.arange(len(scores)), sure * whole
    below = np.where(found > 0, borders[rows, found - 1], -np.inf)
    above = np.where(found < scores.shape[1] - 1, borders[rows, found], np.inf)
    for row in np.flatnonzero((places - below < slack) | (above - places < slack)):
        exact = [int(score) for score in behind[row]]
        found[row] = _exactly(entropy, exact, rate, int(words[row]))
    return found


def _exactly(entropy: Entropy, behind: Sequence[int], rate: Fraction, word: int) -> int:
    """The candidate at the uniform real whose first 64 bits are `word`.

    Draws further bits of the real, and computes further bits of the weights, until it lies within
    one candidate's part for sure.
    """
    bits = 64
    while True:
        weights = [exp_minus(rate * score, bits + 64) for score in behind]
        low, high = sum(weight.low for weight in weights), sum(weight.high for weight in weights)
        ended_low = ended_high = 0
        for candidate, weight in enumerate(weights):
            begun_high = ended_high
            ended_low, ended_high = ended_low + weight.low, ended_high + weight.high
            if word * low >= begun_high << bits and (word + 1) * high <= ended_low << bits:
                return candidate
            if candidate == len(weights) - 1 and word * low >= begun_high << bits:
                return candidate
        word, bits = (word << 64) | entropy.integer(64), bits + 64


def law_of(scores: Integers, rate: Fraction) -> npt.NDArray[np.float64]:
    """The probabilities of the candidates in each row, in double precision, for laws and audits."""
    behind = (scores.max(axis=1, keepdims=True) - scores).astype(np.float64)
    weights = np.exp(-float(rate) * behind)
    law: npt.NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return law
