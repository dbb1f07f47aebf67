"""Augmentation: pictures again, each turned, shifted, scaled or mirrored a little.

`Views` moves each picture in its own way, for networks that anyone may look at. `Augment` moves all
pictures of a step alike, for DP-SGD: what happens to one record must not sway another's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from stillroom.randomness import integers, uniforms

_TOGETHER = 2000


@dataclass(frozen=True)
class Views:
    """How far a view may be from its picture.

    Args:
        count: how many views; the first is the picture itself.
        turn: the farthest turn, in degrees.
        shift: the farthest shift, as a share of the side.
        scale: the largest change of size, as a share.
        mirror: whether half of them are turned left to right.

    >>> Views(count=2, shift=0.1).of(np.zeros((5, 8, 8), np.uint8), seed=0).shape
    (2, 5, 8, 8)
    """

    count: int = 1
    turn: float = 0.0
    shift: float = 0.0
    scale: float = 0.0
    mirror: bool = False

    def of(self, pictures: npt.NDArray[Any], seed: int) -> npt.NDArray[Any]:
        """All views of all pictures, one after the other; same type as the pictures.

        Args:
            pictures: (N, height, width), with or without channels at the end.
            seed: of the views.
        """
        moved = [self.view(pictures, seed, number) for number in range(1, self.count)]
        return np.stack([pictures, *moved])

    def view(self, pictures: npt.NDArray[Any], seed: int, number: int) -> npt.NDArray[Any]:
        """One view of all pictures, by its number; number 0 is moved too.

        Args:
            pictures: (N, height, width), with or without channels at the end.
            seed: of the views.
            number: which one.
        """
        size = len(pictures)
        turn, right, down, scale, mirror = uniforms(seed, "view", number, size=(5, size)) * 2 - 1
        angle = np.deg2rad(self.turn) * turn
        zoom = np.exp(math.log1p(self.scale) * scale)
        facing = np.where((mirror < 0) & self.mirror, -1.0, 1.0)
        aspect = pictures.shape[1] / pictures.shape[2]
        tilt = np.sin(angle) * zoom
        rows = np.empty((size, 2, 3), dtype=np.float32)
        rows[:, 0] = np.stack([np.cos(angle) * zoom * facing, -tilt * aspect, right], 1)
        rows[:, 1] = np.stack([tilt / aspect * facing, np.cos(angle) * zoom, down], 1)
        rows[:, :, 2] *= 2 * self.shift
        parts = [
            _moved(pictures[at : at + _TOGETHER], torch.from_numpy(rows[at : at + _TOGETHER]))
            for at in range(0, size, _TOGETHER)
        ]
        return np.concatenate([*parts, pictures[:0]])


def _moved(pictures: npt.NDArray[Any], rows: torch.Tensor) -> npt.NDArray[Any]:
    flat = pictures.ndim == 3
    given = torch.from_numpy(pictures.astype(np.float32))
    given = given[:, None] if flat else given.permute(0, 3, 1, 2)
    grid = F.affine_grid(rows, list(given.shape), align_corners=False)
    seen = F.grid_sample(given, grid, align_corners=False)
    back = (seen[:, 0] if flat else seen.permute(0, 2, 3, 1)).numpy()
    exact = np.issubdtype(pictures.dtype, np.integer)
    return (np.rint(back) if exact else back).astype(pictures.dtype)


@dataclass(frozen=True)
class Augment:
    """Random shifts and mirror images, one for all records of a step and view.

    It is drawn for the step and not for the record, so that no record sways what happens to
    another. Borders are filled by reflection.

    Args:
        key: the recipe's seed.
        shift: the farthest shift in each direction, in pixels.
        mirror: whether to turn left and right around, half of the time.
    """

    key: int
    shift: int = 0
    mirror: bool = False

    def __call__(self, pictures: torch.Tensor, step: int, view: int) -> torch.Tensor:
        """The pictures of one view, as many and as large as before."""
        far, (height, width) = self.shift, pictures.shape[-2:]
        names = ("augment", step, view)
        down, right = integers(self.key, *names, "shift", size=2, below=2 * far + 1).tolist()
        wide = F.pad(pictures, (far, far, far, far), mode="reflect") if far else pictures
        seen = wide[..., down : down + height, right : right + width]
        turned = self.mirror and bool(integers(self.key, *names, "mirror", size=1, below=2)[0])
        return seen.flip(-1) if turned else seen
