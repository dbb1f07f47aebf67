"""Noisy votes of teachers on disjoint shards (GNMAX), and their confident form with a threshold.

Claim: one record, one person (when persons share a shard) or one whole teacher moves one vote, so
two counts move by exactly one: Euclidean distance sqrt 2, the diameter of the one-hot votes and
not their radius (theory.md#diameter). Q answers cost 2Q unit moves of a discrete Gaussian. To
release the histogram or its argmax costs the same: argmax is post-processing.

Claim, confident form (Papernot et al. 2018, Confident-GNMAX): the largest count moves by at most
one, so a question costs one unit move at `threshold_sigma`; only the questions whose noisy largest
count reaches the threshold are answered, at most `most_answers` of them, at 2 unit moves each.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import GaussianEvent, Line
from stillroom.gate.mechanisms import discrete_gaussian
from stillroom.gate.mechanisms.base import Mechanism, check_count
from stillroom.gate.mechanisms.discrete_gaussian import check_sigma
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit

UNANSWERED = -1


@dataclass(frozen=True)
class _Votes(Mechanism):
    teachers: int
    classes: int
    sigma: Fraction
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("teachers", self.teachers)
        check_count("classes", self.classes, smallest=2)
        object.__setattr__(self, "sigma", check_sigma(self.sigma))

    @property
    def coordinates(self) -> int:
        return self.classes

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.uniform(Norm.UNIT_STEPS, 2, self.unit)

    def check(self, value: Integers) -> None:
        super().check(value)
        if value.size and (value.min() < 0 or value.sum(axis=1).max() > self.teachers):
            raise BadInput(
                f"the counts are not the votes of {self.teachers} teachers",
                why="each teacher has one vote; more would move the histogram further than paid",
                remedy="count one vote per teacher and question",
            )

    def _noisy(self, entropy: Entropy, value: Integers) -> Integers:
        return discrete_gaussian.noisy(entropy, self.sigma, value)

    def lines(self, count: int) -> list[Line]:
        return [(GaussianEvent(self.sigma * self.sigma, self.classes, self.sensitivity), count)]


@dataclass(frozen=True)
class NoisyVotes(_Votes):
    """The whole noisy histogram of votes (GNMAX before the argmax).

    Guarantee: one record (or person, or entity) for every pair of `unit`; price in the module.
    Assumes: one vote per teacher, teachers on disjoint shards.

    >>> NoisyVotes(teachers=250, classes=10, sigma=40).lines(2000)[0][1]
    2000
    """

    name = "noisy-votes"

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        return self._noisy(entropy, value)


@dataclass(frozen=True)
class NoisyArgmax(_Votes):
    """The class with the most noisy votes, the first of equals (GNMAX)."""

    name = "noisy-argmax"

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        winners: Integers = self._noisy(entropy, value).argmax(axis=1)
        return winners

    def law(self, counts: Integers) -> npt.NDArray[np.float64]:
        """The exact probability of each class, up to double precision; sigma up to 1e4."""
        reach = int(np.ptp(counts)) + int(15 * self.sigma) + 15
        at = discrete_gaussian.pmf(self.sigma, reach)
        below = np.concatenate([[0.0], np.cumsum(at)])  # below[i] = P(x < i - reach)
        x = np.arange(-reach, reach + 1)
        law = np.empty(self.classes)
        for winner in range(self.classes):
            wins = at.copy()
            for other in range(self.classes):
                if other != winner:
                    # An earlier class wins ties, so a later winner must be strictly larger.
                    room = x + counts[winner] - counts[other] + (1 if other > winner else 0)
                    wins *= below[np.clip(room + reach, 0, 2 * reach + 1)]
            law[winner] = wins.sum()
        return law


@dataclass(frozen=True)
class ConfidentVotes(_Votes):
    """The noisy argmax where the noisy largest count reaches a threshold, else no answer.

    Args:
        threshold: the count to reach; public.
        threshold_sigma: noise of the test.
        most_answers: the cap on answers; reserved and charged in full, whatever happens.
    """

    name = "confident-votes"
    threshold: int = 0
    threshold_sigma: Fraction = Fraction(1)
    most_answers: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("most_answers", self.most_answers)
        exact = check_sigma(self.threshold_sigma, "threshold_sigma")
        object.__setattr__(self, "threshold_sigma", exact)

    def lines(self, count: int) -> list[Line]:
        largest = Sensitivity.uniform(Norm.UNIT_STEPS, 1, self.unit)
        test = GaussianEvent(self.threshold_sigma * self.threshold_sigma, 1, largest)
        return [(test, count), *super().lines(self.capacity(count))]

    def capacity(self, count: int) -> int:
        return min(count, self.most_answers)

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        test = discrete_gaussian.noise(entropy, self.threshold_sigma, len(value))
        passed = np.flatnonzero(value.max(axis=1) + test >= self.threshold)[:allowance]
        answers = np.full(len(value), UNANSWERED, dtype=np.int64)
        answers[passed] = self._noisy(entropy, value[passed]).argmax(axis=1)
        return answers

    def answered(self, answers: Integers) -> int:
        return int((answers != UNANSWERED).sum())
