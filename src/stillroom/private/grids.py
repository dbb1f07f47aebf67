"""From scores to integers: a teacher's probabilities in whole units, never more than one vote."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit

Floats = npt.NDArray[np.floating]

MOST_STEPS = 1 << 40
"""Finer grids would bring the sum over many teachers near the end of 64-bit integers."""

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
            remedy="give a temperature such as 1",
        )
    with np.errstate(over="ignore"):
        wide = scores.astype(np.float64)
        below = (wide - wide.max(axis=2, keepdims=True)) / temperature
    raised = np.exp(np.maximum(below, -700.0))
    probabilities: npt.NDArray[np.float64] = raised / raised.sum(axis=2, keepdims=True)
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
