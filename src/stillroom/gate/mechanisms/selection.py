"""Private selection: the best of a secret number of runs, by a score from public data.

"Draw again until it is good enough" conditions the answer on being accepted, which can double
epsilon and has no bound for approximate guarantees (theory.md#pg). Here the number of runs is drawn
first, the runs are made, and the best one is the answer.

Claim: with a geometric or logarithmic number of runs, the best costs not much more than one
(Papernot, Steinke 2022, Theorem 2), as long as nobody learns how many there were. So the number is
drawn inside, and lives no longer than the draw: it is not stored, exported or resumed; a run that
is cut off has lost its draw. Equal scores are as good as any: the first of them is an independent
draw among them. How long the draw takes tells of the number to whoever can watch (SECURITY).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from stillroom.documents import exact
from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import GEOMETRIC, LOGARITHMIC, Line, SelectionEvent
from stillroom.gate.mechanisms.base import Mechanism, check_count
from stillroom.gate.sampling import coins
from stillroom.vocabulary import Integers, Sensitivity, Unit

Judge = Callable[[Integers], float]
"""From an answer to its score; uses the answer and public things only."""

RAREST_STOP = Fraction(1, 1000)
"""A thousand runs in the mean."""


@dataclass(frozen=True)
class PrivateSelection(Mechanism):
    """The best of several runs of another mechanism: one answer, one draw, one price.

    Guarantee: that of the event, for every unit and relation that the runs protect.
    Assumes: the judge knows nothing but the answer it is given and public things.

    Args:
        base: what is run, over and over.
        rows: answers of the base mechanism per run.
        stop: geometric: the chance that a run is the last; logarithmic: its parameter.
        tries: "geometric" or "logarithmic".

    Raises:
        BadInput: a number is out of range, or the runs cannot be repeated.
    """

    name = "private-selection"
    one_row = True
    base: Mechanism
    rows: int
    stop: Fraction
    tries: str = GEOMETRIC

    def __post_init__(self) -> None:
        check_count("rows", self.rows)
        object.__setattr__(self, "stop", exact(self.stop))
        known = self.tries in (GEOMETRIC, LOGARITHMIC)
        if not known or not RAREST_STOP <= self.stop < 1:
            raise BadInput(
                "the number of tries is not spread in a way that has a price",
                where="tries, stop",
                why=f"geometric and logarithmic tries have one, with a stop from {RAREST_STOP} on",
                remedy="give a stop such as 1/10 and tries such as geometric",
            )
        if self.base.one_row or self.base.rate != 1 or self.base.capacity(2) != 2:
            raise BadInput(
                f"{self.base.name} cannot be run over and over within one draw",
                where="base",
                why="a sample, a sum of its own or a cap on answers belongs to one draw",
                remedy="select among Gaussian answers or exponential choices",
            )

    @property
    def unit(self) -> Unit:
        """What the runs protect."""
        return Unit(vars(self.base)["unit"])

    @property
    def sensitivity(self) -> Sensitivity:
        return self.base.sensitivity

    @property
    def coordinates(self) -> int:
        return self.rows * self.base.coordinates

    def lines(self, count: int) -> list[Line]:
        return [(SelectionEvent(self.stop, self.tries, tuple(self.base.lines(self.rows))), count)]

    def check(self, value: Integers) -> None:
        super().check(value)
        for row in value:
            self.base.check(self._rows(row))

    def judged_by(self, judge: Judge) -> PrivateSelection:
        """The same, with a judge; without one all runs are as good, and the first is the answer."""
        found = copy.copy(self)
        object.__setattr__(found, "_judge", judge)
        return found

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        """The best run for each row, in which all rows of a run stand side by side."""
        judge: Judge = getattr(self, "_judge", lambda answer: 0.0)
        return np.stack([self._best(entropy, self._rows(row), judge) for row in value])

    def _best(self, entropy: Entropy, value: Integers, judge: Judge) -> Integers:
        highest, best = -math.inf, None
        for _ in range(self._count(entropy)):
            answer = self.base.draw(entropy, value, len(value))
            score = _score(judge, answer)
            if best is None or score > highest:
                highest, best = score, answer
        assert best is not None  # there is at least one run
        return best.reshape(-1)

    def _count(self, entropy: Entropy) -> int:
        """How many runs; known to nobody else."""
        while True:
            runs = 1
            while not coins(entropy, self.stop, 1)[0]:
                runs += 1
            # (1 - stop)^k / k: a geometric number that is kept with probability 1/k.
            if self.tries == GEOMETRIC or coins(entropy, Fraction(1, runs), 1)[0]:
                return runs

    def _rows(self, row: Integers) -> Integers:
        return row.reshape(self.rows, self.base.coordinates)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "base": self.base.describe()}


def _score(judge: Judge, answer: Integers) -> float:
    """A judge that fails, or finds no number, would tell of a run that nobody may hear of."""
    try:
        score = float(judge(answer))
    except Exception:
        return -math.inf
    return -math.inf if math.isnan(score) else score
