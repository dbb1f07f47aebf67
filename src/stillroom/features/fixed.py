"""Features that need no fitting: normalised pixels and pooled edge orientations.

Guarantee: row i depends on record i and public constants only, so no record moves another's row,
and every row has a Euclidean norm of at most 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput

Rows = npt.NDArray[np.float32]

_BIAS = 0.1
_ORIENTATIONS = 8
_CELLS = 4


def pixels(x: npt.NDArray[Any]) -> Rows:
    """Each record centred by its own mean, scaled to its own length, with a constant beside it.

    >>> rows = pixels(np.array([[[0, 4], [0, 0]], [[1, 1], [1, 1]]]))
    >>> rows.shape, bool((np.linalg.norm(rows, axis=1) <= 1).all())
    ((2, 5), True)
    """
    flat = x.reshape(len(x), -1).astype(np.float32)
    flat = flat - flat.mean(axis=1, keepdims=True)
    return _unit_rows(flat)


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
            remedy="use the features `pixels`",
        )
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
    both = [pooled.reshape(len(x), -1), pixels(x)[:, :-1] * pooled[0, 0].size ** 0.5]
    return _unit_rows(np.concatenate(both, axis=1))


def _pooling(size: int) -> Rows:
    """Triangular windows around the centres of the cells."""
    step = size / _CELLS
    centres = (np.arange(_CELLS) + 0.5) * step - 0.5
    away = np.abs(np.arange(size)[None, :] - centres[:, None])
    return np.clip(1 - away / (1.5 * step), 0, 1).astype(np.float32)


def _unit_rows(rows: Rows) -> Rows:
    """Rows of norm at most one, of which a constant is a fixed part."""
    norm = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    scaled = rows * (np.sqrt(1 - _BIAS**2) / np.maximum(norm, 1e-12))
    constant = np.full((len(rows), 1), _BIAS)
    return np.concatenate([scaled, constant], axis=1).astype(np.float32) * np.float32(1 - 1e-6)


FEATURES: Mapping[str, Callable[[npt.NDArray[Any]], Rows]] = {"pixels": pixels, "edges": edges}
"""The features a recipe can name."""
