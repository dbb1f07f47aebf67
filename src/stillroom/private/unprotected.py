"""Numbers that leave as they are: what a published method shows without protection."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.vocabulary import Bounded, Norm, Sensitivity

Doubles = npt.NDArray[np.float64]
GRID = 1 << 16
"""Units of 1."""
LARGEST = 1 << 40
"""No answer is larger, in units."""
UNPROTECTED = Sensitivity(Norm.L2_SQUARED, {})


def unprotected(answers: Doubles, grid: int = GRID) -> Bounded:
    """Numbers as one row, in units of 1/grid, that leave as they are."""
    with np.errstate(all="ignore"):
        units = np.clip(np.rint(answers.ravel() * grid), -LARGEST, LARGEST)
    return Bounded(np.nan_to_num(units, nan=0.0).astype(np.int64)[None], UNPROTECTED)
