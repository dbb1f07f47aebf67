"""What entities do that trust nobody, or only a secure sum, with votes of their own.

Each event has one worst pair of laws, so that its Renyi curve and its loss distribution are those
of the same finite pair; adaptive answers compose (Zhu, Dong, Wang 2022, Theorem 10).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stillroom.gate import finite_losses, renyi
from stillroom.gate.event_base import ROUNDING_VARIANCE, Event
from stillroom.gate.finite_losses import Losses
from stillroom.gate.rounding import down, up
from stillroom.gate.sampling import TABLE_ERROR
from stillroom.vocabulary import Norm, Pair, Sensitivity

if TYPE_CHECKING:
    from stillroom.gate.loss_distributions import Composer

MOST_CLASSES = 10_000
"""Of a vote; a price has a term for each."""

MOST_ENTITIES = 1_000_000
"""In one sum; a price has a term for each."""

LARGEST_LEVEL = 40
"""Of a truncated geometric: beyond, some reports are too rare for the tables' error."""

LARGEST_SCALE = 2**30
"""Of a truncated geometric: beyond, no report tells anything."""

_MOST_TERMS = 1000
"""Of a sum over entities that are added up one by one."""

SMALLEST_SHARE = 2
"""Of a distributed discrete Gaussian: below, the sum of the shares is too coarse."""


