"""The graph of nearest neighbours of public samples, and labels that spread over it.

Zhou et al. 2004 (spreading), Zelnik-Manor and Perona 2004 (weights by each sample's own scale) and
Zhu et al. 2003 (class masses). Everything that comes here is public or came through the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers

Rows = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

CELLS = 1 << 25
"""Distances held at once: 128 MB of them, however many samples there are."""
LEAST = 1e-12
MASS_ROUNDS = 50


def nearest(
    features: npt.NDArray[Any],
    neighbours: int,
    *,
    on_step: Progress = lambda done, total: None,
) -> tuple[Integers, Rows]:
    """The nearest other samples of each sample, nearest first, and their squared distances.

    Args:
        features: (samples, features).
        neighbours: how many of each.
        on_step: told how many samples are done.

    Raises:
        BadInput: the features are not rows of finite numbers, or too few.

    >>> nearest(np.array([[0.0], [1.0], [5.0]]), 1)[0].ravel().tolist()
    [1, 0, 1]
    """
    rows = _checked(features, neighbours)
    size, squares = len(rows), np.einsum("ij,ij->i", rows, rows)
    places = np.empty((size, neighbours), dtype=np.int64)
    apart = np.empty((size, neighbours), dtype=np.float32)
    together = max(1, CELLS // size)
    for start in range(0, size, together):
        here = np.arange(start, min(start + together, size))
        found = squares - 2 * (rows[here] @ rows.T)
        found[here - start, here] = np.inf
        near = np.sort(np.argpartition(found, neighbours - 1, axis=1)[:, :neighbours], axis=1)
        distances = np.take_along_axis(found, near, axis=1)
        ranked = np.argsort(distances, axis=1, kind="stable")
        places[here] = np.take_along_axis(near, ranked, axis=1)
        far = np.take_along_axis(distances, ranked, axis=1) + squares[here, None]
        apart[here] = np.maximum(far, 0)
        on_step(int(here[-1]) + 1, size)
    return places, apart


def neighbour_graph(
    features: npt.NDArray[Any],
    neighbours: int = 10,
    *,
    on_step: Progress = lambda done, total: None,
) -> csr_matrix:
    """A symmetric graph: samples are joined where one of them is among the other's nearest.

    An edge weighs exp(-d^2 / s^2), s the distance of the farthest of the sample's neighbours.

    Args:
        features: (samples, features); rows of equal norm make it a graph of angles.
        neighbours: how many each sample looks for.
        on_step: told how many samples are done.

    Raises:
        BadInput: the features are not rows of finite numbers, or too few.

    >>> neighbour_graph(np.array([[0.0], [1.0], [5.0], [6.0]]), 1).nnz
    4
    """
    places, apart = nearest(features, neighbours, on_step=on_step)
    size = len(places)
    weights = np.exp(-apart / np.maximum(apart[:, -1:], LEAST))
    begins = np.arange(size + 1) * neighbours
    one_way = csr_matrix((weights.ravel(), places.ravel(), begins), shape=(size, size))
    return one_way.maximum(one_way.T).tocsr()


def smoothed(graph: csr_matrix, scores: npt.NDArray[Any], rounds: int = 1) -> Rows:
    """Scores averaged over the graph: in each round, half of its own and half of its neighbours'.

    Guarantee: what is not on the first axis does not mix. The scores of one teacher depend on that
    teacher and on the graph alone, so its votes have the sensitivity they had.

    Args:
        graph: of the queries.
        scores: one row per query, with any axes after it, such as (query, teacher, class).
        rounds: how often.

    Raises:
        BadInput: there is not one row per sample of the graph.

    >>> pair = neighbour_graph(np.array([[0.0], [1.0]]), 1)
    >>> smoothed(pair, np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    _fit(graph, scores)
    flat = np.ascontiguousarray(scores, dtype=np.float32).reshape(len(scores), -1)
    half = np.float32(0.5)
    step = diags(half / _degrees(graph)) @ graph
    for _ in range(rounds):
        flat = half * flat + step @ flat
    return flat.reshape(scores.shape)


def spread(
    graph: csr_matrix,
    labels: npt.NDArray[Any],
    *,
    alpha: float,
    rounds: int = 80,
    prior: npt.NDArray[Any] | None = None,
) -> Reals:
    """The labels of all samples from those of some: F <- alpha S F + (1 - alpha) labels.

    S is the graph divided by the roots of both ends' degrees. The rows are shares, and the classes
    have the masses of the prior.

    Args:
        graph: of all samples.
        labels: one row per sample, of how much more likely a class is than by chance; zeros where
            nothing is known.
        alpha: how much a sample listens to its neighbours, below 1.
        rounds: how far a label can go.
        prior: the share of each class; equal shares when left out.

    Raises:
        BadInput: sizes do not fit, labels are not finite, or alpha or the prior cannot be.

    >>> pair = neighbour_graph(np.array([[0.0], [1.0], [8.0], [9.0]]), 1)
    >>> labels = np.array([[0.5, -0.5], [0.0, 0.0], [0.0, 0.0], [-0.5, 0.5]])
    >>> spread(pair, labels, alpha=0.9).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    _fit(graph, labels)
    if not 0 <= alpha < 1 or not np.isfinite(labels).all():
        raise BadInput(
            "labels spread with an alpha in [0, 1), and are finite",
            where="label spreading",
            why="else they would grow without end, or mean nothing",
            remedy="give an alpha such as 0.9, and a zero where nothing is known",
        )
    roots = diags(1 / np.sqrt(_degrees(graph)))
    step = (np.float32(alpha) * (roots @ graph @ roots)).tocsr()
    own = ((1 - alpha) * labels).astype(np.float32)
    found = own
    for _ in range(rounds):
        found = step @ found + own
    return with_masses(np.maximum(found.astype(np.float64), LEAST), prior)


def with_masses(shares: npt.NDArray[Any], prior: npt.NDArray[Any] | None = None) -> Reals:
    """Rows of shares, each class scaled so that its mean share comes to its prior.

    Args:
        shares: positive numbers, one row per sample.
        prior: the share of each class; equal shares when left out.

    Raises:
        BadInput: the prior is not made of positive numbers, one per class.

    >>> with_masses(np.array([[0.9, 0.1], [0.7, 0.3]])).mean(axis=0).round(3).tolist()
    [0.5, 0.5]
    """
    classes = shares.shape[1]
    wanted = np.full(classes, 1 / classes) if prior is None else np.asarray(prior, dtype=np.float64)
    if wanted.shape != (classes,) or not (wanted > 0).all() or not np.isfinite(wanted).all():
        raise BadInput(
            "the masses of the classes must be positive numbers, one per class",
            where="prior",
            why="scores are scaled to them",
            remedy=f"give {classes} shares, or leave them out for equal ones",
        )
    wanted = wanted / wanted.sum()
    found: Reals = shares / shares.sum(axis=1, keepdims=True)
    for _ in range(MASS_ROUNDS):
        # Half the way in logarithms: the rows' own sums push back.
        found = found * np.sqrt(wanted / np.maximum(found.mean(axis=0), LEAST))
        found /= found.sum(axis=1, keepdims=True)
    return found


def _checked(features: npt.NDArray[Any], neighbours: int) -> Rows:
    rows = np.asarray(features)
    if rows.ndim != 2 or rows.dtype.kind not in "iuf" or not np.isfinite(rows).all():
        raise BadInput(
            "the samples' features are not rows of finite numbers",
            where="graph of neighbours",
            why="distances between them would mean nothing",
            remedy="give an array of (samples, features)",
        )
    if not 1 <= neighbours < len(rows):
        raise BadInput(
            f"{len(rows)} samples do not have {neighbours} neighbours each",
            where="graph of neighbours",
            why="no sample is its own neighbour",
            remedy="look for at least 1 and for fewer than there are samples",
        )
    # Around their mean: products of single precision lose less there.
    return np.ascontiguousarray(rows - rows.mean(axis=0, dtype=np.float64), dtype=np.float32)


def _fit(graph: csr_matrix, rows: npt.NDArray[Any]) -> None:
    if rows.ndim < 2 or len(rows) != graph.shape[0]:
        raise BadInput(
            f"{len(rows)} rows do not belong to a graph of {graph.shape[0]} samples",
            where="graph of neighbours",
            why="each sample has its own row",
            remedy="give one row per sample, in the same order",
        )


def _degrees(graph: csr_matrix) -> Rows:
    return np.maximum(np.asarray(graph.sum(axis=1), dtype=np.float32).ravel(), LEAST)
