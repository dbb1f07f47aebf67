"""The fixed public grid that parameters are generated on, and the window that scores its points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from stillroom.errors import check_ranges
from stillroom.vocabulary import Integers

LEVELS = 1023
"""Units of the highest score that one entry gives: the window is rounded to whole ones."""
MOST_POINTS = 4096


@dataclass(frozen=True)
class ParameterGrid:
    """Points between -radius and radius, and a kernel density estimate in whole numbers.

    The score of a point is the mass of a kernel density estimate in a window around it (Mao et al.
    2021, Eq. 3): the mean over the models of Phi((t + w/2) / b) - Phi((t - w/2) / b), where t is
    how far a model's value is away. Values are brought to the grid first, so that t has finitely
    many values, and their scores can be whole numbers in a public table.

    Assumes: all four numbers are public constants.

    Args:
        radius: the largest point; what lies beyond is brought to it.
        points: how many points, both ends among them.
        bandwidth: b, of the estimate.
        width: w, of the window; the bandwidth when left out.

    Raises:
        BadInput: a number is out of range.

    >>> grid = ParameterGrid(radius=1.0, points=5, bandwidth=0.5)
    >>> grid.values.tolist(), grid.nearest(np.array([-7.0, 0.2, 0.3])).tolist()
    ([-1.0, -0.5, 0.0, 0.5, 1.0], [0, 2, 3])
    >>> grid.window
    (1023, 646, 162, 16, 1)
    """

    radius: float
    points: int
    bandwidth: float
    width: float | None = None

    def __post_init__(self) -> None:
        checks = {
            "radius": 0 < self.radius < math.inf,
            "points": type(self.points) is int and 2 <= self.points <= MOST_POINTS,
            "bandwidth": 0 < self.bandwidth < math.inf,
            "width": self.width is None or 0 < self.width < math.inf,
        }
        check_ranges("ParameterGrid", checks)

    @property
    def step(self) -> float:
        """Between two neighbouring points."""
        return 2 * self.radius / (self.points - 1)

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The points."""
        return np.linspace(-self.radius, self.radius, self.points)

    @property
    def highest(self) -> float:
        """The largest mass that one model can have in a window: that of its own value."""
        return float(self.mass(np.zeros(1))[0])

    @property
    def window(self) -> tuple[int, ...]:
        """The score that a value gives each point, by their distance in steps, in units."""
        steps = np.arange(self.points, dtype=np.float64) * self.step
        scores = np.rint(self.mass(steps) * (LEVELS / self.highest)).astype(np.int64)
        last = int(np.flatnonzero(scores)[-1])
        return tuple(int(score) for score in scores[: last + 1])

    def mass(self, away: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mass of one model's kernel in a window so far away: the direct formula."""
        half = (self.bandwidth if self.width is None else self.width) / 2
        found: npt.NDArray[np.float64] = ndtr((away + half) / self.bandwidth) - ndtr(
            (away - half) / self.bandwidth
        )
        return found

    def nearest(self, values: npt.NDArray[np.floating]) -> Integers:
        """The point nearest to each value; the middle one where a value is no number.

        Each value is looked at by itself.
        """
        with np.errstate(all="ignore"):
            places = np.rint((values.astype(np.float64) + self.radius) / self.step)
        places[~np.isfinite(values)] = (self.points - 1) // 2
        found: Integers = np.clip(places, 0, self.points - 1).astype(np.int64)
        return found
