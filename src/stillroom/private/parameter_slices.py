"""What PG, PGP and PGC of Mao et al. 2021 look at: slices of a collection, and one model of it.

Of the slices, a record changes as many entries as models may have seen it, a model one. Everything
that PGP says of the one model it publishes is unprotected: which weights are large, which cluster
each is in, how far a cluster reaches (theory.md#pgp).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.parameters import ParameterGrid
from stillroom.private.shard_models import Flat, Matrix
from stillroom.private.unprotected import unprotected
from stillroom.vocabulary import Bounded, Integers, Norm, Pair, Relation, Sensitivity, Unit

Reals = npt.NDArray[np.float64]
UNITS = 1 << 30
"""Of 1, in what leaves unprotected."""
BITS = 32
"""Of a mask, per whole number."""
GRID = 1 << 20
"""Units of the largest residual, or of the largest weight, before Laplace noise."""


class ParameterSlices:
    """The weights at each place, over all models.

    Guarantee: an entry belongs to one model. A record changes the entries of all models that may
    have seen it, `moved` of each slice; a whole model changes one.
    Assumes: the grid is public and fixed. Extremes are unprotected.

    Args:
        rows: one row per model.
        moved: how many models a record may be in.
        unit: what shares a shard.
    """

    def __init__(self, rows: Matrix, moved: int, unit: Unit = Unit.RECORD) -> None:
        self._rows, self._moved, self._unit = rows, moved, unit
        self.models, self.size = rows.shape

    def entries(
        self, places: slice | Integers, grid: ParameterGrid, within: Reals | None
    ) -> Bounded:
        """The point of the grid nearest to each model's weight, one row per place.

        Args:
            places: which weights.
            grid: fixed and public.
            within: the extremes that a place's weights are scaled between, one pair per place; None
                for weights as they are.
        """
        values = np.asarray(self._rows[:, places], dtype=np.float64).T
        if within is not None:
            low, high = within.T[:, :, None]
            half = np.maximum((high - low) / 2, 1e-12)
            values = (values - (low + high) / 2) * (grid.radius / half)
        return Bounded(grid.nearest(values), Sensitivity.of_entries(self._moved, self._unit))

    def extremes(self, places: slice, width: int) -> Bounded:
        """The smallest and the largest weight at each place, as one row; unprotected.

        Args:
            places: which weights.
            width: of the row, which is filled up to it.
        """
        values = self._rows[:, places]
        found = np.zeros(width)
        pairs = np.stack([values.min(axis=0), values.max(axis=0)], axis=1)
        found[: pairs.size] = pairs.reshape(-1)
        return unprotected(found, UNITS)

    def __repr__(self) -> str:
        return f"ParameterSlices(<hidden>, models={self.models}, size={self.size})"


class PublishedModel:
    """One private model on its way out by PGP; nothing of it is protected.

    Args:
        weights: flat.
        layers: where each layer stands.
        share: of a layer's weights that are significant: the largest by their absolute value.
        radius: weights beyond are brought to it, for k-means.
        width: as many weights as can be significant; what is handed out is filled up to it.
    """

    def __init__(
        self, weights: Flat, layers: Sequence[slice], share: float, radius: float, width: int
    ) -> None:
        self._weights, self._layers, self._radius, self._width = weights, layers, radius, width
        self.significant = np.zeros(len(weights), dtype=np.bool_)
        for layer in layers:
            size = np.abs(weights[layer])
            chosen = np.argsort(-size, kind="stable")[: int(share * len(size))]
            self.significant[layer.start + chosen] = True

    def mask(self) -> Bounded:
        """Which weights are significant, some bits per number; unprotected."""
        bits = np.zeros(-(-len(self._weights) // BITS) * BITS)
        bits[: len(self._weights)] = self.significant
        return unprotected(bits.reshape(-1, BITS) @ (2.0 ** np.arange(BITS)), 1)

    def cluster_sums(self, centroids: Reals, layers: int) -> Bounded:
        """Counts, then sums, of each layer's significant weights by their nearest centroid.

        One weight that comes or goes moves them by at most 2 * GRID, which is all that the paper's
        epsilon counts; a record may change every weight.

        Args:
            centroids: one row per layer.
            layers: how many the answer has room for.
        """
        found: Integers = np.zeros((2, layers, centroids.shape[1]), dtype=np.int64)
        for layer, own in enumerate(centroids):
            shares = np.clip(self._chosen(layer) / self._radius, -1, 1)
            nearest = _nearest(shares * self._radius, own)
            found[0, layer] = np.bincount(nearest, minlength=len(own)) * GRID
            np.add.at(found[1, layer], nearest, np.trunc(shares * GRID).astype(np.int64))
        return self._of_weights(found.reshape(-1))

    def assignments(self, centroids: Reals) -> Bounded:
        """The cluster of each significant weight, layer by layer; unprotected."""
        found = [_nearest(self._chosen(i), own) for i, own in enumerate(centroids)]
        return unprotected(self._filled(np.concatenate(found).astype(np.float64)), 1)

    def reaches(self, centroids: Reals, layers: int) -> Bounded:
        """How far each cluster's weights are from its centroid at most; unprotected.

        The paper calls it the sensitivity of the residuals (Eq. 6).
        """
        found = np.zeros((layers, centroids.shape[1]))
        found[: len(centroids)] = self._reaches(centroids)
        return unprotected(found, UNITS)

    def residuals(self, centroids: Reals) -> Bounded:
        """Each significant weight less its centroid, as a share of its cluster's reach."""
        reaches, found = self._reaches(centroids), []
        for i, own in enumerate(centroids):
            values = self._chosen(i)
            nearest = _nearest(values, own)
            found.append((values - own[nearest]) / np.maximum(reaches[i][nearest], 1e-12))
        scaled = np.trunc(np.clip(np.concatenate(found), -1, 1) * GRID)
        return self._of_weights(self._filled(scaled).astype(np.int64))

    def _reaches(self, centroids: Reals) -> Reals:
        reaches = np.zeros(centroids.shape)
        for i, own in enumerate(centroids):
            values = self._chosen(i)
            nearest = _nearest(values, own)
            np.maximum.at(reaches[i], nearest, np.abs(values - own[nearest]))
        return reaches

    def _chosen(self, layer: int) -> Reals:
        place = self._layers[layer]
        return self._weights[place][self.significant[place]].astype(np.float64)

    def _filled(self, values: Reals) -> Reals:
        filled = np.zeros(self._width)
        filled[: len(values)] = values
        return filled

    def _of_weights(self, values: Integers) -> Bounded:
        """What a weight can move by up to 4 * GRID: a record may change all of them."""
        furthest = Fraction(4 * GRID * self._width)
        bounds = {Pair(Unit.RECORD, relation): furthest for relation in Relation}
        return Bounded(values[None], Sensitivity(Norm.L1, bounds))

    def __repr__(self) -> str:
        return "PublishedModel(<hidden>)"


def _nearest(values: Reals, centroids: Reals) -> Integers:
    """The place of the nearest centroid, for each value."""
    order = np.argsort(centroids, kind="stable")
    borders = (centroids[order][1:] + centroids[order][:-1]) / 2
    found: Integers = order[np.searchsorted(borders, values)].astype(np.int64)
    return found
