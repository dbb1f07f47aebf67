"""The truncated geometric mechanism: a class as a number, discrete Laplace noise, clamped.

Claim: exp(-1 / scale) is the ratio of neighbouring noises, and two classes of M are M - 1 apart at
most, so a report is ((M - 1) / scale)-DP for its entity: Ghosh, Roughgarden, Sundararajan 2009,
Theorem 2.1; clamping is post-processing. The first class against the last is the worst pair, which
events and prices use (the proof stands with the event). The law is finite, and known to double
precision. The certified use is scale (M - 1) / epsilon, of level epsilon.

The published law lives on 0..M with alpha = exp(-epsilon / M), and 0 is no class. Counted as class
1 it gives what clamping to the M classes gives at scale M / epsilon: level epsilon (M - 1) / M.
Drawn again it does not: the normalisers differ, and at M = 10, epsilon 1 the level is 1.33 and not
0.9 (theory.md#zhao). A report is never drawn again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stillroom.errors import BadInput
from stillroom.gate.entity_events import (
    LARGEST_LEVEL,
    LARGEST_SCALE,
    MOST_CLASSES,
    TruncatedGeometricEvent,
)
from stillroom.gate.entropy import Entropy
from stillroom.gate.event_base import Line
from stillroom.gate.mechanisms import discrete_laplace
from stillroom.gate.mechanisms.base import Mechanism, check_count, check_nominal
from stillroom.gate.mechanisms.discrete_gaussian import check_sigma
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit


@dataclass(frozen=True)
class TruncatedGeometric(Mechanism):
    """A nominal answer, taken for a number, with discrete Laplace noise and clamped to the classes.

    Guarantee: whoever gives the answer, for every pair of `unit`; level (classes - 1) / scale.

    Args:
        classes: how many answers there are, at most 10,000.
        scale: of the noise; (classes - 1) / epsilon, or classes / epsilon as published.
        unit: whose answer it is.

    Raises:
        BadInput: a number is out of range; the level may be 40 at most.

    >>> TruncatedGeometric(classes=10, scale=10).level
    Fraction(9, 10)
    >>> [round(p, 3) for p in TruncatedGeometric(classes=3, scale=2).law(0)]
    [0.622, 0.149, 0.229]
    """

    name = "truncated-geometric"
    classes: int
    scale: Fraction
    unit: Unit = Unit.ENTITY

    def __post_init__(self) -> None:
        check_count("classes", self.classes, smallest=2, largest=MOST_CLASSES)
        object.__setattr__(self, "scale", check_sigma(self.scale, "scale"))
        if self.level > LARGEST_LEVEL or self.scale > LARGEST_SCALE:
            raise BadInput(
                f"the scale is {float(self.scale):g} for {self.classes} classes",
                where="scale",
                why="there is next to no noise, or nothing but noise",
                remedy="give (classes - 1) / epsilon for an epsilon between 1e-5 and 40",
            )

    @property
    def level(self) -> Fraction:
        """The largest log-ratio of two laws: epsilon of one report."""
        return (self.classes - 1) / self.scale

    @property
    def coordinates(self) -> int:
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.uniform(Norm.CHOICES, 1, self.unit)

    def check(self, value: Integers) -> None:
        super().check(value)
        check_nominal(value, self.classes)

    def lines(self, count: int) -> list[Line]:
        return [(TruncatedGeometricEvent(self.classes, self.scale, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        drawn = discrete_laplace.noise(entropy, self.scale, len(value))
        reports: Integers = np.clip(value[:, 0] + drawn, 0, self.classes - 1)
        return reports

    def law(self, truth: int) -> list[float]:
        """The probability of each report, up to double precision."""
        step = float(1 / self.scale)
        both = 1 + math.exp(-step)
        inner = -math.expm1(-step)
        last = self.classes - 1
        return [
            math.exp(-step * abs(report - truth)) / both * (1 if report in (0, last) else inner)
            for report in range(self.classes)
        ]
