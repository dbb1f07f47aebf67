"""A mixture of Gaussians for each class, made of noisy sums; all of it is post-processing.

Noise is known, so it is taken out where that can be done: centres are shrunk by the share of
their variance that is noise, and a class's covariance is drawn towards the pooled one by the share
of the distance that noise alone would explain (James and Stein).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.features.basis import DIAGONAL, OFF_DIAGONAL, Basis, Reals, matrix_of
from stillroom.randomness import integers, normals, uniforms
from stillroom.vocabulary import Integers, Sanitised

LEAST_VARIANCE = 1e-3
"""No direction is thinner: what is below is noise."""

HEARD = 2.0
"""A noisy count below so many standard deviations of its noise says nothing about its cell."""

BLOCK = 4096

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
    """The largest variances of a noisy second moment and their directions, one a column.

    Args:
        noisy: the triangle of the second moment, in grid units squared.
        keep: how many directions.
        records: how many records it sums over, about.
        grid: grid units in a length of one.
    """
    moment = matrix_of(noisy.value.reshape(-1)) / (grid * grid * max(records, 1.0))
    variances, directions = np.linalg.eigh(moment)
    first = directions[:, ::-1][:, :keep]
    # An eigenvector's sign is the library's whim; a run that goes on elsewhere needs the same one.
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

    def sample(
        self,
        seed: int,
        count: int,
        *,
        scale: tuple[float, float] = (1.0, 1.2),
        sharpen: float = 0.0,
        warp: float = 0.0,
    ) -> tuple[npt.NDArray[np.float32], Integers]:
        """Pictures in [0, 1] and the classes they were drawn for, all classes alike.

        Args:
            seed: of the draws; the same one gives the same pictures.
            count: how many.
            scale: between which factors the spread of a picture is widened.
            sharpen: the share of the pictures whose contrast is raised.
            warp: the share of the pictures that are mildly turned, stretched and bent.

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
        classes = integers(seed, "mixture", "class", size=count, below=len(self.weights))
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
            drawn = _sharpened(np.clip(drawn, 0.0, 1.0), seed, start, sharpen)
            pictures[part] = _warped(drawn, seed, start, warp)
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


def _sharpened(pictures: Reals, seed: int, place: int, share: float) -> Reals:
    """A share of the pictures with a contrast raised by a sigmoid; black and white stay."""
    drawn = uniforms(seed, "sharpen", place, size=(3, len(pictures)))
    which = drawn[0] < share
    slope = _between(SLOPES, drawn[1, which])[:, None, None]
    threshold = _between(THRESHOLDS, drawn[2, which])[:, None, None]
    low, high = _sigmoid(-slope * threshold), _sigmoid(slope * (1 - threshold))
    result = pictures.copy()
    result[which] = (_sigmoid(slope * (pictures[which] - threshold)) - low) / (high - low)
    return result


def _warped(pictures: Reals, seed: int, place: int, share: float) -> Reals:
    """A share of the pictures mildly turned, stretched, sheared, shifted and bent."""
    which = uniforms(seed, "warp", place, size=len(pictures)) < share
    if not which.any():
        return pictures
    count, (height, width) = int(which.sum()), pictures.shape[1:]
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
    result[which] = _looked_up(pictures[which], rows, columns)
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
    padded = np.pad(pictures, ((0, 0), (1, 1), (1, 1)))
    tall, wide = padded.shape[1:]
    rows = np.clip(rows + 1, 0, tall - 1.001)
    columns = np.clip(columns + 1, 0, wide - 1.001)
    top, left = rows.astype(np.int64), columns.astype(np.int64)
    down, across = rows - top, columns - left
    corner = (np.arange(len(pictures))[:, None, None] * tall + top) * wide + left
    flat = padded.reshape(-1)
    above = flat.take(corner) * (1 - across) + flat.take(corner + 1) * across
    corner += wide
    below = flat.take(corner) * (1 - across) + flat.take(corner + 1) * across
    blended: Reals = above * (1 - down) + below * down
    return blended


def _between(ends: tuple[float, float], share: Reals) -> Reals:
    return ends[0] + (ends[1] - ends[0]) * share


def _sigmoid(x: Reals) -> Reals:
    positive: Reals = 1 / (1 + np.exp(-x))
    return positive
