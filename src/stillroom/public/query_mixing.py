"""New queries made of others: two pictures joined, or one with another contrast, edge and grain.

Nothing here sees a label or a record: the pictures are samples of a sketch, or random ones.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from stillroom.features.basis import Basis
from stillroom.randomness import normals, uniforms

Floats = npt.NDArray[np.float32]

CUT_FREQUENCIES, GRAIN_FREQUENCIES = 9, 120
BLUR, SHARPEST, FADED, BRIGHTEST = 1.0, 2.0, 0.15, 1.35
SILHOUETTE = 0.1
"""A pixel brighter than this share of white belongs to a picture's silhouette."""


def mixed_queries(one: Floats, other: Floats, *, seed: int) -> Floats:
    """Each picture of one kind joined with one of the other, in [0, 1]; a third each.

    Cut along a smooth random line; the silhouette of one filled with the other; the lighter pixel
    of both.

    Args:
        one: (count, height, width), or with channels as a fourth axis.
        other: as many.
        seed: of the draws.

    >>> mixed_queries(np.zeros((3, 4, 4), np.float32), np.ones((3, 4, 4), np.float32), seed=7).shape
    (3, 4, 4)
    """
    count = len(one)
    kind, soft = uniforms(seed, "mixed", size=(2, count)).astype(np.float32)
    cut = _fields(count, one.shape[1:3], CUT_FREQUENCIES, seed, "cut")
    share = np.clip(0.5 + cut * (1 + 7 * soft)[:, None, None], 0, 1)
    share = share[(...,) + (None,) * (one.ndim - 3)]
    joined = share * one + (1 - share) * other
    inside = np.clip(one / SILHOUETTE, 0, 1)
    filled = inside * (0.3 * one + 0.7 * other)
    picked: Floats = np.select(
        [_spread(kind, one) < 1 / 3, _spread(kind, one) < 2 / 3],
        [joined, filled],
        np.maximum(one, other),
    )
    return picked


def retouched(pictures: Floats, *, seed: int, share: float = 0.7) -> Floats:
    """A share of the pictures with sharper edges, a blacker ground, another light and grain.

    Args:
        pictures: in [0, 1].
        seed: of the draws.
        share: of the pictures that are changed.
    """
    count = len(pictures)
    drawn = uniforms(seed, "retouched", size=(5, count)).astype(np.float32)
    which, sharp, faded, bright, grain = (_spread(part, pictures) for part in drawn)
    sigmas = (0, BLUR, BLUR) + (0,) * (pictures.ndim - 3)
    made = pictures + SHARPEST * sharp * (pictures - gaussian_filter(pictures, sigmas))
    level = FADED * faded
    made = np.clip(made - level, 0, None) / (1 - level)
    top = made.max(axis=tuple(range(1, made.ndim)), keepdims=True)
    made *= (0.45 + (BRIGHTEST - 0.45) * bright) / np.maximum(top, 0.05)
    field = _fields(count, pictures.shape[1:3], GRAIN_FREQUENCIES, seed, "grain")
    field = field[(...,) + (None,) * (pictures.ndim - 3)]
    made *= 1 + 0.25 * np.maximum(2 * grain - 1, 0) * field
    return np.where(which < share, np.clip(made, 0, 1), pictures).astype(np.float32)


def _fields(count: int, sides: tuple[int, ...], frequencies: int, seed: int, name: str) -> Floats:
    """Smooth random fields of variance 1."""
    height, width = sides
    basis = Basis(height, width, min(frequencies, height * width))
    drawn = normals(seed, "mixed", name, size=(count, basis.count))
    drawn *= math.sqrt(height * width / basis.count)
    return basis.inverse(drawn).astype(np.float32)


def _spread(values: Floats, pictures: Floats) -> Floats:
    return values.reshape(-1, *(1,) * (pictures.ndim - 1))
