"""One entity's part of a secure sum: noise in shares, and responses that are summed.

What is paid for is the OPENED SUM. The price assumes that the secure sum hides single rows, that
at most `dropouts` entities vanish and at most `colluding` ones tell the aggregator what they sent:
n - d - c honest entities stand in every sum that is opened, and more of them only add noise. One
row alone has its local price only (`local_lines`), which is told and not budgeted.

Claim, Gaussian shares: rows are w e_k, or zero for an entity that sits out, a set of diameter
sqrt 2 w. A person known to m entities may move m rows, all in one direction: m sqrt 2 w. The sum
has the noise of h = n - d - c discrete Gaussians of parameter s. For s >= 2 its law differs from
one discrete Gaussian of variance h s^2 by a factor within exp(+-tau) at every point, tau =
10 sum_{k<h} exp(-2 pi^2 s^2 k / (k + 1)) per coordinate: Kairouz, Liu, Steinke 2021, section 3. T
answers of M classes cost what that Gaussian costs, 2 T M tau of epsilon more and delta exp(T M tau)
times as much; order a of the Renyi curve M tau (2a - 1) / (a - 1) more for each.

Claim, summed responses (the blanket of Balle, Bell, Gascon, Nissim 2019, with the clones of
Feldman, McMillan, Talwar 2023): p = keep and q = (1 - p) / (M - 1). Whatever its answer, each of
the h - 1 other honest entities reports the first of two given classes with probability q at least,
and the second as well. Take those parts of their laws out: A and B such reports, multinomial with
(h - 1; q, q, 1 - 2q); the remaining reports are drawn from what is left of the laws of a random set
of entities of that size, and are the same in both worlds. The entity in question reports neither
class with probability 1 - p - q, which is the same in both worlds too; else (A + 1, B) has weight p
and (A, B + 1) weight q, or the other way round. An entity that sits out reports a uniform class: an
even mixture of the laws of all answers, and the divergence is jointly convex, so that nothing has
to be added for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stillroom.errors import BadInput
from stillroom.gate.entity_events import (
    MOST_CLASSES,
    MOST_ENTITIES,
    SMALLEST_SHARE,
    DistributedGaussianEvent,
    SummedResponseEvent,
)
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import GaussianEvent, Line, RandomisedResponseEvent
from stillroom.gate.mechanisms import discrete_gaussian
from stillroom.gate.mechanisms.base import Mechanism, check_count, check_nominal
from stillroom.gate.mechanisms.discrete_gaussian import check_sigma
from stillroom.gate.mechanisms.randomised_response import check_keep
from stillroom.gate.sampling import coins, uniform_below
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit

SITS_OUT = -1
"""The answer of an entity that takes no part in a question of summed responses."""

LARGEST_WEIGHT = 2**31


@dataclass(frozen=True)
class _Share(Mechanism):
    entities: int
    dropouts: int
    colluding: int
    classes: int

    def __post_init__(self) -> None:
        check_count("entities", self.entities, largest=MOST_ENTITIES)
        check_count("dropouts", self.dropouts, smallest=0, largest=MOST_ENTITIES)
        check_count("colluding", self.colluding, smallest=0, largest=MOST_ENTITIES)
        check_count("classes", self.classes, smallest=2, largest=MOST_CLASSES)
        if self.honest < 1:
            raise BadInput(
                f"of {self.entities} entities {self.dropouts} may vanish and {self.colluding} "
                "may collude",
                where="entities",
                why="nobody is left whose noise could hide anything",
                remedy="allow fewer dropouts and colluding entities, or find more entities",
            )

    @property
    def honest(self) -> int:
        """How many honest entities stand in every sum that is opened, at least."""
        return self.entities - self.dropouts - self.colluding


@dataclass(frozen=True)
class GaussianShare(_Share):
    """One entity's weighted vote with its share of the noise; the sum of all rows is paid for.

    Guarantee: for the OPENED SUM alone, one entity for every pair of `unit`; price in the module.
    Assumes: the secure sum hides single rows; at most `dropouts` vanish and `colluding` collude.
    If that fails, a row has the price of `local_lines`.

    Args:
        entities: how many there are, at most a million.
        dropouts: how many of them may vanish before the sum is opened.
        colluding: how many may tell the aggregator what they sent.
        classes: coordinates of a row, at most 10,000.
        share: noise of one entity on each coordinate, at least 2; sigma / sqrt(n - d - c).
        weight: of its vote; public. Whoever sits out for good has weight 0, which costs nothing.
        unit: what the entity's vote protects.
        per_person: how many entities may know the same person; their rows may move together.

    Raises:
        BadInput: a number is out of range, or no honest entity is left.

    >>> vote = GaussianShare(entities=250, dropouts=20, colluding=30, classes=10, share="2.83")
    >>> vote.honest, vote.lines(2000)[0][0].kind
    (200, 'distributed-discrete-gaussian')
    """

    name = "gaussian-share"
    share: Fraction
    weight: int = 1
    unit: Unit = Unit.ENTITY
    per_person: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("weight", self.weight, smallest=0, largest=LARGEST_WEIGHT)
        check_count("per_person", self.per_person, largest=self.entities)
        object.__setattr__(self, "share", check_sigma(self.share, "share"))
        if self.share < SMALLEST_SHARE:
            raise BadInput(
                f"the share is {float(self.share):g}, and must be {SMALLEST_SHARE} at least",
                where="share",
                why="a sum of coarser shares is not covered by the price of one Gaussian",
                remedy="use more noise, or weights on a finer grid",
            )

    @property
    def coordinates(self) -> int:
        return self.classes

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of_votes(self.weight, self.unit, self.per_person)

    def check(self, value: Integers) -> None:
        super().check(value)
        votes = value != 0
        if (value[votes] != self.weight).any() or (votes.sum(axis=1) > 1).any():
            raise BadInput(
                f"a row is neither one vote of {self.weight} nor all zeros",
                why="any other row would move the sum further than was paid for",
                remedy="give the weight at one class, or zeros to sit out",
            )

    def lines(self, count: int) -> list[Line]:
        squared = self.share * self.share
        event = DistributedGaussianEvent(self.honest, squared, self.classes, self.sensitivity)
        return [(event, count)]

    def local_lines(self, count: int) -> list[Line]:
        """What holds if the secure sum is broken: the rows alone; told, never budgeted."""
        return [(GaussianEvent(self.share * self.share, self.classes, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        return discrete_gaussian.noisy(entropy, self.share, value)


@dataclass(frozen=True)
class ResponseShare(_Share):
    """One entity's randomised response as a row of zeros and a one; the sum is paid for.

    Guarantee: for the OPENED SUM alone, one entity for every pair of `unit`; price in the module.
    Assumes: the secure sum hides single rows; at most `dropouts` vanish and `colluding` collude.
    If that fails, a row has the price of `local_lines`.

    Args:
        entities: how many there are, at most a million; beyond 1,000 no more are counted.
        dropouts: how many of them may vanish before the sum is opened.
        colluding: how many may tell the aggregator what they sent.
        classes: how many answers there are, at most 10,000.
        keep: probability of the truth. `SITS_OUT` is answered by a uniform class.
        unit: what the entity's vote protects.

    Raises:
        BadInput: a number is out of range, or no honest entity is left.

    >>> ResponseShare(250, 0, 0, classes=3, keep=Fraction(1, 2)).law(0)
    [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    """

    name = "response-share"
    keep: Fraction
    unit: Unit = Unit.ENTITY

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keep", check_keep(self.keep, self.classes))

    @property
    def coordinates(self) -> int:
        return 1

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.uniform(Norm.CHOICES, 1, self.unit)

    def check(self, value: Integers) -> None:
        super().check(value)
        check_nominal(value, self.classes, smallest=SITS_OUT)

    def lines(self, count: int) -> list[Line]:
        event = SummedResponseEvent(self.honest, self.classes, self.keep, self.sensitivity)
        return [(event, count)]

    def local_lines(self, count: int) -> list[Line]:
        """What holds if the secure sum is broken: the rows alone; told, never budgeted."""
        return [(RandomisedResponseEvent(self.classes, self.keep, self.sensitivity), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        truth, rows = value[:, 0], len(value)
        # As much randomness for one who sits out: how long it takes tells nothing.
        kept = coins(entropy, self.keep, rows)
        lie = (truth + 1 + uniform_below(entropy, self.classes - 1, rows)) % self.classes
        anywhere = uniform_below(entropy, self.classes, rows)
        report = np.where(truth == SITS_OUT, anywhere, np.where(kept, truth, lie))
        ones: Integers = (np.arange(self.classes) == report[:, None]).astype(np.int64)
        return ones

    def law(self, truth: int) -> list[Fraction]:
        """The exact probability that each class is reported."""
        other = (1 - self.keep) / (self.classes - 1)
        if truth == SITS_OUT:
            return [Fraction(1, self.classes)] * self.classes
        return [self.keep if report == truth else other for report in range(self.classes)]
