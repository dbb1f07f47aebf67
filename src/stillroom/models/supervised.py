"""Trainings on labels alone: in parallel, kept on disk, taken up where they were."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.engine import Engine, Result, WorkItem, run_all
from stillroom.models.augmentation import Views
from stillroom.models.build import build
from stillroom.models.checkpoints import Checkpoint, tell_passes, watched
from stillroom.models.pictures import AsPictures
from stillroom.models.training import NetworkTraining

ON_THIS_DISK = ("serial", "loky")
"""Engines whose workers see the folder of this process."""
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
    """Networks in eval mode, in order; those the folder holds are not trained again.

    A training that was cut off goes on from its last state there, to the same weights.

    Args:
        trainings: what to train.
        engine: where; one network per core.
        folder: keeps networks and states; as sensitive as the records.
        on_done: told how many passes over their records all of them have made together.
    """
    digests = [training.digest() for training in trainings]
    wanted = dict(zip(digests, trainings, strict=True))
    units = [WorkItem(digest[:32], training) for digest, training in wanted.items()]
    planned = {unit.name: unit.payload.epochs for unit in units}
    here = engine.kind in ON_THIS_DISK
    with watched(folder, planned, on_done) if here else nullcontext():
        results = run_all(
            partial(_train, folder if here else None),
            units,
            engine=engine,
            folder=folder,
            key=f"public {CODE}",
            on_done=lambda done, total: None if here else on_done(done, total),
        )
    on_done(sum(planned.values()), sum(planned.values()))
    for unit in units:
        state_of(folder, unit.name).forget()
    found = dict(zip(wanted, results, strict=True))
    return [
        _loaded(training, found[digest])
        for digest, training in zip(digests, trainings, strict=True)
    ]


def state_of(folder: Path, name: str) -> Checkpoint:
    """Where the state of a training is kept, whose name is the beginning of its digest."""
    return Checkpoint(folder / f"{name}.state", name)


def _train(folder: Path | None, training: SupervisedTraining) -> dict[str, npt.NDArray[Any]]:
    network, name = training.untrained(), training.digest()[:32]
    kept = None if folder is None else state_of(folder, name)
    loop = NetworkTraining(
        network,
        training.scale,
        epochs=training.epochs,
        learning_rate=training.learning_rate,
        seed=training.start_seed,
    )
    state = None if kept is None else kept.load()
    if state is not None:
        loop.restore(state)
    seen = torch.from_numpy(training.views.of(training.x, training.start_seed))
    y = torch.from_numpy(np.array(training.y))
    for epoch in range(loop.done, training.epochs):
        loop.learn(seen[epoch % len(seen)], y, training.batch)
        if folder is not None and kept is not None:
            kept.keep(loop.state)
            tell_passes(folder, name, loop.done)
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def _loaded(training: SupervisedTraining, weights: Result) -> nn.Module:
    network = training.untrained()
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return network.eval()
