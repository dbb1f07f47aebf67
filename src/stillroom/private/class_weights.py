"""Class weights: public numbers that multiply a record's gradient before it is clipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput


def weight_per_class(given: Sequence[float] | None, classes: int) -> npt.NDArray[np.float64]:
    """One number per class; all 1 where none are given.

    Guarantee: none is above 1, so a residual stays on the grid of its sum, and the clip bounds what
    it bounded before.

    Raises:
        BadInput: there is not one number in (0, 1] for each class.

    >>> weight_per_class((0.1, 1), 2).tolist(), weight_per_class(None, 2).tolist()
    ([0.1, 1.0], [1.0, 1.0])
    """
    weights = np.ones(classes) if given is None else np.array(given, dtype=np.float64)
    # Not the other way round: a NaN must be refused too.
    if weights.shape != (classes,) or not ((weights > 0) & (weights <= 1)).all():
        raise BadInput(
            "the class weights are not one number in (0, 1] per class",
            where="class_weights",
            why="a residual would leave the grid of its sum",
            remedy="give one per class, and divide them by the largest",
        )
    return weights