def _refuse_unless(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(what)


@dataclass(frozen=True)
class FiniteEvent(Event, ABC):
    """Nominal answers with a finite worst pair of laws."""

    norms = (Norm.CHOICES,)

    @property
    @abstractmethod
    def losses(self) -> Losses:
        """Of the worst pair of laws when one answer changes."""

    @property
    def slack(self) -> float:
        """How far the logarithm of a law really drawn may be off at any point."""
        return 0.0

    def curve(self, pair: Pair) -> renyi.Curve:
        if pair not in self.bounds:
            return renyi.INFINITE
        once = renyi.with_slack(renyi.of_losses(self.losses), self.slack)
        return renyi.times(once, math.ceil(self.bounds[pair]))

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        changed = math.ceil(self.bounds[pair]) * count
        composer.finite(self.losses, changed)
        composer.allow(self.slack * changed)


@dataclass(frozen=True)
class TruncatedGeometricEvent(FiniteEvent):
    """A nominal answer as a number, with discrete Laplace noise, clamped to the classes.

    The first class against the last is the worst pair. For answers i < j the likelihood ratio falls
    with the report, so the divergence at epsilon is the largest F(t - i) - e^epsilon F(t - j) over
    t, with F the distribution function of the noise. A larger j - i makes it larger; and for t < i
    both terms shrink by the same factor as t does, so t = i is no worse. Both are had at i = 0.
    """

    kind = "truncated-geometric"
    classes: int
    scale: Fraction
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        super().__post_init__()
        classes = 2 <= self.classes <= MOST_CLASSES
        _refuse_unless(classes and self.scale <= LARGEST_SCALE, "classes or scale out of range")
        _refuse_unless(self.level <= LARGEST_LEVEL, "there is next to no noise")

    @property
    def level(self) -> Fraction:
        """The pure level: the largest log-ratio."""
        return (self.classes - 1) / self.scale

    @property
    def losses(self) -> Losses:
        return finite_losses.truncated_geometric(self.classes, down(self.scale))

    @property
    def slack(self) -> float:
        """What up to eight tables may do to the rarest report, as a share of it (E2).

        No report is rarer than `rarest`, so there is no need for a delta.
        """
        step = float(1 / self.scale)
        rarest = -math.expm1(-step) / 2 * math.exp(-float(self.level))
        return up(Fraction(16) * TABLE_ERROR) / rarest


@dataclass(frozen=True)
class UnaryEncodingEvent(FiniteEvent):
    """One bit per class: the true one is 1 with probability 1/2, each other one with `flip`.

    Another truth swaps the laws of two bits; only where they differ does a report tell anything.
    """

    kind = "unary-encoding"
    classes: int
    flip: Fraction
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_unless(2 <= self.classes <= MOST_CLASSES, "classes out of range")
        _refuse_unless(self.flip < Fraction(1, 2), "flip must lie below chance")

    @property
    def losses(self) -> Losses:
        return finite_losses.swapped(up((1 - self.flip) / 2), down(self.flip / 2), 0.5)


@dataclass(frozen=True)
class SummedResponseEvent(FiniteEvent):
    """Randomised response of which only the sum over `honest` entities is seen.

    Every other honest entity reports either of two given classes with probability `other` at least,
    whatever its answer: those reports hide the one in question, and all further ones may be known.
    """

    kind = "summed-randomised-response"
    honest: int
    classes: int
    keep: Fraction
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = 2 <= self.classes <= MOST_CLASSES and self.honest <= MOST_ENTITIES
        _refuse_unless(sizes, "classes or entities out of range")
        _refuse_unless(1 / Fraction(self.classes) <= self.keep < 1, "keep is none")

    @property
    def losses(self) -> Losses:
        other = (1 - self.keep) / (self.classes - 1)
        rest = up((self.classes - 2) * other)
        return finite_losses.summed_response(self.honest, up(self.keep), down(other), rest)

    def curve(self, pair: Pair) -> renyi.Curve:
        # Several answers of one sum that change together do not compose: nothing is proven.
        together = self.bounds.get(pair, Fraction(0)) > 1
        return renyi.INFINITE if together else super().curve(pair)


@dataclass(frozen=True)
class DistributedGaussianEvent(Event):
    """The opened sum of rows to which each of `honest` entities added a discrete Gaussian share.

    Priced as one discrete Gaussian of the summed variance, from which the sum of shares differs at
    each point by a factor of at most exp(tau) per coordinate (Kairouz, Liu, Steinke 2021, section
    3).
    """

    kind = "distributed-discrete-gaussian"
    norms = (Norm.UNIT_STEPS, Norm.L2_SQUARED)
    honest: int
    share_squared: Fraction
    coordinates: int
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = self.coordinates <= MOST_CLASSES and self.honest <= MOST_ENTITIES
        _refuse_unless(sizes, "coordinates or entities out of range")
        _refuse_unless(self.share_squared >= SMALLEST_SHARE**2, "the shares are too small")

    @property
    def noise_samples(self) -> int:
        """Those of all honest entities stand in the sum."""
        return self.honest * self.coordinates

    @property
    def slack(self) -> float:
        """tau = 10 sum over k < honest of exp(-2 pi^2 share^2 k / (k + 1)), per coordinate."""
        k = np.arange(1, min(self.honest, _MOST_TERMS), dtype=np.float64)
        terms = np.exp(-2 * math.pi**2 * down(self.share_squared) * (k / (k + 1)))
        # The terms fall, so that none of the others is above the last.
        others = self.honest - 1 - len(k)
        tau = 10 * float(terms.sum() + others * terms[-1:].sum()) * (1 + 1e-9)
        return math.nextafter(self.coordinates * tau, math.inf) if self.honest > 1 else 0.0

    @property
    def _exact(self) -> bool:
        """Whether the exact discrete law applies; else the Gaussian of E3 does."""
        return self.sensitivity.norm is Norm.UNIT_STEPS

    @property
    def variance(self) -> Fraction:
        """Of the law that is priced."""
        summed = self.honest * self.share_squared
        return summed if self._exact else summed - ROUNDING_VARIANCE

    def curve(self, pair: Pair) -> renyi.Curve:
        distance = self.bounds.get(pair)
        if distance is None or self.variance <= 0:
            return renyi.INFINITE
        return renyi.with_slack(renyi.gaussian(distance, self.variance), self.slack)

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        law = composer.unit_steps if self._exact else composer.gaussian
        law(self.variance, self.bounds[pair], count)
        composer.allow(self.slack * count)
