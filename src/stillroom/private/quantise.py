"""From floats to integers: votes within a simplex, vectors within a ball, checked exactly (E1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers, Norm, Pair, Relation, Sensitivity, Unit

Floats = npt.NDArray[np.floating]

MOST_STEPS = 1 << 40
"""Finer grids would bring the sum over many teachers near the end of 64-bit integers."""

MOST_BALL_STEPS, MOST_TOGETHER = 1 << 24, 1 << 14
"""Together they keep a sum of squares below 2^62, in any order of summation."""

BELOW_ONE = 1 - 2.0**-40
"""Floats that add up to a little more than one stay within the grid, once scaled and truncated."""


def settled(scores: Floats) -> Floats:
    """Scores with every row that is not finite replaced by equal scores, the public default.

    >>> settled(np.array([[[1.0, 2.0], [np.nan, 3.0]]])).tolist()
    [[[1.0, 2.0], [0.0, 0.0]]]
    """
    usable: Floats = np.where(np.isfinite(scores).all(axis=2, keepdims=True), scores, 0.0)
    return usable


def softmax(scores: Floats, temperature: float) -> npt.NDArray[np.float64]:
    """Each teacher's probabilities; finite scores give finite probabilities.

    Raises:
        BadInput: the temperature is not a positive number.
    """
    if not 1e-6 <= temperature <= 1e6:
        raise BadInput(
            "the temperature must lie in [1e-6, 1e6]",
            where="temperature",
            why="scores are divided by it, and must stay numbers",
            remedy="give a temperature such as 1",
        )
    with np.errstate(all="ignore"):
        wide = scores.astype(np.float64)
        below = (wide - wide.max(axis=-1, keepdims=True)) / temperature
    raised = np.exp(np.maximum(below, -700.0))
    probabilities: npt.NDArray[np.float64] = raised / raised.sum(axis=-1, keepdims=True)
    return probabilities


def check_grid(grid: int) -> int:
    """A whole number of units from 1 to 2^40, or a clear refusal."""
    if not isinstance(grid, int) or isinstance(grid, bool) or not 1 <= grid <= MOST_STEPS:
        raise BadInput(
            "the grid must be a whole number from 1 to 2^40",
            where="grid",
            why="answers are integers in units of 1/grid",
            remedy="give a grid such as 1024",
        )
    return grid


def on_grid(probabilities: npt.NDArray[np.float64], grid: int) -> Integers:
    """Truncated integers whose sum, checked, is at most the grid."""
    integers: Integers = np.floor(probabilities * (grid * BELOW_ONE)).astype(np.int64)
    beyond = (integers.sum(axis=2) > grid) | (integers.min(axis=2) < 0)
    integers[beyond] = grid // integers.shape[2]
    return integers


def simplex_sensitivity(grid: int, unit: Unit) -> Sensitivity:
    """A teacher that changes takes its whole grid from one class to another: D = sqrt 2 * grid."""
    return Sensitivity.uniform(Norm.L2_SQUARED, 2 * grid**2, unit)


def one_term(squared_norm: int, unit: Unit) -> Sensitivity:
    """Of a sum to which each unit adds one vector, whose squared norm is at most this."""
    bounds = {Pair(unit, relation): Fraction(squared_norm) for relation in Relation}
    return Sensitivity(Norm.CONTRIBUTION_SQUARED, bounds)


def check_ball(steps: int) -> int:
    """A radius from 1 to 2^24 grid units, or a clear refusal."""
    if not 1 <= steps <= MOST_BALL_STEPS:
        raise BadInput(
            "the bound is below one grid unit, or above 2^24 of them",
            where="bound, grid",
            why="the squared norm of a term is checked in exact integers",
            remedy="give a bound such as 1/2 with a grid such as 1024",
        )
    return steps


def clip_to_ball(rows: Floats | Integers, steps: int) -> Integers:
    """Each row shortened to a norm of at most `steps`, in whole numbers; short rows truncated.

    Guarantee: every row is an integer vector of a norm of at most `steps`, checked in exact
    integers, and zero where the row is not finite. It depends on its own row alone: whatever is
    summed over a row is a whole number, and the rest works element by element.

    Args:
        rows: one vector per row, in grid units.
        steps: the radius, at most 2^24.

    >>> clip_to_ball(np.array([[30.0, 40.0], [3.0, 4.9], [np.nan, 1.0]]), 10).tolist()
    [[5, 8], [3, 4], [0, 0]]
    """
    check_ball(steps)
    with np.errstate(all="ignore"):
        real = rows.astype(np.float64)
        # No number beyond the radius: what is far too long must not wrap around.
        real *= np.minimum(1.0, steps / np.abs(real).max(axis=1, initial=0.0, keepdims=True))
        real[~np.isfinite(real).all(axis=1)] = 0.0
    integers: Integers = np.trunc(real).astype(np.int64)
    squares = squared_norms(integers)
    long = squares > steps**2
    lengths = np.sqrt(squares[long].astype(np.float64))[:, None]
    integers[long] = np.trunc(integers[long] * (steps * BELOW_ONE / lengths)).astype(np.int64)
    # Truncation only shortens, so this blanks nothing unless arithmetic went wrong.
    integers[squared_norms(integers) > steps**2] = 0
    return integers


def squared_norms(rows: Integers) -> npt.NDArray[Any]:
    """The exact squared norms of rows of numbers up to 2^24 each, however wide they are.

    >>> squared_norms(np.full((1, 3 << 14), 1 << 24)) > 2**63
    array([ True])
    """
    starts = range(0, max(1, rows.shape[1]), MOST_TOGETHER)
    parts = [np.square(rows[:, at : at + MOST_TOGETHER]).sum(axis=1) for at in starts]
    # Python's integers have no end.
    exact = parts[0] if len(parts) == 1 else np.sum([p.astype(object) for p in parts], axis=0)
    return np.asarray(exact)
