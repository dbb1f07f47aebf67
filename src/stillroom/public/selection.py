"""Query selection: which public samples the teacher is asked about, by what the student says.

Algorithm 3 of Wang et al. 2019 (greedy k-centre on the KL divergence) and the three rivals of its
Fig. 2e. All
of it is post-processing: the student and the samples are public or sanitised before they come here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.extras import needed
from stillroom.randomness import integers, order
from stillroom.vocabulary import Integers

Floats = npt.NDArray[np.float64]

FLOOR = 1e-12
"""No probability is smaller: else a class that is ruled out would be infinitely far from others."""

BLOCK = 1024
"""Samples whose sums stay in the nearest cache."""

SUM_SLACK = 1e-3
"""How far a row of rounded probabilities may sum up to something else than 1."""


def k_centre(probabilities: npt.ArrayLike, count: int, *, seed: int, round: int = 0) -> Integers:
    """Algorithm 3 of Wang et al. 2019: a random sample, then always the farthest from all picked.

    The distance of sample i from a picked j is KL(P_i || P_j), P the student's probabilities. Each
    pick is one pass over the samples, which keep the least distance they have seen. Equally far
    samples go by position.

    Args:
        probabilities: of the student, (samples, classes).
        count: how many to pick.
        seed: of the first pick.
        round: of the distillation; another round starts elsewhere.

    Raises:
        BadInput: the rows are no probabilities, or the count does not fit them.
    """
    shares = _checked(probabilities, count)
    logs = np.log(shares)
    first = int(integers(seed, "query select", round, size=1, below=len(shares))[0])
    nearest = np.full(len(shares), np.inf)
    negative_entropy, columns = _dots(shares, logs), np.ascontiguousarray(shares.T)
    farthest = _kernel()
    picked = [first]
    for _ in range(count - 1):
        nearest[picked[-1]] = -np.inf
        picked.append(farthest(nearest, negative_entropy, columns, logs[picked[-1]]))
    return np.array(picked, dtype=np.int64)


def farthest(rows: npt.ArrayLike, count: int, *, seed: int) -> Integers:
    """The same for rows of features, by their Euclidean distances.

    Args:
        rows: one per sample.
        count: how many to pick.
        seed: of the first pick.

    Raises:
        BadInput: the count does not fit the rows.

    >>> sorted(farthest(np.array([[0.0], [0.1], [9.0], [9.1]]), 2, seed=7).tolist())[1] >= 2
    True
    """
    places = np.asarray(rows, dtype=np.float32)
    _check_count(count, len(places))
    squares = np.einsum("ij,ij->i", places, places)
    picked = np.empty(count, dtype=np.int64)
    picked[0] = order(seed, "query select", "farthest", size=len(places))[0]
    least = np.full(len(places), np.inf, dtype=np.float32)
    for place in range(1, count):
        last = picked[place - 1]
        least = np.minimum(least, squares + squares[last] - 2 * (places @ places[last]))
        least[last] = -np.inf
        picked[place] = least.argmax()
    return picked


def at_random(probabilities: npt.ArrayLike, count: int, *, seed: int, round: int = 0) -> Integers:
    """Samples in a random order, whatever the student says."""
    size = len(_checked(probabilities, count))
    return order(seed, "query select", "random", round, size=size)[:count]


def margin(probabilities: npt.ArrayLike, count: int, *, seed: int, round: int = 0) -> Integers:
    """Wang et al. 2017: least difference of the two largest probabilities first; nothing random."""
    ranked = np.sort(_checked(probabilities, count), axis=1)
    closest = np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")
    return closest[:count].astype(np.int64)


def diverse(probabilities: npt.ArrayLike, count: int, *, seed: int, round: int = 0) -> Integers:
    """Samples both uncertain and like the whole, after Wang and Ye 2013; nothing random.

    They choose a batch by one quadratic programme: an upper bound of the risk, which prefers
    uncertain samples, plus the maximum mean discrepancy between the batch and all samples. This is
    our reading of it, greedy and linear in the samples. Pick t + 1 is the sample i with the largest

        H(P_i) / log(classes) + f_i . ((t + 1) mean(f) - sum of f over those picked),

    f = sqrt(P), so that f_i . f_j is Bhattacharyya's kernel. The second part alone is kernel
    herding, which makes the discrepancy of the picks from the whole small.

    Args:
        probabilities: of the student, (samples, classes).
        count: how many to pick.
        seed: not used.
        round: not used.

    Raises:
        BadInput: the rows are no probabilities, or the count does not fit them.
    """
    shares = _checked(probabilities, count)
    uncertainty = -_dots(shares, np.log(shares)) / np.log(shares.shape[1])
    features = np.sqrt(shares)
    columns = np.ascontiguousarray(features.T)
    mean, lacking = features.mean(axis=0), np.zeros(shares.shape[1])
    may = np.full(len(shares), np.inf)
    best = _kernel()
    picked: list[int] = []
    for _ in range(count):
        lacking += mean
        place = best(may.copy(), uncertainty, columns, -lacking)
        lacking -= features[place]
        may[place] = -np.inf
        picked.append(place)
    return np.array(picked, dtype=np.int64)


SELECTORS: Mapping[str, Callable[..., Integers]] = MappingProxyType(
    {"k-centre": k_centre, "random": at_random, "margin": margin, "diverse": diverse}
)


def select(
    name: str, probabilities: npt.ArrayLike, count: int, *, seed: int, round: int = 0
) -> Integers:
    """Positions of different samples, in the order picked.

    Args:
        name: one of `SELECTORS`.
        probabilities: of the student, (samples, classes).
        count: how many to pick.
        seed: of whatever is random in it.
        round: of the distillation; what is random is drawn anew in each.

    Raises:
        BadInput: unknown name, rows that are no probabilities, or a count that does not fit them.

    >>> select("margin", [[0.9, 0.1], [0.5, 0.5], [0.6, 0.4]], 2, seed=7).tolist()
    [1, 2]
    """
    if name not in SELECTORS:
        raise BadInput(
            f"unknown query selection {name!r}",
            why="it decides what is asked, and so what is paid for",
            remedy=f"use one of: {', '.join(SELECTORS)}",
        )
    return SELECTORS[name](probabilities, count, seed=seed, round=round)


def _checked(probabilities: npt.ArrayLike, count: int) -> Floats:
    shares = np.asarray(probabilities, dtype=np.float64)
    if shares.ndim != 2 or shares.shape[1] < 2 or not _sums_to_one(shares):
        raise BadInput(
            "the student's outputs are not rows of probabilities of two classes or more",
            where="query selection",
            why="distances between them would mean nothing",
            remedy="give finite numbers >= 0 that sum up to 1 in each row, such as a softmax",
        )
    _check_count(count, len(shares))
    floored = np.maximum(shares, FLOOR)
    return np.ascontiguousarray(floored / floored.sum(axis=1, keepdims=True))


def _check_count(count: int, size: int) -> None:
    if not 1 <= count <= size:
        raise BadInput(
            f"{count} samples cannot be picked out of {size}",
            where="query selection",
            why="no sample is picked twice",
            remedy="pick at least 1 and at most as many as there are",
        )


def _sums_to_one(shares: Floats) -> bool:
    finite = bool(np.isfinite(shares).all())
    return finite and bool(
        (shares >= 0).all() and (np.abs(shares.sum(axis=1) - 1) <= SUM_SLACK).all()
    )


def _dots(left: Floats, right: Floats) -> Floats:
    """Row times row, summed in the kernel's order: then a sample is exactly 0 from its twin."""
    total = np.zeros(len(left))
    for column in range(left.shape[1]):
        total += left[:, column] * right[:, column]
    return total


@cache
def _kernel() -> Callable[[Floats, Floats, Floats, Floats], int]:
    with needed("numba", where="selection", why="it compiles the selection of queries"):
        from numba import njit  # here: whoever selects nothing needs no compiler
    compiled: Any = njit(cache=True, nogil=True)(_lower_and_find)
    return lambda *arrays: int(compiled(*arrays))


def _lower_and_find(least: Floats, start: Floats, columns: Floats, weights: Floats) -> int:
    """Lower each `least` to `start` - weights . its column; the first place where it is largest."""
    place, largest = -1, -np.inf
    dots = np.empty(BLOCK)
    for begin in range(0, len(least), BLOCK):
        size = min(BLOCK, len(least) - begin)
        dots[:] = 0.0
        # One line per class: samples side by side make vectors, and each one's sum keeps its order.
        for c in range(len(weights)):
            line, weight = columns[c, begin : begin + size], weights[c]
            for i in range(size):
                dots[i] += line[i] * weight
        for i in range(size):
            value = min(least[begin + i], start[begin + i] - dots[i])
            least[begin + i] = value
            if value > largest:
                place, largest = begin + i, value
    return place
