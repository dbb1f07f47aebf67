"""A mixture of Gaussians for each class, made of noisy sums; all of it is post-processing.

Noise is known, so it is taken out where that can be done: centres are shrunk by the share of
their variance that is noise, and a class's covariance is drawn towards the pooled one by the share
of the distance that noise alone would explain (James and Stein).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.features.basis import DIAGONAL, OFF_DIAGONAL, Basis, Reals, matrix_of
from stillroom.public.retouch import sharpened, warped
from stillroom.randomness import integers, normals, uniforms
from stillroom.vocabulary import Integers, Sanitised

LEAST_VARIANCE = 1e-3
"""No direction is thinner: what is below is noise."""

HEARD = 2.0
"""A noisy count below so many standard deviations of its noise says nothing about its cell."""

BLOCK = 4096

_TABLES = ("weights", "centres", "directions", "covariances")


def class_means(
    noisy: Sanitised[Integers], classes: int, *, radius: float, grid: int, sigma: float
) -> tuple[Reals, Reals]:
    """The noisy counts and means of the classes, from sums of [coefficients, radius].

    Args:
        noisy: the sums, in grid units.
        classes: how many there are.
        radius: the largest norm of one record, which the means keep too.
        grid: grid units in a length of one.
        sigma: the noise, in grid units.
    """
    table = noisy.value.reshape(classes, -1) / grid
    counts = table[:, -1] / radius
    means = table[:, :-1] / np.maximum(counts, HEARD * sigma / grid / radius)[:, None]
    length = np.sqrt((means * means).sum(axis=1, keepdims=True))
    return counts, means * np.minimum(1.0, radius / np.maximum(length, 1e-12))


def principal(
    noisy: Sanitised[Integers], keep: int, *, records: float, grid: int
) -> tuple[Reals, Reals]:
    """The largest variances of a noisy second moment and their directions, one per column.

    Args:
        noisy: the triangle of the second moment, in grid units squared.
        keep: how many directions.
        records: how many records it sums over, about.
        grid: grid units in a length of one.
    """
    moment = matrix_of(noisy.value.reshape(-1)) / (grid * grid * max(records, 1.0))
    variances, directions = np.linalg.eigh(moment)
    first = directions[:, ::-1][:, :keep]
    # The sign of an eigenvector is the library's choice; a run must find the same one elsewhere.
    largest = first[np.abs(first).argmax(axis=0), np.arange(keep)]
    return np.maximum(variances[::-1][:keep], LEAST_VARIANCE), first * np.sign(largest)


def first_centres(seed: int, classes: int, near: int, variances: Reals) -> Reals:
    """Random centres as wide as the classes themselves, (classes, centres, directions)."""
    drawn = normals(seed, "sketch", "centres", size=(classes, near, len(variances)))
    return drawn * np.sqrt(variances)


def moved_centres(
    noisy: Sanitised[Integers],
    centres: Reals,
    variances: Reals,
    *,
    radius: float,
    grid: int,
    sigma: float,
) -> tuple[Reals, Reals]:
    """The weights and the new places of the centres after one noisy step of Lloyd's.

    Args:
        noisy: sums of [residual, radius] by class and nearest centre, in grid units.
        centres: the old places; a centre that hardly any record is near to stays there.
        variances: of the directions.
        radius: the largest norm of a residual.
        grid: grid units in a length of one.
        sigma: the noise, in grid units.
    """
    table = noisy.value.reshape(*centres.shape[:2], -1) / grid
    counts = table[..., -1:] / radius
    least = HEARD * sigma / grid / radius
    used = np.maximum(counts, least)
    noise = (sigma / grid / used) ** 2
    places = table[..., :-1] / used * (variances / (variances + noise))
    return np.maximum(counts[..., 0], 0.0), np.where(counts > least, places, centres)


def covariances(noisy: Sanitised[Integers], counts: Reals, *, grid: int, sigma: float) -> Reals:
    """The covariance of each class around its centres, drawn towards the pooled one.

    Args:
        noisy: the triangles of the classes' second moments, in grid units squared.
        counts: how many records each sums over, about.
        grid: grid units in a length of one.
        sigma: the noise, in grid units squared.
    """
    moments = matrix_of(noisy.value.reshape(len(counts), -1)) / grid**2
    pooled = moments.sum(axis=0) / max(counts.sum(), 1.0)
    used = np.maximum(counts, 1.0)
    apart = moments / used[:, None, None] - pooled
    size = pooled.shape[0]
    entries = size / DIAGONAL**2 + size * (size - 1) / OFF_DIAGONAL**2
    by_chance = entries * (sigma / grid**2 / used) ** 2
    kept = np.maximum(0.0, 1 - by_chance / np.maximum((apart**2).sum(axis=(1, 2)), 1e-30))
    variances, axes = np.linalg.eigh(pooled + kept[:, None, None] * apart)
    floored = np.maximum(variances, LEAST_VARIANCE)
    shrunk: Reals = (axes * floored[:, None, :]) @ axes.transpose(0, 2, 1)
    return shrunk


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians around some centres for each class, in a public basis, to draw pictures from.

    Guarantee: made of sanitised values and public numbers only, so every sample is free.

    Args:
        weights: (classes, centres), how often a centre is drawn; negative ones never.
        centres: (classes, centres, coefficients).
        directions: (coefficients, directions), along which the samples spread.
        covariances: (classes, directions, directions).
        basis: of the coefficients.

    >>> blank = Mixture(np.ones((2, 1)), np.zeros((2, 1, 4)), np.eye(4), np.ones((2, 4, 4)),
    ...                 Basis(5, 5, 4))
    >>> pictures, classes = blank.sample(7, 3)
    >>> pictures.shape, len(classes)
    ((3, 5, 5), 3)
    """

    weights: Reals
    centres: Reals
    directions: Reals
    covariances: Reals
    basis: Basis

    def __post_init__(self) -> None:
        classes, near, kept = self.centres.shape if self.centres.ndim == 3 else (0, 0, 0)
        size = self.directions.shape[1] if self.directions.ndim == 2 else 0
        expected = {
            "weights": (classes, near),
            "centres": (classes, near, self.basis.count),
            "directions": (kept, size),
            "covariances": (classes, size, size),
        }
        for name, shape in expected.items():
            values = getattr(self, name)
            if values.shape != shape or 0 in shape or not np.isfinite(values).all():
                raise BadInput(
                    f"{name} cannot be those of a mixture",
                    where=name,
                    why=f"finite numbers of shape {shape} are needed",
                    remedy="give the arrays of one mixture, unchanged",
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture."""
        return self.basis.height, self.basis.width

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it as plain arrays by name, for a file; `of` reads them."""
        size = (self.basis.height, self.basis.width, self.basis.count)
        named = {name: np.array(getattr(self, name)) for name in _TABLES}
        return {**named, "basis": np.array(size, dtype=np.int64)}

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Mixture:
        """The mixture that has these arrays.

        Raises:
            BadInput: they are not those of a mixture.

        >>> blank = Mixture(np.ones((2, 1)), np.zeros((2, 1, 4)), np.eye(4), np.ones((2, 4, 4)),
        ...                 Basis(5, 5, 4))
        >>> sorted(Mixture.of(blank.arrays()).arrays())
        ['basis', 'centres', 'covariances', 'directions', 'weights']
        """
        try:
            height, width, count = (int(number) for number in arrays["basis"])
            tables = {name: np.array(arrays[name], dtype=np.float64) for name in _TABLES}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                "these arrays are not a mixture",
                where="mixture",
                why=f"they need numbers named basis, {', '.join(_TABLES)}",
                remedy="give the arrays of one mixture, unchanged",
            ) from error
        return cls(**tables, basis=Basis(height, width, count))

    def sample(
        self,
        seed: int,
        count: int,
        *,
        scale: tuple[float, float] = (1.0, 1.2),
        sharpen: float = 0.0,
        warp: float = 0.0,
        among: Sequence[int] | None = None,
    ) -> tuple[npt.NDArray[np.float32], Integers]:
        """Pictures in [0, 1] and the classes they were drawn for, all classes alike.

        Args:
            seed: of the draws; the same one gives the same pictures.
            count: how many.
            scale: between which factors the spread of a picture is widened.
            sharpen: the share of the pictures whose contrast is raised.
            warp: the share of the pictures that are mildly turned, stretched and bent.
            among: the classes that are drawn; all, where it is None.

        Raises:
            BadInput: the count or a share is out of range.
        """
        if count < 0 or not (0 <= sharpen <= 1 and 0 <= warp <= 1):
            raise BadInput(
                "a number of samples below 0, or a share outside [0, 1]",
                where="sample",
                why="there is no such part of the samples",
                remedy="give a count of at least 0 and shares such as 0.5",
            )
        wanted = np.arange(len(self.weights)) if among is None else np.array(among, dtype=np.int64)
        classes = wanted[integers(seed, "mixture", "class", size=count, below=len(wanted))]
        chosen = uniforms(seed, "mixture", "centre", size=count)
        near = (chosen[:, None] >= self._cumulative()[classes]).sum(axis=1)
        wide = scale[0] + (scale[1] - scale[0]) * uniforms(seed, "mixture", "scale", size=count)
        spread = normals(seed, "mixture", "spread", size=(count, self.directions.shape[1]))
        spread *= wide[:, None]
        for which, shape in enumerate(self._roots()):
            spread[classes == which] = spread[classes == which] @ shape.T
        pictures = np.empty((count, self.basis.height, self.basis.width), dtype=np.float32)
        for start in range(0, count, BLOCK):
            part = slice(start, start + BLOCK)
            places = self.centres[classes[part], near[part]]
            drawn = self.basis.inverse(places + spread[part] @ self.directions.T)
            drawn = sharpened(np.clip(drawn, 0.0, 1.0), seed, start, sharpen)
            pictures[part] = warped(drawn, seed, start, warp)
        return pictures, classes

    def _cumulative(self) -> Reals:
        """The upper ends of the centres' shares, but the last; even where no weight is left."""
        weights = np.maximum(self.weights, 0.0)
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
        shares: Reals = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        return shares

    def _roots(self) -> Reals:
        variances, axes = np.linalg.eigh(self.covariances)
        roots: Reals = axes * np.sqrt(np.maximum(variances, 0.0))[:, None, :]
        return roots
