"""Hints: what a teacher's hidden layer says, mapped to public hints and clipped to a ball."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.private.grids import BELOW_ONE, Floats, check_grid
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit

MOST_HINT_STEPS, MOST_HINT_WIDTH = 1 << 24, 1 << 14
"""Together they keep the squared norm of a residual below 2^62, in any order of summation."""


@dataclass(frozen=True)
class Hints:
    """What a teacher's hidden layer is mapped to: the hints of a public auxiliary teacher.

    Args:
        x: public records.
        values: the auxiliary teacher's hint of each, one row a record.
        ridge: penalty of the map, which each teacher fits by itself.
    """

    x: npt.NDArray[Any]
    values: Floats
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        fits = self.values.ndim == 2 and len(self.values) == len(self.x) > 0
        fits = fits and 1 <= self.values.shape[1] <= MOST_HINT_WIDTH
        if not fits or not np.isfinite(self.values).all() or not self.ridge > 0:
            raise BadInput(
                "the public hints do not fit their records, or the penalty is not above 0",
                where="hints",
                remedy="give one finite row a public record, and a penalty such as 0.001",
            )


def hint_residual(
    hidden: Floats, known: Floats, hints: Hints, centre: Floats, steps: int, grid: int
) -> Integers:
    """One teacher's hints minus the public ones, clipped to `steps` units of 1/grid.

    Guarantee: every row is an integer vector with a norm of at most `steps`, checked in integers.

    Args:
        hidden: the teacher's hidden layer at the queries.
        known: its hidden layer at `hints.x`.
        hints: what the map is fitted to.
        centre: the public hints at the queries.
        steps: the clip in grid units.
        grid: how many units one has.
    """
    none: Integers = np.zeros(centre.shape, dtype=np.int64)
    if not (np.isfinite(hidden).all() and np.isfinite(known).all()):
        return none
    with np.errstate(all="ignore"):
        inputs = np.hstack([known, np.ones((len(known), 1))]).astype(np.float64)
        penalty = hints.ridge * len(inputs) * np.eye(inputs.shape[1])
        try:
            own_map = np.linalg.solve(penalty + inputs.T @ inputs, inputs.T @ hints.values)
        except np.linalg.LinAlgError:
            return none
        away = (hidden @ own_map[:-1] + own_map[-1] - centre) * grid
        lengths = np.sqrt((away * away).sum(axis=1, keepdims=True))
        away = away * np.minimum(1.0, steps * BELOW_ONE / np.maximum(lengths, 1e-300))
        away[~np.isfinite(away).all(axis=1)] = 0.0
    # A number beyond the clip can only come from arithmetic gone wrong; it must not wrap around.
    integers: Integers = np.trunc(np.clip(away, -steps, steps)).astype(np.int64)
    integers[(integers * integers).sum(axis=1) > steps**2] = 0
    return integers


def hint_sensitivity(steps: int, unit: Unit) -> Sensitivity:
    """A teacher that changes swings from one end of its ball to the other: D = 2 * steps."""
    return Sensitivity.uniform(Norm.L2_SQUARED, 4 * steps**2, unit)


def hint_steps(bound: Fraction | int | str, grid: int) -> int:
    """The clip in whole grid units, rounded down.

    >>> hint_steps("1/3", 100)
    33
    """
    check_grid(grid)
    steps = int(Fraction(bound) * grid)
    if not 1 <= steps <= MOST_HINT_STEPS:
        raise BadInput(
            "the bound is below one grid unit, or above 2^24 of them",
            where="bound, grid",
            why="the squared norm of a term is checked in exact integers",
            remedy="give a bound such as 1/2 with a grid such as 1024",
        )
    return steps
