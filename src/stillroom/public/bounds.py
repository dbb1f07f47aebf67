"""Hints: the adaptive norm bound of Wang et al. 2019, and what is made of the noisy answers.

The bound is how far a teacher's hints usually are from the auxiliary teacher's. It is free because
no sensitive record has a part in it: stand-ins, trained on public records as the teachers are on
theirs, answer the same public queries. Taken from the teachers themselves it would have to be paid
for; they hand out nothing it could be computed from.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput

Floats = npt.NDArray[np.floating]

MOST_UNITS = 1 << 40
"""A finer grid than any answer of an ensemble may have."""


@dataclass(frozen=True)
class PublicBound:
    """A clip that was found without a sensitive record, in grid units.

    Args:
        steps: the clip in grid units; fixed beforehand, so that the price does not wait for it.
        units: how many units one has.
        origin: which public records it comes from, in words.

    >>> PublicBound(steps=1024, units=2048, origin="an example").value
    Fraction(1, 2)
    """

    steps: int
    units: int
    origin: str

    @property
    def value(self) -> Fraction:
        """The clip itself."""
        return Fraction(self.steps, self.units)


def residual_norms(
    hidden: Floats, known: Floats, values: Floats, centre: Floats, ridge: float
) -> npt.NDArray[np.float64]:
    """How far one stand-in's hints are from the auxiliary teacher's, one length per query.

    Args:
        hidden: the stand-in's hidden layer at the queries.
        known: its hidden layer at the public records that the map is fitted to.
        values: the auxiliary teacher's hints of those.
        centre: the auxiliary teacher's hints at the queries.
        ridge: penalty of the map.
    """
    inputs = np.hstack([known, np.ones((len(known), 1))]).astype(np.float64)
    penalty = ridge * len(inputs) * np.eye(inputs.shape[1])
    own_map = np.linalg.solve(penalty + inputs.T @ inputs, inputs.T @ values)
    away = hidden @ own_map[:-1] + own_map[-1] - centre
    return np.asarray(np.linalg.norm(away, axis=1), dtype=np.float64)


def adaptive_bound(norms: npt.ArrayLike, *, steps: int, origin: str) -> PublicBound:
    """The median length of public residuals, rounded up to a whole number of grid units in one.

    Args:
        norms: lengths of stand-ins' residuals at public queries.
        steps: how many grid units the clip shall have.
        origin: which public records they come from.

    Raises:
        BadInput: the lengths are not finite numbers, or their median does not fit the grid.

    >>> adaptive_bound([0.2, 0.5, 3.0], steps=1024, origin="an example").value
    Fraction(1, 2)
    """
    lengths = np.asarray(norms)
    usable = lengths.dtype.kind == "f" and lengths.size > 0 and bool(np.isfinite(lengths).all())
    middle = float(np.median(lengths)) if usable else 0.0
    if not steps / MOST_UNITS <= middle <= steps:
        raise BadInput(
            "the residuals of the stand-ins give no bound",
            where="bound",
            why="a clip must be a length above 0 that the grid can hold",
            remedy="give finite lengths of public residuals, and scale the hints to about one",
        )
    return PublicBound(steps, int(steps / Fraction(middle)), origin)


def shrunk(means: npt.NDArray[np.float64], noise: float) -> npt.NDArray[np.float64]:
    """Noisy mean residuals times the share of their squared length that is not noise.

    The best linear estimate of residuals that have no direction in common (Wiener); the share is
    estimated from the rows themselves, which is post-processing. Hints are wide: without it the
    noise of a row is many times as long as what it carries.

    Args:
        means: noisy mean residuals, one row per query.
        noise: standard deviation of a coordinate.

    >>> shrunk(np.array([[3.0, 4.0], [0.0, -5.0]]), noise=1.0).round(2).tolist()
    [[2.76, 3.68], [0.0, -4.6]]
    """
    if not means.size:
        return means
    squared = float((means * means).sum(axis=1).mean())
    whole = max(squared, means.shape[1] * noise**2)
    return means * (1 - means.shape[1] * noise**2 / whole if whole else 0.0)
