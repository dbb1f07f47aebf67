"""Trainings on labels alone: in parallel, kept on disk, taken up where they were."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.engine import Engine, Result, WorkItem, run_all
from stillroom.models.augmentation import Views
from stillroom.models.build import build
from stillroom.models.pictures import AsPictures
from stillroom.models.training import NetworkTraining

CODE = 1
"""Counted up when the same numbers would give another network: what was kept is then not used."""


@dataclass(frozen=True)
class SupervisedTraining:
    """A network trained on labels alone, by ordinary gradient steps.

    Guarantee: none. Public work is given public records only; `private.plain` joins others to them.

    Args:
        model: its name in the zoo, or package.module:callable.
        x: the records.
        y: their labels.
        classes: how many classes there are.
        full_scale: the largest value of a feature.
        views: how the records are varied; an epoch sees one view of each.
        epochs: passes over the records.
        batch: records per step.
        learning_rate: the highest.
        start_seed: of weights, order and views.
    """

    model: str
    x: npt.NDArray[Any] = field(repr=False)
    y: npt.NDArray[np.int64] = field(repr=False)
    classes: int
    full_scale: float
    views: Views
    epochs: int
    batch: int
    learning_rate: float
    start_seed: int

    @property
    def scale(self) -> AsPictures:
        """From stored records to pictures."""
        return AsPictures(self.x.shape[1:], self.full_scale)

    def untrained(self) -> nn.Module:
        """The network before its first step."""
        return build(self.model, self.scale.given, self.classes, seed=self.start_seed)

    def digest(self) -> str:
        """Of everything the trained network depends on."""
        numbers = replace(self, x=np.zeros(0), y=np.zeros(0, np.int64))
        records = f"{self.x.shape} {self.x.dtype.str}"
        stamp = hashlib.sha256(f"{CODE} {torch.__version__} {numbers!r} {records}".encode())
        stamp.update(np.ascontiguousarray(self.x).tobytes() + self.y.tobytes())
        return stamp.hexdigest()


def train_all(
    trainings: Sequence[SupervisedTraining],
    *,
    engine: Engine,
    folder: Path,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> list[nn.Module]:
    """Networks in eval mode, in order; those the folder holds are not trained again."""
    digests = [training.digest() for training in trainings]
    wanted = dict(zip(digests, trainings, strict=True))
    units = [WorkItem(digest[:32], training) for digest, training in wanted.items()]
    results = run_all(
        _train, units, engine=engine, folder=folder, key=f"public {CODE}", on_done=on_done
    )
    found = dict(zip(wanted, results, strict=True))
    return [
        _loaded(training, found[digest])
        for digest, training in zip(digests, trainings, strict=True)
    ]


def _train(training: SupervisedTraining) -> dict[str, npt.NDArray[Any]]:
    network = training.untrained()
    loop = NetworkTraining(
        network,
        training.scale,
        epochs=training.epochs,
        learning_rate=training.learning_rate,
        seed=training.start_seed,
    )
    seen = torch.from_numpy(training.views.of(training.x, training.start_seed))
    y = torch.from_numpy(np.array(training.y))
    for epoch in range(training.epochs):
        loop.learn(seen[epoch % len(seen)], y, training.batch)
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def _loaded(training: SupervisedTraining, weights: Result) -> nn.Module:
    network = training.untrained()
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return network.eval()
