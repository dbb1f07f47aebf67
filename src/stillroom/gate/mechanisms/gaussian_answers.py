"""Noisy vectors that an ensemble answers with: soft votes, means over groups, hints.

Claim: teachers stand on disjoint shards, and a teacher's answer is an integer vector of a fixed
set. One record, one person (when persons share a shard) or one whole teacher, added, removed or
changed, replaces one teacher's answer by another of the set, so the sum moves by at most the
diameter D of the set and not its radius (theory.md#diameter). The sets (E1): integers >= 0 that
add up to at most `grid`, D = sqrt 2 * grid; integer vectors of a norm of at most floor(C / s), for
clip C and step s, D = 2 * floor(C / s). Q answers cost mu^2 = Q D^2 / (sigma^2 - 4): a discrete
Gaussian on the grid is a rounding of the Gaussian of that variance, for sigma above 2 grid units
(E3).
"""

from __future__ import annotations

from dataclasses import dataclass

from stillroom.gate.mechanisms.base import LARGEST_SQUARE, check_count
from stillroom.gate.mechanisms.discrete_gaussian import GaussianVectors
from stillroom.vocabulary import Norm, Sensitivity, Unit


@dataclass(frozen=True)
class GaussianAnswers(GaussianVectors):
    """Sums of the teachers' integer vectors with Gaussian noise, one row per question.

    Guarantee: one record (or person, or entity) for every pair of `unit`; price in the module.
    Assumes: one vector per teacher, from a set of that diameter; teachers on disjoint shards.

    Args:
        sigma: noise in grid units, above 2 (E3).
        width: coordinates of a row.
        squared_distance: square of the diameter of the set of answers, in grid units.
        unit: what shares a shard.

    >>> GaussianAnswers(sigma=4000, width=10, squared_distance=2 * 100**2).lines(50)[0][1]
    50
    """

    name = "gaussian-answers"
    squared_distance: int
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("squared_distance", self.squared_distance, largest=LARGEST_SQUARE)
        super().__post_init__()

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.uniform(Norm.L2_SQUARED, self.squared_distance, self.unit)
