"""One training of a network, from given weights to trained ones: the unit of task parallelism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stillroom.engine.rows import ROW
from stillroom.errors import check_ranges
from stillroom.models.build import build
from stillroom.models.flat_weights import Flat, flatten, unflatten
from stillroom.models.pictures import AsPictures
from stillroom.models.place_training import train_over_places


@dataclass(frozen=True)
class WeightTraining:
    """How models of one architecture are trained, each from the same start.

    Args:
        network: a name in the zoo, or package.module:callable.
        shape: of one record as it is stored.
        classes: how many there are.
        full_scale: the largest value of a record.
        places: passed over in an epoch; the most records of a model.
        epochs: how many.
        batch: places per step.
        learning_rate: of Adam.
        start_seed: of weights, order and dropout; never of noise.
        checkpoints: the last so many epochs are averaged: one record changes them all, so a model
            is one row, however many of its states it is made of.

    Raises:
        BadInput: a number is out of range.
    """

    network: str
    shape: tuple[int, ...]
    classes: int
    full_scale: float
    places: int
    epochs: int = 3
    batch: int = 128
    learning_rate: float = 1e-3
    start_seed: int = 0
    checkpoints: int = 1

    def __post_init__(self) -> None:
        checks = {name: getattr(self, name) >= 1 for name in ("places", "epochs", "batch")}
        checks["checkpoints"] = 1 <= self.checkpoints <= self.epochs
        checks["learning_rate"] = 0 < self.learning_rate < float("inf")
        check_ranges("WeightTraining", checks)

    @property
    def pictures(self) -> AsPictures:
        """From records as they are stored to what the network is given."""
        return AsPictures(self.shape, self.full_scale)

    def built(self) -> torch.nn.Module:
        """The network at its common start."""
        return build(self.network, self.pictures.given, self.classes, seed=self.start_seed)

    def trained(
        self, start: Flat, x: npt.NDArray[Any], y: npt.NDArray[Any], *names: int | str
    ) -> Flat:
        """The weights after training on some records; the start itself where there are none.

        Args:
            start: flat weights.
            x: the records, at most `places` of them.
            y: their classes.
            names: whose training it is.
        """
        if not len(y):
            return start.copy()
        network = self.built()
        unflatten(network, start)
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        total = np.zeros(len(start))

        def after(epoch: int) -> None:
            if epoch > self.epochs - self.checkpoints:
                np.add(total, flatten(network), out=total)

        train_over_places(
            network,
            self.pictures(torch.from_numpy(np.array(x))),
            torch.from_numpy(np.array(y, dtype=np.int64)),
            self.start_seed,
            *names,
            places=self.places,
            epochs=self.epochs,
            batch=self.batch,
            learning_rate=self.learning_rate,
            on_epoch=after,
        )
        return (total / self.checkpoints).astype(np.float32)


def train_unit(
    training: WeightTraining, start: Flat, payload: dict[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    """One model of a collection; the engine calls this, maybe elsewhere."""
    usable = np.isfinite(payload["x"]).all(axis=tuple(range(1, payload["x"].ndim)))
    # A record that is no number is left out of its own models, and not told of (K10).
    x, y = payload["x"][usable], payload["y"][usable]
    return {ROW: training.trained(start, x, y, "model", int(payload["number"]))}
