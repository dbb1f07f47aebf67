"""Transfer pictures: new pictures made of public ones, for a teacher to label.

Where the public pictures lack some classes, their parts, turned over or put together anew, still
show strokes of those classes. Nothing here sees a label or a sensitive picture.
"""

from __future__ import annotations

from math import radians
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.randomness import Name, integers, order, uniforms

Scalar = TypeVar("Scalar", bound=np.generic)

BATCH = 2048
"""Pictures resampled at a time."""


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


def turned_and_shifted(
    pictures: npt.NDArray[Scalar],
    *names: Name,
    seed: int,
    degrees: float,
    shift: float,
    scale: float,
) -> npt.NDArray[Scalar]:
    """Copies, each turned, shifted and scaled a little in its own way; black where nothing was.

    Args:
        pictures: (pictures, height, width), or with colours as a fourth axis.
        names: what the copies are for, such as an epoch; other names, other copies.
        seed: of the draws.
        degrees: the largest turn, either way.
        shift: the largest shift, either way, as a share of the side.
        scale: the largest change of size, either way: 0.1 gives 0.9 to 1.1 times the size.

    Raises:
        BadInput: the shape or type is not that of pictures, or a bound is out of range.
    """
    import torch  # here: composites alone do without
    from torch.nn import functional as F

    _check_shape(pictures)
    if not (0 <= degrees <= 180 and 0 <= shift <= 1 and 0 <= scale < 1):
        raise BadInput(
            "a turn, shift or scale is out of range",
            where="turned_and_shifted",
            why="there is no such copy of a picture",
            remedy="give degrees in [0, 180], shift in [0, 1] and scale in [0, 1)",
        )
    size, height, width = pictures.shape[:3]
    drawn = 2 * uniforms(seed, "turned and shifted", *names, size=(4, size)) - 1
    angle, factor = radians(degrees) * drawn[0], 1 / (1 + scale * drawn[1])
    cosine, sine = np.cos(angle) * factor, np.sin(angle) * factor
    # Where a pixel of the copy comes from, sides running from -1 to 1: hence 2, and the aspect.
    across = np.stack([cosine, -sine * (height / width), 2 * shift * drawn[2]], axis=1)
    down = np.stack([sine * (width / height), cosine, 2 * shift * drawn[3]], axis=1)
    maps = np.stack([across, down], axis=1)

    working = np.result_type(pictures.dtype, np.float32)
    copies = np.empty_like(pictures)
    for start in range(0, size, BATCH):
        part = pictures[start : start + BATCH]
        planes = part.reshape(len(part), height, width, -1).transpose(0, 3, 1, 2)
        source = torch.from_numpy(np.ascontiguousarray(planes, dtype=working))
        theta = torch.from_numpy(maps[start : start + BATCH].astype(working))
        grid = F.affine_grid(theta, list(source.shape), align_corners=False)
        moved: npt.NDArray[Any] = F.grid_sample(source, grid, align_corners=False).numpy()
        moved = moved.transpose(0, 2, 3, 1).reshape(part.shape)
        copies[start : start + BATCH] = np.rint(moved) if pictures.dtype.kind in "iu" else moved
    return copies


def _check_shape(pictures: npt.NDArray[Any]) -> None:
    if pictures.ndim not in (3, 4) or pictures.dtype.kind not in "iuf" or 0 in pictures.shape[1:]:
        raise BadInput(
            "these are no pictures",
            where="composites",
            why="parts of them cannot be told apart",
            remedy="give numbers as (pictures, height, width), or with colours as a fourth axis",
        )
