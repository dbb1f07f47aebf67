"""Models on disjoint shards, all fine-tuned from one public point, and what they say of weights.

Claim: a record (a person, where persons are known) is in one shard, so it changes one model, which
is there before and after (theory.md#shards). A model leaves only as latents: its difference from
the public start under a public map. Clipped to a ball of radius C they are an integer vector of a
norm of at most `steps`, so the sum over models moves by at most 2 * steps (theory.md#diameter). On
a grid they are one entry per model, of which one changes to any other. A model that is no number,
or has no records, counts as the start itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from stillroom.parameters import LatentMap, ParameterGrid
from stillroom.private.hints import hint_sensitivity
from stillroom.private.quantise import check_ball, clip_to_ball
from stillroom.vocabulary import Bounded, Integers, Sensitivity, Unit

Flat = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]


class ShardModels(ABC):
    """One model per shard; everything that leaves it is bounded.

    Guarantee: one record (one person, where persons are known) or one whole model moves an answer
    within the sensitivity it carries.
    Assumes: start, map, clip and grid are public or sanitised (K5).

    Args:
        models: how many shards there are.
        size: weights of a model.
        unit: what shares a shard.
    """

    def __init__(self, models: int, size: int, unit: Unit) -> None:
        self.models, self.size, self.unit = models, size, unit

    @abstractmethod
    def _differences(self, start: Flat, number: int) -> Iterator[Matrix]:
        """The models less the start, some rows at a time; each is a function of its own shard."""

    def latent_sum(
        self, start: Flat, number: int, latents: LatentMap, clip: float, steps: int
    ) -> Bounded:
        """The sum of the models' clipped latents, as one row of whole numbers.

        Guarantee: a model's term has a norm of at most `steps`, checked in integers.

        Args:
            start: the weights that all models start from.
            number: of the round, which orders the records anew.
            latents: the public map.
            clip: the largest norm of a model's latents.
            steps: how many units that is.

        Raises:
            BadInput: the number of steps is out of range.
        """
        check_ball(steps)
        total: Integers = np.zeros(latents.latents, dtype=np.int64)
        for rows in self._latents(start, number, latents):
            with np.errstate(all="ignore"):
                total += clip_to_ball(rows * (steps / clip), steps).sum(axis=0)
        return Bounded(total[None], hint_sensitivity(steps, self.unit))

    def latent_entries(
        self, start: Flat, number: int, latents: LatentMap, grid: ParameterGrid
    ) -> Bounded:
        """One row per latent, with the point of the grid that each model is nearest to.

        Guarantee: a model is one entry of each row, and a record changes no other.

        Args:
            start: the weights that all models start from.
            number: of the round.
            latents: the public map.
            grid: fixed and public.
        """
        entries: Integers = np.zeros((latents.latents, self.models), dtype=np.int64)
        done = 0
        for rows in self._latents(start, number, latents):
            entries[:, done : done + len(rows)] = grid.nearest(rows).T
            done += len(rows)
        return Bounded(entries, Sensitivity.of_entries(1, self.unit))

    def _latents(
        self, start: Flat, number: int, latents: LatentMap
    ) -> Iterator[npt.NDArray[np.float64]]:
        for rows in self._differences(start, number):
            usable = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, np.float32(0))
            # One by one: in a product of several, a row's last bits depend on its company (E1b).
            yield np.stack([latents.of(row) for row in usable])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>, models={self.models}, size={self.size})"
