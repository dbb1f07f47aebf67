"""The exponential mechanism on a fixed public grid: one point per row, where the entries are dense.

A row has one entry per model, each a point of the grid. A point's score is the sum of a public
window over the entries: `window[d]` for each entry d steps away. One point is chosen, with
probability proportional to exp(steepness * score).

Claim: an entry that changes to any other moves each score by at most max(window), up or down, so
the log-ratios of all points lie within a range of epsilon = 2 * steepness * max(window) (McSherry,
Talwar 2007, Theorem 6; as bounded range Dong, Durfee, Rogers 2020). Such a choice costs
rho = epsilon^2 / 8 (Cesar, Rogers 2021, Lemma 3.4). k entries that change together cost as much as
k epsilon. Window, grid and steepness are public constants: a grid or a window that follows the
entries has no price at all (theory.md#pg).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.documents import exact
from stillroom.errors import BadInput
from stillroom.gate.choosing import LARGEST_SCORE, MOST_CANDIDATES, choose, law_of
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import ExponentialEvent, Line
from stillroom.gate.mechanisms.base import Mechanism, check_count
from stillroom.vocabulary import Integers, Sensitivity, Unit

TOGETHER = 1 << 20
"""Scores computed at once: they stay in a processor's own memory."""
SMALLEST_STEEPNESS, LARGEST_STEEPNESS = Fraction(1, 10**12), Fraction(10**6)
_SINGLE = 1 << 24
"""Integers that single precision holds exactly."""


@dataclass(frozen=True)
class ExponentialChoice(Mechanism):
    """A point of a public grid per row, drawn from where the row's entries are dense.

    Guarantee: one record, one person or one whole model, for every pair of `unit`; price in the
    module.
    Assumes: a unit changes at most `moved` entries of a row.

    Args:
        models: entries of a row.
        grid: points of the grid.
        window: what an entry adds to a point's score, by their distance in steps; 0 beyond.
        steepness: of a point's log-probability over its score.
        moved: how many entries of a row one record may change: 1 where each model saw a shard of
            its own, `models` where all models may have seen it.
        unit: what shares a shard.

    Raises:
        BadInput: a number is out of range.

    >>> choice = ExponentialChoice(models=50, grid=5, window=(2, 1), steepness=Fraction(1, 4))
    >>> choice.epsilon
    Fraction(1, 1)
    >>> choice.law(np.array([[2] * 30 + [3] * 20])).argmax()
    np.int64(2)
    """

    name = "exponential-choice"
    models: int
    grid: int
    window: tuple[int, ...]
    steepness: Fraction
    moved: int = 1
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("models", self.models)
        check_count("grid", self.grid, smallest=2, largest=MOST_CANDIDATES)
        check_count("moved", self.moved, largest=self.models)
        object.__setattr__(self, "window", tuple(self.window))
        object.__setattr__(self, "steepness", exact(self.steepness))
        highest = LARGEST_SCORE // self.models
        for score in self.window:
            check_count("window", score, smallest=0, largest=highest)
        fits = 1 <= len(self.window) <= self.grid and max(self.window) > 0
        if not fits or not SMALLEST_STEEPNESS <= self.steepness <= LARGEST_STEEPNESS:
            raise BadInput(
                "the window has no score above 0 within the grid, or the steepness is out of range",
                where=self.name,
                why="every point would be as likely as any other, or the price could not be told",
                remedy="give one whole score per distance, from 0 on, and a steepness above 0",
            )

    @property
    def epsilon(self) -> Fraction:
        """The range of the log-ratios when one entry changes."""
        return 2 * self.steepness * max(self.window)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of_entries(self.moved, self.unit)

    @property
    def coordinates(self) -> int:
        return self.models

    def check(self, value: Integers) -> None:
        super().check(value)
        if value.size and not 0 <= value.min() <= value.max() < self.grid:
            raise BadInput(
                f"an entry is none of the {self.grid} points of the grid",
                where=self.name,
                why="a grid that does not cover the entries would have to follow them",
                remedy="clip the entries to the range of the grid first",
            )

    def lines(self, count: int) -> list[Line]:
        return [(ExponentialEvent(self.epsilon, self.sensitivity), count)]

    def scores(self, value: Integers) -> npt.NDArray[np.floating]:
        """The score of each point, for each row: whole numbers, exact in their type."""
        counts = self._counts(value)
        highest = self.models * max(self.window)
        kind = np.float32 if highest < _SINGLE else np.float64
        points = np.arange(self.grid)
        apart = np.abs(points[:, None] - points[None, :])
        near = np.array([*self.window, *[0] * (self.grid - len(self.window))], dtype=kind)
        # Every partial sum is a whole number that the type holds, so any order gives the same.
        found: npt.NDArray[np.floating] = counts.astype(kind) @ near[apart]
        return found

    def _counts(self, value: Integers) -> Integers:
        """How many entries of each row stand at each point."""
        rows = np.arange(len(value), dtype=np.int64)[:, None] * self.grid
        size = len(value) * self.grid
        # In whatever order they stand in memory: another one would have to be copied.
        flat = np.bincount((rows + value).ravel(order="K"), minlength=size)
        return flat.reshape(len(value), self.grid)

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        step = max(1, TOGETHER // self.grid)
        parts = [
            choose(entropy, self.scores(value[at : at + step]), self.steepness)
            for at in range(0, len(value), step)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def law(self, value: Integers) -> npt.NDArray[np.float64]:
        """The probability of each point, for each row, up to double precision."""
        return law_of(self.scores(value).astype(np.int64), self.steepness)
