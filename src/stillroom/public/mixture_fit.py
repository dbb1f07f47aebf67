"""A mixture of Gaussians for each class, fitted to noisy sums; all of it is post-processing.

Noise is known, so it is taken out where that can be done: centres are shrunk by the share of
their variance that is noise, and a class's covariance is drawn towards the pooled one by the share
of the distance that noise alone would explain (James and Stein).

Directions may be scaled before they are summed along. The noise is alike in all directions, and a
Gaussian is told from another by distances in units of its own spread, so fully scaled ones waste
the least of it.
"""

from __future__ import annotations

import numpy as np

from stillroom.features.basis import DIAGONAL, OFF_DIAGONAL, Reals, matrix_of
from stillroom.public.mixture import LEAST_VARIANCE
from stillroom.randomness import normals
from stillroom.vocabulary import Integers, Sanitised

HEARD = 2.0
"""A noisy count below so many standard deviations of its noise says nothing about its cell."""

CLUSTERS = 0.5
COVARIANCES = 1.0
"""How far directions are scaled alike: centres are sought half way, or thin directions, which hold
little of a picture, would decide who is near."""

THINNEST = (0.03, 0.5)
FLOOR = 0.6
"""A class is at least so thin in a direction, in shares of the pooled variance: 0.6 of the largest
eigenvalue of the noise, between these."""


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


def shrunk_means(means: Reals, counts: Reals, *, grid: int, sigma: float) -> Reals:
    """Class means drawn to their common mean, coefficient by coefficient, as far as noise explains.

    Where classes do not differ, noise would be a mark by which they could be told apart.

    Args:
        means: one row of coefficients per class.
        counts: how many records each is the mean of, about.
        grid: grid units in a length of one.
        sigma: the noise of their sums, in grid units.
    """
    common = means.mean(axis=0)
    between = ((means - common) ** 2).sum(axis=0) / max(len(means) - 1, 1)
    by_chance = np.mean((sigma / grid / np.maximum(counts, 1.0)) ** 2)
    kept = np.maximum(0.0, 1 - by_chance / np.maximum(between, 1e-30))
    shrunk: Reals = common + kept * (means - common)
    return shrunk


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
    variances, directions = _spectrum(noisy, records, grid)
    first = directions[:, :keep]
    # The sign of an eigenvector is the library's choice; a run must find the same one elsewhere.
    largest = first[np.abs(first).argmax(axis=0), np.arange(keep)]
    return np.maximum(variances[:keep], LEAST_VARIANCE), first * np.sign(largest)


def beyond(noisy: Sanitised[Integers], first: int, *, records: float, grid: int) -> Reals:
    """The other directions of a noisy second moment, each as long as its standard deviation.

    Args:
        noisy: the triangle of the second moment, in grid units squared.
        first: how many of the largest are left out.
        records: how many records it sums over, about.
        grid: grid units in a length of one.
    """
    variances, directions = _spectrum(noisy, records, grid)
    others: Reals = (directions * np.sqrt(np.maximum(variances, 0.0)))[:, first:]
    return others[:, (others != 0).any(axis=0)]


def _spectrum(noisy: Sanitised[Integers], records: float, grid: int) -> tuple[Reals, Reals]:
    """Variances of a noisy second moment, the largest first, and their directions in columns."""
    moment = matrix_of(noisy.value.reshape(-1)) / (grid * grid * max(records, 1.0))
    variances, directions = np.linalg.eigh(moment)
    return variances[::-1], directions[:, ::-1]


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


def whitening(variances: Reals, power: float) -> tuple[Reals, float]:
    """Factors, at most 1, that bring directions of these variances to more alike lengths.

    Args:
        variances: of the directions.
        power: 0 leaves them as they are, 1 makes them alike.

    Returns:
        The factors, and the root mean square length of what is scaled by them.

    >>> factors, length = whitening(np.array([4.0, 1.0]), 1.0)
    >>> factors.tolist(), length
    ([0.5, 1.0], 1.4142135623730951)
    """
    factors = (variances.min() / variances) ** (power / 2)
    return factors, float(np.sqrt((factors**2 * variances).sum()))


def whitened_covariances(
    noisy: Sanitised[Integers],
    counts: Reals,
    weights: Reals,
    centres: Reals,
    variances: Reals,
    *,
    grid: int,
    sigma: float,
) -> Reals:
    """The covariance of each class around its centres, in units of the pooled one's spread.

    The pooled one is known better from the second moment of all, less what the centres explain.

    Args:
        noisy: the triangles of the classes' second moments along whitened directions, in grid
            units squared.
        counts: how many records each sums over, about.
        weights: (classes, centres), how many records are near each centre, about.
        centres: (classes, centres, directions), around the mean of the class.
        variances: of the directions.
        grid: grid units in a length of one.
        sigma: the noise, in grid units squared.
    """
    factors, length = whitening(variances, COVARIANCES)
    used = np.maximum(counts, 1.0)
    moments = matrix_of(noisy.value.reshape(len(counts), -1)) / grid**2 / used[:, None, None]
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    shares = shares * (used / used.sum())[:, None]
    between = np.einsum("ck,cka,ckb->ab", shares, centres, centres)
    scale = np.outer(factors, factors) / length**2
    spread, axes = np.linalg.eigh((np.diag(variances) - between) * scale)
    spread = np.maximum(spread, THINNEST[0] * np.median(np.abs(spread)) + 1e-12)
    root, inverse = (axes * np.sqrt(spread)) @ axes.T, (axes / np.sqrt(spread)) @ axes.T
    size = len(variances)
    apart, turns = np.linalg.eigh(inverse @ moments @ inverse - np.eye(size))
    # The noise alone has eigenvalues up to about this (Wigner), and their mean square is a quarter.
    edge = 2 * sigma / grid**2 / used / OFF_DIAGONAL * np.sqrt(size) * np.mean(1 / spread)
    by_chance = size * edge**2 / 4
    kept = np.maximum(0.0, 1 - by_chance / np.maximum((apart**2).sum(axis=1), 1e-30))
    thinnest = np.clip(FLOOR * edge, *THINNEST)
    widths = np.maximum(1 + kept[:, None] * apart, thinnest[:, None])
    shapes: Reals = root @ ((turns * widths[:, None, :]) @ turns.transpose(0, 2, 1)) @ root / scale
    return shapes
