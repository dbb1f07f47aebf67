"""K-means of numbers: fast where there are a million of them, and the same each time."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Ends = npt.NDArray[np.int64]
MOST_ROUNDS = 50
MOST_SWAPS = 1000
"""A round takes microseconds, and hardly any tensor needs them all."""


def centroids(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """At most that many centroids of numbers, in rising order, by k-means.

    Lloyd's rounds begin at quantiles: of the numbers, and of the cube root of their density, which
    is best for many centroids. Then, as long as that lessens the squares, the group that gains most
    is split in two and the two neighbours that lose least become one. All work on the sorted
    numbers and their sums, so a round takes as long as there are centroids, not numbers.

    Args:
        values: the numbers.
        count: of centroids; there are fewer where the numbers are.

    >>> centroids(np.array([0, 1, 10, 11, 12], dtype=np.float32), 2).tolist()
    [0.5, 11.0]

    Reference: Panter and Dite 1951 for the cube root.
    """
    ordered = np.sort(values).astype(np.float64)
    different = np.flatnonzero(np.diff(ordered, prepend=-np.inf))
    if len(different) <= count:
        return ordered[different].astype(np.float32)
    groups, shares = _Groups(ordered), np.arange(1, count) / count
    # Between numbers of density f lie gaps of 1 / f on average, so f^(1/3) adds up gaps^(2/3).
    dense = np.cumsum(np.diff(ordered) ** (2 / 3))
    evenly = (shares * len(ordered)).astype(np.int64)
    starts = evenly, 1 + np.searchsorted(dense, shares * dense[-1])
    ended = [groups.improved(groups.settled(groups.all_of(start)), count) for start in starts]
    best = min(ended, key=lambda ends: float(groups.squares(ends).sum()))
    return groups.means(best).astype(np.float32)


class _Groups:
    """Sorted numbers in groups, each from one end to the next."""

    def __init__(self, ordered: npt.NDArray[np.float64]) -> None:
        self._ordered = ordered
        self._sums = np.concatenate([[0.0], np.cumsum(ordered)])
        self._squares = np.concatenate([[0.0], np.cumsum(ordered**2)])

    def all_of(self, inner: Ends) -> Ends:
        """The ends of groups, those of the numbers included."""
        return np.unique(np.concatenate([[0], inner, [len(self._ordered)]]))

    def means(self, ends: Ends) -> npt.NDArray[np.float64]:
        return np.diff(self._sums[ends]) / np.diff(ends)

    def squares(self, ends: Ends) -> npt.NDArray[np.float64]:
        """The sum of squared distances from the mean, of each group."""
        return np.diff(self._squares[ends]) - np.diff(self._sums[ends]) ** 2 / np.diff(ends)

    def settled(self, ends: Ends) -> Ends:
        """Lloyd's rounds: every number to the nearest mean."""
        for _ in range(MOST_ROUNDS):
            means = self.means(ends)
            inner = np.searchsorted(self._ordered, (means[1:] + means[:-1]) / 2)
            again = self.all_of(inner)
            if np.array_equal(again, ends):
                break
            ends = again
        return ends

    def improved(self, ends: Ends, count: int) -> Ends:
        """Groups split and joined as long as that helps; up to `count` groups are split only."""
        for _ in range(MOST_SWAPS):
            cut, gain = self.best_cut(ends)
            joined, loss = self.best_join(ends) if len(ends) > count else (0, 0.0)
            if gain <= loss:
                break
            others = np.delete(ends, joined) if joined else ends
            changed = self.settled(np.union1d(others, [cut]))
            # Gain and loss do not add up where both are of the same group.
            if self.squares(changed).sum() >= self.squares(ends).sum():
                break
            ends = changed
        return ends

    def best_cut(self, ends: Ends) -> tuple[int, float]:
        """Where a group is best cut at its mean, and by how much that lessens the squares."""
        cuts = np.searchsorted(self._ordered, self.means(ends))
        cuts = np.clip(cuts, ends[:-1], ends[1:])
        gains = self._between(ends[:-1], cuts, ends[1:])
        best = int(np.argmax(gains))
        return int(cuts[best]), float(gains[best])

    def best_join(self, ends: Ends) -> tuple[int, float]:
        """Which end is best left out, by its place, and by how much that adds to the squares."""
        if len(ends) < 3:
            return 0, math.inf
        losses = self._between(ends[:-2], ends[1:-1], ends[2:])
        best = int(np.argmin(losses))
        return best + 1, float(losses[best])

    def _between(self, first: Ends, middle: Ends, last: Ends) -> npt.NDArray[np.float64]:
        """The squares of two neighbours together less those of each."""
        left, right = middle - first, last - middle
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = (self._sums[middle] - self._sums[first]) / left
            apart -= (self._sums[last] - self._sums[middle]) / right
            found = apart**2 * (left * right / (left + right))
        return np.where((left > 0) & (right > 0), found, 0.0)
