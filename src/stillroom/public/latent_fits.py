"""Latent maps from public or sanitised things: groups of weights, random ones, directions of runs.

Whatever is chosen here is chosen before anything private is looked at, so it costs nothing, and
fewer latents leave less noise on each (theory.md#pg).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.parameters import Directions, GroupedWeights, KeptWeights
from stillroom.public.k_means import centroids
from stillroom.randomness import integers, order
from stillroom.vocabulary import Integers

Flat = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def kept_weights(kept: Mask) -> KeptWeights:
    """Each kept weight is a latent of its own."""
    return KeptWeights(len(kept), np.flatnonzero(kept))


def alike_weights(
    weights: Flat, layers: Sequence[slice], count: int, kept: Mask | None = None
) -> GroupedWeights:
    """Groups of weights that are alike in a public model, layer by layer (PGP, PGC).

    Args:
        weights: of the public model, flat.
        layers: where each layer stands.
        count: of all groups; layers have equally many, as far as they have weights.
        kept: which weights move; all when left out.

    Raises:
        BadInput: there are fewer groups than layers, or more than weights.

    >>> found = alike_weights(np.array([0, 9, 0.1, 5], np.float32), [slice(0, 3), slice(3, 4)], 3)
    >>> found.of(np.array([3.0, 1.0, 3.0, 1.0])).round(2).tolist()
    [4.24, 1.0, 1.0]
    """
    moving = np.ones(len(weights), dtype=np.bool_) if kept is None else kept
    group: Integers = np.full(len(weights), -1, dtype=np.int64)
    used = [layer for layer in layers if moving[layer].any()]
    shares = _shares([int(moving[layer].sum()) for layer in used], count)
    first = 0
    for layer, share in zip(used, shares, strict=True):
        inside = np.flatnonzero(moving[layer]) + layer.start
        group[inside] = first + _split(weights[inside], share)
        first += share
    return GroupedWeights(group)


def _split(values: Flat, count: int) -> Integers:
    """Numbers in exactly so many groups of neighbours, those of k-means where it finds as many."""
    found = centroids(values, count)
    if len(found) == count:
        borders = (found[1:].astype(np.float64) + found[:-1]) / 2
        return np.searchsorted(borders, values.astype(np.float64)).astype(np.int64)
    # Equal values are no reason for fewer groups: how many there are is part of the price.
    places: Integers = np.empty(len(values), dtype=np.int64)
    places[np.argsort(values, kind="stable")] = np.arange(len(values)) * count // len(values)
    return places


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """How many groups each layer has: equally many, as far as there are weights for them."""
    if not len(sizes) <= count <= sum(sizes):
        raise BadInput(
            f"{count} groups for {len(sizes)} layers with {sum(sizes)} weights that move",
            where="pg.latents",
            why="a layer without a group would not move, and a group needs a weight",
            remedy="give at least one group per layer, and at most one per weight",
        )
    shares = [0] * len(sizes)
    left = count
    while left:
        open_ = [i for i, size in enumerate(sizes) if shares[i] < size]
        for i in open_[:left]:
            shares[i] += 1
        left -= min(left, len(open_))
    return shares


def random_groups(size: int, count: int, seed: int) -> GroupedWeights:
    """Weights in groups at random, each with a random sign: a random basis of sparse columns.

    Args:
        size: weights of a model.
        count: of latents.
        seed: of groups and signs; public.

    Raises:
        BadInput: there are more latents than weights.
    """
    if not 1 <= count <= size:
        raise BadInput(
            f"{count} latents for {size} weights",
            where="pg.latents",
            why="each latent moves weights of its own",
            remedy="give fewer latents",
        )
    group: Integers = np.empty(size, dtype=np.int64)
    group[order(seed, "groups", size=size)] = np.arange(size) % count
    return GroupedWeights(group, 2 * integers(seed, "signs", size=size, below=2) - 1)


def directions_of_runs(runs: npt.NDArray[np.floating], count: int) -> Directions:
    """The directions in which public trainings moved most: their principal axes.

    Args:
        runs: one row per training: where it ended, less where it began.
        count: of directions.

    Raises:
        BadInput: there are fewer trainings than directions, or they moved in fewer directions.
    """
    if len(runs) < count:
        raise BadInput(
            f"{len(runs)} public trainings for {count} directions",
            where="pg.latents, pg.public_runs",
            why="so many trainings span no more directions than there are of them",
            remedy="make more public runs, or use fewer latents",
        )
    rows = runs.astype(np.float64)
    lengths, axes = np.linalg.eigh(rows @ rows.T)
    best = np.argsort(-lengths, kind="stable")[:count]
    if lengths[best[-1]] <= 1e-9 * max(float(lengths.max()), 1e-30):
        raise BadInput(
            f"the public trainings moved in fewer than {count} directions",
            where="pg.latents",
            why="there is no direction left for the others",
            remedy="use fewer latents, or trainings on different records",
        )
    # Twice, since the axes of nearly dependent rows are hardly orthogonal after one pass.
    basis, _ = np.linalg.qr((axes[:, best].T @ rows).T)
    signs = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(count)])
    return Directions((basis * signs).T.astype(np.float32))
