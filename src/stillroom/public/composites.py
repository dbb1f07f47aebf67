"""Transfer pictures: new pictures made of public ones, for a teacher to label.

Where the public pictures lack some classes, their parts, turned over or put together anew, still
show strokes of those classes. Nothing here sees a label or a sensitive picture.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.randomness import integers, order

Scalar = TypeVar("Scalar", bound=np.generic)


def composites(pictures: npt.NDArray[Scalar], count: int, *, seed: int) -> npt.NDArray[Scalar]:
    """Pictures made of public ones, in a random order, a third each (as far as that goes).

    The upper part of one over the lower part of another, cut between a third and two thirds of the
    height; one turned by 180 degrees; one mirrored, left to right or top to bottom.

    Args:
        pictures: (pictures, height, width), or with colours as a fourth axis.
        count: how many to make.
        seed: of the draws.

    Raises:
        BadInput: fewer than two pictures, of fewer than two lines, or a count below 0.

    >>> composites(np.eye(4, dtype=np.uint8).reshape(2, 2, 4), 5, seed=7).shape
    (5, 2, 4)
    """
    _check_shape(pictures)
    size, height = pictures.shape[:2]
    if size < 2 or height < 2 or count < 0:
        raise BadInput(
            "fewer than two pictures or two lines, or a number of composites below 0",
            where="composites",
            why="a composite is made of parts of two pictures",
            remedy="give two pictures or more and a count of at least 0",
        )
    one = integers(seed, "composites", "one", size=count, below=size)
    step = 1 + integers(seed, "composites", "other", size=count, below=size - 1)
    kind = order(seed, "composites", "kind", size=count) % 3
    made = pictures[one]

    cut = kind == 0
    least, most = -(-height // 3), 2 * height // 3
    lines = least + integers(seed, "composites", "cut", size=count, below=most - least + 1)[cut]
    lower = np.arange(height) >= lines[:, None]
    lower = lower.reshape(lower.shape + (1,) * (pictures.ndim - 2))
    made[cut] = np.where(lower, pictures[(one + step)[cut] % size], made[cut])

    turned = kind == 1
    made[turned] = made[turned][:, ::-1, ::-1]

    coin = integers(seed, "composites", "mirror", size=count, below=2) == 1
    for which, axis in ((coin, 1), (~coin, 2)):
        mirrored = (kind == 2) & which
        made[mirrored] = np.flip(made[mirrored], axis=axis)
    return made


def _check_shape(pictures: npt.NDArray[Any]) -> None:
    if pictures.ndim not in (3, 4) or pictures.dtype.kind not in "iuf" or 0 in pictures.shape[1:]:
        raise BadInput(
            "these are no pictures",
            where="composites",
            why="parts of them cannot be told apart",
            remedy="give numbers as (pictures, height, width), or with colours as a fourth axis",
        )
