"""Features that need no fitting: normalised pixels and pooled edge orientations.

Guarantee: row i depends on record i and public constants only, so no record moves another's row,
and every row has a Euclidean norm of at most 1. Of a record too large for single precision the row
may hold what is no number; nothing is said of it, and the private room takes it for blank (K10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput

Rows = npt.NDArray[np.float32]

BIAS = 0.1
"""The constant beside the features, in a row of norm 1."""
NEARLY_ONE = np.float32(1 - 1e-6)
"""Rounding must not make a row longer than 1."""
_ORIENTATIONS = 8
_CELLS = 4
_SHORT = 1.0
"""The pixels of a picture that is not blank alone have norm 4 beside its edges."""
_BLANK = 1e-3
"""Contrast below a thousandth of a record's size is rounding, and must not be blown up."""


def pixels(x: npt.NDArray[Any]) -> Rows:
    """Each record centred by its own mean, scaled to its own length, with a constant beside it.

    >>> rows = pixels(np.array([[[0, 4], [0, 0]], [[1, 1], [1, 1]]]))
    >>> rows.shape, bool((np.linalg.norm(rows, axis=1) <= 1).all())
    ((2, 5), True)
    """
    with np.errstate(all="ignore"):
        flat = x.reshape(len(x), math.prod(x.shape[1:])).astype(np.float32)
        centred = flat - flat.mean(axis=1, keepdims=True)
        return _unit_rows(centred, least=_BLANK * _norms(flat))


def edges(x: npt.NDArray[Any]) -> Rows:
    """How strong the edges of each orientation are in each cell of a picture, beside its pixels.

    Gradients are shared out among eight orientations and pooled in a grid of four by four
    overlapping cells, each cell normalised by itself.

    Raises:
        BadInput: a record is not a picture.
    """
    if x.ndim not in (3, 4) or min(x.shape[1:3]) < _CELLS:
        raise BadInput(
            f"edge orientations need pictures of at least {_CELLS}x{_CELLS}, got {x.shape[1:]}",
            where="features",
            why="other records have no edges",
            remedy='write name = "pixels" under [features]',
        )
    with np.errstate(all="ignore"):
        return _edges(x)


def _edges(x: npt.NDArray[Any]) -> Rows:
    picture = x.astype(np.float32)
    if picture.ndim == 4:
        picture = picture.mean(axis=3)
    down, across = np.gradient(picture, axis=(1, 2))
    strength = np.hypot(down, across)
    turn = (np.arctan2(down, across) % np.pi) / np.pi * _ORIENTATIONS
    maps = [
        strength
        * np.clip(
            1 - np.abs((turn - o + _ORIENTATIONS / 2) % _ORIENTATIONS - _ORIENTATIONS / 2), 0, 1
        )
        for o in range(_ORIENTATIONS)
    ]
    oriented = np.stack(maps, axis=1)
    pooled = _pooling(x.shape[1]) @ oriented @ _pooling(x.shape[2]).T
    pooled /= np.sqrt((pooled**2).sum(axis=1, keepdims=True)) + 1e-6
    cells = pooled.reshape(len(x), _ORIENTATIONS * _CELLS**2)
    both = [cells, pixels(x)[:, :-1] * _CELLS]
    return _unit_rows(np.concatenate(both, axis=1), least=_SHORT)


def _pooling(size: int) -> Rows:
    """Triangular windows around the centres of the cells."""
    step = size / _CELLS
    centres = (np.arange(_CELLS) + 0.5) * step - 0.5
    away = np.abs(np.arange(size)[None, :] - centres[:, None])
    return np.clip(1 - away / (1.5 * step), 0, 1).astype(np.float32)


def _norms(rows: Rows) -> npt.NDArray[np.float64]:
    norms: npt.NDArray[np.float64] = np.sqrt(
        (rows.astype(np.float64) ** 2).sum(axis=1, keepdims=True)
    )
    return norms


def _unit_rows(rows: Rows, least: npt.NDArray[np.float64] | float = 0.0) -> Rows:
    """Rows of norm at most one, a constant beside them; what is shorter than `least` is blank."""
    longest = np.maximum(np.maximum(_norms(rows), least), 1e-12)
    scaled = rows * (np.sqrt(1 - BIAS**2) / longest)
    constant = np.full((len(rows), 1), BIAS)
    return np.concatenate([scaled, constant], axis=1).astype(np.float32) * NEARLY_ONE


FEATURES: Mapping[str, Callable[[npt.NDArray[Any]], Rows]] = {"pixels": pixels, "edges": edges}
"""The features a recipe can name."""
