"""Noisy integer counts and noisy sums of integer-grid vectors, also over a Poisson sample.

Claim: see discrete_gaussian.py and discrete_laplace.py for the noise. Counts: a unit counted m
times moves them by at most m in Euclidean distance, when all its records share one cell (K1b). For
m = 1 each count moves by at most one, and the exact discrete law is used. In a sum each unit's own
term lies in a ball of squared radius `squared_norm`: adding or removing it moves the sum by the
radius, changing it by the diameter. Over a Poisson sample of rate q the native pairs of
dp_accounting are used (E4), with the Gaussian of variance sigma^2 - 4 (E3).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from stillroom.documents import exact
from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import LaplaceEvent, Line, SampledGaussianEvent
from stillroom.gate.mechanisms import discrete_laplace
from stillroom.gate.mechanisms.base import LARGEST_SQUARE, Mechanism, check_count
from stillroom.gate.mechanisms.discrete_gaussian import GaussianVectors, check_sigma
from stillroom.vocabulary import Integers, Norm, Pair, Relation, Sensitivity, Unit


def _own_units(unit: Unit) -> list[Pair]:
    return [Pair(unit, relation) for relation in Relation]


@dataclass(frozen=True)
class NoisyCounts(GaussianVectors):
    """Integer counts with Gaussian noise; each unit is counted at most `records` times.

    Guarantee: one unit, with all its records in one cell or in many, added, removed or changed.

    Args:
        sigma: noise on each count; above 2 where a unit has several records (E3).
        width: how many counts there are.
        records: how often one unit is counted at most; public.
        unit: who is counted.

    >>> NoisyCounts(sigma=3, width=10).lines(1)[0][0].kind
    'discrete-gaussian'
    """

    name = "noisy-counts"
    records: int = 1
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("records", self.records)
        super().__post_init__()

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of_counts(self.records, self.unit)


@dataclass(frozen=True)
class LaplaceCounts(Mechanism):
    """Integer counts that one unit moves by at most `l1` in all, with discrete Laplace noise."""

    name = "laplace-counts"
    scale: Fraction
    width: int
    l1: int = 1
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("width", self.width)
        check_count("l1", self.l1)
        object.__setattr__(self, "scale", check_sigma(self.scale, "scale"))
        if self.scale > 2**50:
            raise BadInput(
                "the scale is above 2^50",
                where="scale",
                why="the noise would not fit 64-bit integers",
                remedy="use a coarser grid",
            )

    @property
    def sensitivity(self) -> Sensitivity:
        # A changed unit leaves its old counts and joins new ones.
        times = {Relation.ADD_OR_REMOVE: 1, Relation.CHANGE: 2}
        bounds = {p: Fraction(self.l1 * times[p.relation]) for p in _own_units(self.unit)}
        return Sensitivity(Norm.L1, bounds)

    def lines(self, count: int) -> list[Line]:
        return [(LaplaceEvent(self.scale, self.width, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        drawn = discrete_laplace.noise(entropy, self.scale, value.size)
        return value + drawn.reshape(value.shape)


@dataclass(frozen=True)
class GaussianSum(GaussianVectors):
    """A sum of integer-grid vectors with Gaussian noise, over all units or a Poisson sample.

    Guarantee: one unit (record or person), added, removed or changed.
    Assumes: each unit's own term has a squared norm of at most `squared_norm`, checked in integers.

    Args:
        sigma: noise in grid units, above 2 (E3).
        width: coordinates of the vector.
        squared_norm: square of the largest norm of one term, in grid units.
        rate: probability that a unit is in the sample; 1 for all units.
    """

    name = "gaussian-sum"
    one_row = True
    squared_norm: int
    rate: Fraction = Fraction(1)
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("squared_norm", self.squared_norm, largest=LARGEST_SQUARE)
        super().__post_init__()
        object.__setattr__(self, "rate", exact(self.rate))
        if not 0 < self.rate <= 1:
            raise BadInput(
                f"the sampling rate must lie in (0, 1], got {self.rate}",
                where="rate",
                why="a mis-stated rate gives a false epsilon",
                remedy="give the rate as an exact fraction such as 1/100",
            )

    @property
    def sensitivity(self) -> Sensitivity:
        bounds = {pair: Fraction(self.squared_norm) for pair in _own_units(self.unit)}
        return Sensitivity(Norm.CONTRIBUTION_SQUARED, bounds)

    def lines(self, count: int) -> list[Line]:
        if self.rate == 1:
            return super().lines(count)
        variance = self.sigma * self.sigma
        return [(SampledGaussianEvent(self.rate, variance, self.width, self.sensitivity), count)]
