"""DP-PG and DP-PGP to the letter (Mao et al. 2021, Algorithms 1 and 2), each draw through the gate.

Every weight is drawn by itself from a kernel density estimate over all models. DP-PGP publishes the
largest weights of one private model as centroid plus noisy residual, where the centroid cancels.
What the paper leaves unprotected leaves unprotected here, and is recorded so (theory.md#pg).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from stillroom.gate import Passage
from stillroom.methods.pg.published_section import PublishedSection
from stillroom.methods.pg.requests import (
    ASSIGNMENTS,
    CLUSTERS,
    EXTREMES,
    MOST_LAYERS,
    PARAMETERS,
    REACHES,
    RESIDUALS,
    SIGNIFICANT,
    TOGETHER,
)
from stillroom.private.parameter_slices import BITS, GRID, UNITS, ParameterSlices, PublishedModel
from stillroom.vocabulary import Bounded, Integers

Flat = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Publishing:
    """One run of an algorithm: what it asks, and what the answers stand for.

    Args:
        slices: the weights of all models, place by place.
        part: the numbers.
        passages: those of the party, by name.
    """

    def __init__(
        self, slices: ParameterSlices, part: PublishedSection, passages: Mapping[str, Passage]
    ) -> None:
        self._slices, self._part, self._passages = slices, part, passages
        self._grid = part.parameter_grid

    def generated(self, number: int, left_out: Mask | None = None) -> Flat:
        """Algorithm 1: every weight from its slice, but for those that are left out.

        Args:
            number: of the try, from 0 on.
            left_out: weights that are published in another way; they are 0 here.
        """
        weights = np.zeros(self._slices.size, dtype=np.float32)
        for first in range(0, self._slices.size, TOGETHER):
            last = min(first + TOGETHER, self._slices.size)
            places: Integers = np.arange(first, last)
            within = self._extremes(first, last)
            if left_out is not None:
                drawn = ~left_out[first:last]
                places, within = places[drawn], None if within is None else within[drawn]
            if len(places):
                weights[places] = self._drawn(number, places, within)
        return weights

    def _drawn(self, number: int, places: Integers, within: Reals | None) -> Reals:
        question = _question(PARAMETERS, number, int(places[0])) + places.tobytes()
        told = self._passages[PARAMETERS].answer(
            question, lambda: self._slices.entries(places, self._grid, within)
        )
        values: Reals = self._grid.values[told.value]
        if within is None:
            return values
        low, high = within.T
        scaled: Reals = (low + high) / 2 + values * (high - low) / (2 * self._grid.radius)
        return scaled

    def _extremes(self, first: int, last: int) -> Reals | None:
        """Between which values a weight's grid lies; None for a grid that is public."""
        if self._part.grid == "public":
            return None
        told = self._passages[EXTREMES].answer(
            _question(EXTREMES, first, last),
            lambda: self._slices.extremes(slice(first, last), 2 * TOGETHER),
        )
        found: Reals = told.value.reshape(-1, 2)[: last - first] / UNITS
        return found

    def grouped(self, number: int, model: PublishedModel, layers: Sequence[slice]) -> Flat:
        """Algorithm 2: significant weights by cluster and residual, the others by Algorithm 1."""
        part = self._part
        significant = self._significant(number, model)
        centroids = self._private_k_means(number, model, len(layers))
        clusters = self._told(ASSIGNMENTS, number, lambda: model.assignments(centroids))
        reaches = self._told(REACHES, number, lambda: model.reaches(centroids, MOST_LAYERS))
        residuals = self._told(RESIDUALS, number, lambda: model.residuals(centroids))
        weights = self.generated(number, significant)
        first, width = 0, part.clusters
        for layer, place in enumerate(layers):
            chosen = np.flatnonzero(significant[place]) + place.start
            own = slice(first, first + len(chosen))
            reach = reaches[layer * width : (layer + 1) * width] / UNITS
            nearest = clusters[own]
            # c_i + o_i: what is left is the weight itself plus noise, whatever the centroid was.
            noisy = residuals[own] / GRID * reach[nearest]
            weights[chosen] = centroids[layer][nearest] + noisy
            first += len(chosen)
        return weights

    def _significant(self, number: int, model: PublishedModel) -> Mask:
        told = self._told(SIGNIFICANT, number, model.mask)
        bits = (told[:, None] >> np.arange(BITS)) & 1
        return bits.reshape(-1)[: self._slices.size].astype(np.bool_)

    def _private_k_means(self, number: int, model: PublishedModel, layers: int) -> Reals:
        """Noisy counts and sums, round by round, of all layers at once (Su et al. 2016).

        Centroids begin evenly over the range; one that has next to no weights stays where it was.
        """
        part, radius = self._part, self._grid.radius
        evenly = np.linspace(-radius, radius, part.clusters + 2)[1:-1]
        centroids = np.repeat(evenly[None], layers, axis=0)
        for turn in range(part.cluster_rounds):
            before = centroids
            told = self._passages[CLUSTERS].answer(
                _question(CLUSTERS, number, turn) + before.tobytes(),
                partial(model.cluster_sums, before, MOST_LAYERS),
            )
            counts, sums = told.value.reshape(2, MOST_LAYERS, part.clusters)[:, :layers]
            means = radius * sums / np.maximum(counts, 1)
            usable = counts > GRID
            centroids = np.where(usable, np.clip(means, -radius, radius), before)
        return centroids

    def _told(self, name: str, number: int, ask: Callable[[], Bounded]) -> Integers:
        row: Integers = self._passages[name].answer(_question(name, number), ask).value
        return row.reshape(-1)


def _question(*words: int | str) -> bytes:
    return json.dumps(words).encode()
