"""k-ary randomised response: keep a nominal answer with a rational probability, else lie uniformly.

Claim: ln(keep / other)-DP for whoever gives the answer, with other = (1 - keep) / (k - 1):
Warner 1965 for k = 2; Kairouz, Bonawitz, Ramage 2016, section 2. The law is finite and exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stillroom.documents import exact
from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import Line, RandomisedResponseEvent
from stillroom.gate.mechanisms.base import Mechanism, check_count, check_nominal
from stillroom.gate.sampling import coins, uniform_below
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit


def check_keep(keep: Fraction | float | int | str, classes: int) -> Fraction:
    """An exact probability of the truth between chance and certainty, or a clear refusal."""
    found = exact(keep)
    if not Fraction(1, classes) <= found < 1:
        raise BadInput(
            f"keep must lie in [1/{classes}, 1), got {found}",
            where="keep",
            why="1 always tells the truth, and less than chance tells it by denial",
            remedy="give an exact fraction such as 1/2",
        )
    return found


@dataclass(frozen=True)
class RandomisedResponse(Mechanism):
    """A nominal answer, one of `classes`, that tells the truth with probability `keep`.

    >>> RandomisedResponse(classes=3, keep=Fraction(1, 2)).law(0)
    [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    """

    name = "randomised-response"
    classes: int
    keep: Fraction
    unit: Unit = Unit.ENTITY

    def __post_init__(self) -> None:
        check_count("classes", self.classes, smallest=2)
        object.__setattr__(self, "keep", check_keep(self.keep, self.classes))

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
        return [(RandomisedResponseEvent(self.classes, self.keep, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        truth = value[:, 0]
        kept = coins(entropy, self.keep, len(truth))
        lie = (truth + 1 + uniform_below(entropy, self.classes - 1, len(truth))) % self.classes
        return np.where(kept, truth, lie)

    def law(self, truth: int) -> list[Fraction]:
        """The exact probability of each answer."""
        other = (1 - self.keep) / (self.classes - 1)
        return [self.keep if answer == truth else other for answer in range(self.classes)]
