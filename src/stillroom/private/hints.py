"""Hints: what a teacher's hidden layer says, mapped to public hints and clipped to a ball."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.private.quantise import (
    MOST_BALL_STEPS,
    MOST_TOGETHER,
    Floats,
    check_ball,
    check_grid,
    clip_to_ball,
)
from stillroom.private.ridge import solve_ridge
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit

MOST_HINT_STEPS, MOST_HINT_WIDTH = MOST_BALL_STEPS, MOST_TOGETHER


@dataclass(frozen=True)
class Hints:
    """What a teacher's hidden layer is mapped to: the hints of a public auxiliary teacher.

    Args:
        x: public records.
        values: the auxiliary teacher's hint of each, one row per record.
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
                why="the map from features to hints is fitted on them",
                remedy="give one finite row per public record, and a penalty such as 0.001",
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
    if not (np.isfinite(hidden).all() and np.isfinite(known).all()):
        return np.zeros(centre.shape, dtype=np.int64)
    with np.errstate(all="ignore"):
        inputs = np.hstack([known, np.ones((len(known), 1))]).astype(np.float64)
        own_map = solve_ridge(inputs, hints.values, hints.ridge * len(inputs))
        away = (hidden @ own_map[:-1] + own_map[-1] - centre) * grid
    return clip_to_ball(away, steps)


def hint_sensitivity(steps: int, unit: Unit) -> Sensitivity:
    """A teacher that changes swings from one end of its ball to the other: D = 2 * steps."""
    return Sensitivity.uniform(Norm.L2_SQUARED, 4 * steps**2, unit)


def hint_steps(bound: Fraction | int | str, grid: int) -> int:
    """The clip in whole grid units, rounded down.

    >>> hint_steps("1/3", 100)
    33
    """
    check_grid(grid)
    return check_ball(int(Fraction(bound) * grid))
