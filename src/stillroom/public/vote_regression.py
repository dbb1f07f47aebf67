"""Vote shares of all public pictures from the noisy shares of some, by ridge regression.

Noise of mean zero averages out over pictures that look alike. The features are averaged over the
graph of neighbours first, as in Wu et al. 2019; a linear fit of them then follows clusters. Sharper
than one label per picture: at high noise no single answer means anything, and all together do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from stillroom.errors import BadInput
from stillroom.public.neighbour_graph import smoothed, with_masses
from stillroom.vocabulary import Integers

Rows = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]

LEAST_SHARE = 1e-3
"""Noise can push a share below zero, where a probability cannot be."""


@dataclass(frozen=True, eq=False)
class NoisyShares:
    """What the teachers said of some public pictures, or of groups of them.

    Args:
        shares: noisy vote shares without bias, one row per query.
        noise: standard deviation of a share, a public number.
        asked: for each picture the query that it was part of; -1 for none.

    Raises:
        BadInput: the numbers are not finite, the noise not above 0, or a query has no picture.
    """

    shares: Reals
    noise: float
    asked: Integers

    def __post_init__(self) -> None:
        if self.shares.ndim != 2 or not np.isfinite(self.shares).all():
            raise BadInput(
                "the noisy shares are not rows of finite numbers",
                where="votes",
                why="one of them would spoil what is learnt from all",
                remedy="give one row per query and one column per class",
            )
        if not 0 < self.noise < float("inf"):
            raise BadInput(
                "the noise of a vote share must be a number above 0",
                where="votes",
                why="the right class is weighed against it",
                remedy="give the sigma of the votes over teachers times grid",
            )
        named = np.unique(self.asked[self.asked >= 0])
        if not np.array_equal(named, np.arange(len(self.shares))) or (self.asked < -1).any():
            raise BadInput(
                f"the pictures do not belong to exactly the {len(self.shares)} queries answered",
                where="votes",
                why="an answer would be taken for another picture's",
                remedy="number queries from 0, and write -1 where there is none",
            )

    def means(self, rows: npt.NDArray[Any]) -> Reals:
        """The mean row of the pictures of each query: what a linear fit of a group sees."""
        told = np.flatnonzero(self.asked >= 0)
        query = self.asked[told]
        sizes = np.bincount(query, minlength=len(self.shares))
        # One column per picture, in the order of the queries.
        sums = csr_matrix(
            (1 / sizes[query].astype(np.float64), (query, told)),
            shape=(len(self.shares), len(self.asked)),
        )
        return np.asarray(sums @ rows.astype(np.float64), dtype=np.float64)


def single_queries(places: Integers, size: int) -> Integers:
    """Which query each picture is part of, where each query is one picture.

    >>> single_queries(np.array([3, 1]), 5).tolist()
    [-1, 1, -1, 0, -1]
    """
    asked = np.full(size, -1, dtype=np.int64)
    asked[places] = np.arange(len(places))
    return asked


def regressed(
    graph: csr_matrix,
    features: npt.NDArray[Any],
    votes: NoisyShares,
    *,
    rounds: int = 12,
    signal: float = 0.3,
    prior: npt.NDArray[Any] | None = None,
) -> Reals:
    """The shares of all pictures, rows that sum up to 1 with the classes' masses as given.

    Ridge regression around equal shares. Its penalty is Bayes' for weights of variance `signal`,
    since the noise is known: nothing is tuned on the answers.

    Args:
        graph: of all pictures.
        features: one row per picture.
        votes: what was answered.
        rounds: how often the features are averaged over the graph.
        signal: variance of a weight, for rows of norm 1.
        prior: the share of each class; equal shares when left out.

    Raises:
        BadInput: sizes do not fit.

    >>> from stillroom.public.neighbour_graph import neighbour_graph
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> votes = NoisyShares(np.array([[0.8, 0.2], [0.1, 0.9]]), 0.1, np.array([0, -1, 1, -1]))
    >>> regressed(neighbour_graph(rows, 1), rows, votes).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    if not len(features) == len(votes.asked) == graph.shape[0]:
        raise BadInput(
            f"{len(features)} rows of features and {len(votes.asked)} pictures of votes do not "
            f"belong to a graph of {graph.shape[0]}",
            where="votes",
            why="each picture has its own row and vote",
            remedy="give one row of each per picture, in the same order",
        )
    classes = votes.shares.shape[1]
    rows = smoothed(graph, features, rounds).astype(np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    seen = votes.means(rows)
    products = seen.T @ seen + votes.noise**2 / signal * np.eye(rows.shape[1])
    weights = np.linalg.solve(products, seen.T @ (votes.shares - 1 / classes))
    return with_masses(np.maximum(1 / classes + rows @ weights, LEAST_SHARE), prior)
