"""Queries made of samples: with other edges, light and grain, joined, or random ones like them.

Nothing here sees a label or a record: the pictures are samples of a sketch, or random ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter, median_filter

from stillroom.features.basis import Basis
from stillroom.public.structured_queries import structured_queries
from stillroom.randomness import normals, uniforms

Floats = npt.NDArray[np.float32]

CUT, FILLED = 0.35, 0.85
"""Below the first a pair is cut along a line, below the second a silhouette is filled; the rest
takes the lighter pixel of both."""
THRESHOLDS, EDGE = (0.06, 0.3), 0.15
"""A silhouette is what is brighter than a threshold, as a share of white; its edge is so soft."""
CUT_FREQUENCIES, SHADE_FREQUENCIES, GRAIN_FREQUENCIES = 9, 12, 120
OUTLINE_FREQUENCIES = 49
SMOOTHED, BLUR, SHARPEST, FADED = 0.5, 1.0, 2.0, 0.15
DARKEST, BRIGHTEST, GRAIN = 0.45, 1.35, 0.25


@dataclass(frozen=True)
class Variety:
    """How many queries of each kind are made of samples.

    Args:
        plain: samples, most of them retouched.
        mixed: samples joined with another sample, or with a random picture.
        structured: random pictures that are like a sample.
        candidates: random pictures that each of these is chosen from.

    >>> Variety(plain=2, mixed=4, structured=1).samples
    9
    """

    plain: int
    mixed: int
    structured: int
    candidates: int = 8

    @property
    def samples(self) -> int:
        """How many are used: half of the joined pictures take two."""
        return sum(self._parts)

    def of(self, samples: Floats, *, seed: int) -> Floats:
        """The queries, in [0, 1].

        Args:
            samples: pictures in [0, 1], as many as are used.
            seed: of the draws.
        """
        plain, one, other, wanted = np.split(samples, np.cumsum(self._parts)[:-1])
        size = max(self.candidates * self.structured, self.mixed)
        pool = structured_queries(size, samples.shape[1:], seed=seed)
        other = np.concatenate([other, pool[: self.mixed - len(other)]])
        mixed = mixed_queries(one, other, seed=seed)
        return np.concatenate([retouched(plain, seed=seed), mixed, lookalikes(pool, wanted)])

    @property
    def _parts(self) -> tuple[int, ...]:
        return self.plain, self.mixed, self.mixed // 2, self.structured


def mixed_queries(one: Floats, other: Floats, *, seed: int) -> Floats:
    """Each picture joined with its partner, in [0, 1].

    Cut along a smooth random line; or the silhouette of one, with a crisp edge, filled with its
    own light, an even grey and the other; or the lighter pixel of both.

    Args:
        one: (count, height, width), or with channels as a fourth axis.
        other: as many.
        seed: of the draws.

    >>> mixed_queries(np.zeros((3, 4, 4), np.float32), np.ones((3, 4, 4), np.float32), seed=7).shape
    (3, 4, 4)
    """
    drawn = uniforms(seed, "mixed", size=(6, len(one))).astype(np.float32)
    kind, soft, level, *parts, grey = (_spread(part, one) for part in drawn)
    cut = _fields(one, CUT_FREQUENCIES, seed, "cut")
    share = np.clip(0.5 + cut * (1 + 7 * soft), 0, 1)
    joined = share * one + (1 - share) * other
    low, high = THRESHOLDS
    inside = np.clip((_blurred(one, BLUR / 2) - low - (high - low) * level) / EDGE, 0, 1)
    shade = np.clip(grey * (1 + 0.3 * _fields(one, SHADE_FREQUENCIES, seed, "shade")), 0, 1)
    own, foreign = parts[0] ** 2, (1 - parts[0] ** 2) * parts[1] ** 2
    filled = inside * (own * one + foreign * other + (1 - own - foreign) * shade)
    picked: Floats = np.where(
        kind < CUT, joined, np.where(kind < FILLED, filled, np.maximum(one, other))
    )
    return picked


def lookalikes(candidates: Floats, wanted: Floats) -> Floats:
    """For each wanted picture a candidate that is like it, by low frequencies, whatever its light.

    Random pictures that are chosen by samples of a sketch have the samples' outlines, and the
    edges that the samples lack.

    Args:
        candidates: what to choose from, each at most once; at least as many.
        wanted: what to look like; the first one chooses first.

    >>> few = np.eye(16, dtype=np.float32).reshape(16, 4, 4)
    >>> bool(np.array_equal(lookalikes(few, few[:5] / 2), few[:5]))
    True
    """
    outlines, taken = _outline(candidates), np.zeros(len(candidates), dtype=np.float32)
    chosen = np.empty(len(wanted), dtype=np.int64)
    for place, outline in enumerate(_outline(wanted)):
        chosen[place] = (outlines @ outline - taken).argmax()
        taken[chosen[place]] = np.inf
    picked: Floats = candidates[chosen]
    return picked


def retouched(pictures: Floats, *, seed: int, share: float = 0.7) -> Floats:
    """A share of the pictures with cleaner and sharper edges, another light, and grain.

    Args:
        pictures: in [0, 1].
        seed: of the draws.
        share: of the pictures that are changed.
    """
    drawn = uniforms(seed, "retouched", size=(6, len(pictures))).astype(np.float32)
    which, smooth, sharp, faded, bright, grain = (_spread(part, pictures) for part in drawn)
    # A median takes waves away and leaves edges.
    sides = (1, 3, 3) + (1,) * (pictures.ndim - 3)
    made = np.where(smooth < SMOOTHED, median_filter(pictures, size=sides), pictures)
    made = made + SHARPEST * sharp * (made - _blurred(made, BLUR))
    level = FADED * faded
    made = np.clip(made - level, 0, None) / (1 - level)
    top = made.max(axis=tuple(range(1, made.ndim)), keepdims=True)
    made *= (DARKEST + (BRIGHTEST - DARKEST) * bright) / np.maximum(top, 0.05)
    rough = np.maximum(2 * grain - 1, 0)
    made *= 1 + GRAIN * rough * _fields(pictures, GRAIN_FREQUENCIES, seed, "grain")
    changed: Floats = np.where(which < share, np.clip(made, 0, 1), pictures)
    return changed


def _blurred(pictures: Floats, sigma: float) -> Floats:
    blurred: Floats = gaussian_filter(pictures, (0, sigma, sigma) + (0,) * (pictures.ndim - 3))
    return blurred


def _fields(pictures: Floats, frequencies: int, seed: int, name: str) -> Floats:
    """Smooth random fields of variance 1, as large as the pictures, the same in all channels."""
    height, width = pictures.shape[1:3]
    basis = Basis(height, width, min(frequencies, height * width))
    drawn = normals(seed, "mixed", name, size=(len(pictures), basis.count))
    fields = basis.inverse(drawn * math.sqrt(height * width / basis.count))
    return fields.reshape(len(pictures), height, width, *(1,) * (pictures.ndim - 3)).astype(
        np.float32
    )


def _outline(pictures: Floats) -> Floats:
    height, width = pictures.shape[1:3]
    matrix = Basis(height, width, min(OUTLINE_FREQUENCIES, height * width)).matrix
    planes = pictures.reshape(len(pictures), height * width, math.prod(pictures.shape[3:]))
    rows = np.einsum("npc,kp->nkc", planes, matrix.astype(np.float32), optimize=True)
    rows = rows.reshape(len(pictures), math.prod(rows.shape[1:]))
    outline: Floats = rows / (np.linalg.norm(rows, axis=1, keepdims=True) + math.sqrt(width) / 10)
    return outline


def _spread(values: Floats, pictures: Floats) -> Floats:
    return values.reshape(-1, *(1,) * (pictures.ndim - 1))
