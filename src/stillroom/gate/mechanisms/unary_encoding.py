"""Optimised unary encoding: one noisy bit per class.

Claim: the true bit is 1 with probability 1/2, every other one with probability `flip`, each bit
independent. Another truth swaps the laws of two bits, so a row is ln((1 - flip) / flip)-DP for
whoever gives the answer: Wang, Blocki, Li, Jha 2017, section 4.3. Both laws are known exactly, and
so is the price of many rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stillroom.documents import exact
from stillroom.errors import BadInput
from stillroom.gate.entity_events import MOST_CLASSES, UnaryEncodingEvent
from stillroom.gate.entropy import Entropy
from stillroom.gate.event_base import Line
from stillroom.gate.mechanisms.base import Mechanism, check_count, check_nominal
from stillroom.gate.sampling import coins
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit


@dataclass(frozen=True)
class UnaryEncoding(Mechanism):
    """A nominal answer as a row of bits, of which the true one is likelier to be 1.

    Guarantee: whoever gives the answer, for every pair of `unit`; ln((1 - flip) / flip) per row.

    Args:
        classes: how many answers there are, at most 10,000; bits of a row.
        flip: probability of a 1 where the truth is another class; 1 / (e^epsilon + 1).
        unit: whose answer it is.

    Raises:
        BadInput: a number is out of range.

    >>> UnaryEncoding(classes=3, flip=Fraction(1, 4)).law(0)
    [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    """

    name = "unary-encoding"
    classes: int
    flip: Fraction
    unit: Unit = Unit.ENTITY

    def __post_init__(self) -> None:
        check_count("classes", self.classes, smallest=2, largest=MOST_CLASSES)
        object.__setattr__(self, "flip", exact(self.flip))
        if not 0 < self.flip < Fraction(1, 2):
            raise BadInput(
                f"flip must lie in (0, 1/2), got {str(self.flip)[:60]}",
                where="flip",
                why="0 tells the truth with every 1, and from 1/2 on a 1 tells nothing or a lie",
                remedy="give an exact fraction such as 1/4",
            )

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
        return [(UnaryEncodingEvent(self.classes, self.flip, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        rows = len(value)
        lies = coins(entropy, self.flip, rows * self.classes).reshape(rows, self.classes)
        truths = coins(entropy, Fraction(1, 2), rows)
        true = np.arange(self.classes) == value[:, :1]
        return np.where(true, truths[:, None], lies).astype(np.int64)

    def law(self, truth: int) -> list[Fraction]:
        """The exact probability that each bit is 1; the bits are independent."""
        return [Fraction(1, 2) if bit == truth else self.flip for bit in range(self.classes)]
