"""Pictures made more varied: contrast raised, strokes mildly turned, stretched and bent."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import map_coordinates

from stillroom.features.basis import Basis, Reals
from stillroom.randomness import normals, uniforms

SLOPES = (4.0, 14.0)
THRESHOLDS = (0.3, 0.5)
"""Strokes are dark or light: a sigmoid in these ranges sets them apart."""

TURN = 0.15
STRETCH = 0.1
SHEAR = 0.15
SHIFT = 0.04
BEND = 0.015
"""The bounds of a turn, in radians, of stretch and shear; shift and bend in shares of a side."""

_BENDS = 10


def sharpened(pictures: Reals, seed: int, place: int, share: float) -> Reals:
    """A share of the pictures with a contrast raised by a sigmoid; black and white stay."""
    drawn = uniforms(seed, "sharpen", place, size=(3, len(pictures)))
    which = drawn[0] < share
    each = (-1, *[1] * (pictures.ndim - 1))
    slope = _between(SLOPES, drawn[1, which]).reshape(each)
    threshold = _between(THRESHOLDS, drawn[2, which]).reshape(each)
    low, high = _sigmoid(-slope * threshold), _sigmoid(slope * (1 - threshold))
    result = pictures.copy()
    result[which] = (_sigmoid(slope * (pictures[which] - threshold)) - low) / (high - low)
    return result


def warped(pictures: Reals, seed: int, place: int, share: float) -> Reals:
    """A share of the pictures mildly turned, stretched, sheared, shifted and bent."""
    which = uniforms(seed, "warp", place, size=len(pictures)) < share
    if not which.any():
        return pictures
    count, (height, width) = int(which.sum()), pictures.shape[1:3]
    turn, tall, wide, shear, down, across = 2 * uniforms(seed, "affine", place, size=(6, count)) - 1
    turn, shear = TURN * turn, SHEAR * shear
    tall, wide = 1 + STRETCH * tall, 1 + STRETCH * wide
    matrix = np.array(
        [
            [np.cos(turn) * tall, -np.sin(turn) * wide],
            [np.sin(turn) * tall, np.cos(turn) * wide + shear],
        ]
    )
    y, x = np.mgrid[:height, :width] - np.array([height - 1, width - 1])[:, None, None] / 2
    bend = _bends(seed, place, count, height, width)
    rows = matrix[0, 0][:, None, None] * y + matrix[0, 1][:, None, None] * x + bend[0]
    columns = matrix[1, 0][:, None, None] * y + matrix[1, 1][:, None, None] * x + bend[1]
    rows += (height - 1) / 2 + (SHIFT * height * down)[:, None, None]
    columns += (width - 1) / 2 + (SHIFT * width * across)[:, None, None]
    result = pictures.copy()
    planes = pictures.reshape(*pictures.shape[:3], -1)[which]
    moved = [_looked_up(planes[..., plane], rows, columns) for plane in range(planes.shape[3])]
    result[which] = np.stack(moved, axis=3).reshape(count, *pictures.shape[1:])
    return result


def _bends(seed: int, place: int, count: int, height: int, width: int) -> Reals:
    """Smooth displacements in pixels, (2, count, height, width), from a few low frequencies."""
    basis = Basis(height, width, min(_BENDS, height * width))
    drawn = normals(seed, "elastic", place, size=(2 * count, basis.count))
    drawn[:, 0] = 0.0  # a constant displacement is a shift
    fields = basis.inverse(drawn * np.sqrt(height * width / basis.count))
    sides = np.array([height, width], dtype=np.float64)[:, None, None, None]
    return fields.reshape(2, count, height, width) * (BEND * sides)


def _looked_up(pictures: Reals, rows: Reals, columns: Reals) -> Reals:
    """The pictures at real places, by the four pixels around each; black outside."""
    own = np.broadcast_to(np.arange(len(pictures))[:, None, None], rows.shape)
    found: Reals = map_coordinates(pictures, [own, rows, columns], order=1, mode="grid-constant")
    return found


def _between(ends: tuple[float, float], share: Reals) -> Reals:
    return ends[0] + (ends[1] - ends[0]) * share


def _sigmoid(x: Reals) -> Reals:
    positive: Reals = 1 / (1 + np.exp(-x))
    return positive
