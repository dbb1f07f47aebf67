"""Groups of public samples that a student finds alike: one charged answer serves a whole group."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.randomness import integers
from stillroom.vocabulary import Integers

SMALL = 10_000
"""Up to so many samples every step of k-means sees all of them."""

BATCH = 1024


def group(features: npt.NDArray[Any], count: int, *, seed: int) -> Integers:
    """The group of each sample, by k-means: exactly `count` groups, from 0, none of them empty.

    Where k-means leaves a group empty (many equal samples), the largest one gives up the half that
    is farther from its mean.

    Args:
        features: of the student, (samples, features).
        count: how many groups.
        seed: of the first centres.

    Raises:
        BadInput: the features are not rows of finite numbers, or fewer than the groups.

    >>> group(np.array([[0.0], [9.0], [0.1], [9.1]]), 2, seed=7).tolist() in ([0, 1, 0, 1],
    ...                                                                       [1, 0, 1, 0])
    True
    """
    rows = np.asarray(features)
    if rows.ndim != 2 or rows.dtype.kind not in "iuf" or not np.isfinite(rows).all():
        raise BadInput(
            "the student's features are not rows of finite numbers",
            where="groups of queries",
            why="distances between them would mean nothing",
            remedy="give an array of (samples, features)",
        )
    if not 1 <= count <= len(rows):
        raise BadInput(
            f"{len(rows)} samples cannot fill {count} groups",
            where="groups of queries",
            why="an empty group would be charged for nothing",
            remedy="ask for at least 1 group and at most as many as there are samples",
        )
    return _filled(rows, _clusters(rows, count, seed), count)


def _clusters(rows: npt.NDArray[Any], count: int, seed: int) -> Integers:
    from sklearn.cluster import KMeans, MiniBatchKMeans  # here: it is slow to load
    from sklearn.exceptions import ConvergenceWarning

    state = int(integers(seed, "groups", size=1, below=2**32)[0])
    if len(rows) <= SMALL:
        model = KMeans(count, n_init=1, random_state=state)
    else:
        batch = max(BATCH, count)
        model = MiniBatchKMeans(count, n_init=1, random_state=state, batch_size=batch)
    with warnings.catch_warnings():
        # Fewer distinct samples than groups: `_filled` sees to that.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit_predict(rows), dtype=np.int64)


def _filled(rows: npt.NDArray[Any], found: Integers, count: int) -> Integers:
    """The same groups numbered without gaps, the largest halved until there are enough."""
    present, groups = np.unique(found, return_inverse=True)
    groups = groups.astype(np.int64)
    for new in range(len(present), count):
        members = np.flatnonzero(groups == np.bincount(groups).argmax())
        apart = rows[members] - rows[members].mean(axis=0)
        near_first = np.argsort((apart * apart).sum(axis=1), kind="stable")
        groups[members[near_first[(len(members) + 1) // 2 :]]] = new
    return groups
