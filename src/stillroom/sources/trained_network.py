"""A whole network, trained on the sensitive pictures themselves; needs torch and Opacus."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.models import AsPictures, build, check_fits
from stillroom.models.augmentation import Augment
from stillroom.models.checkpoints import Checkpoint
from stillroom.models.flat_weights import Flat, flatten, trainable, unflatten
from stillroom.models.training import NetworkTraining
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_persons import network_records
from stillroom.private.persons import capped
from stillroom.public import Descent
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.torch_model import TorchModel
from stillroom.sources.base import Passages, Setting
from stillroom.sources.public_records import named_public_records
from stillroom.sources.sketch import DrawnSketch
from stillroom.sources.trained import STEPS, TrainedAnswers, has_learnt
from stillroom.sources.training import TrainingSection, descend
from stillroom.vocabulary import Bounded, SecretSample, Unit

PUBLIC_RATE = 1e-3
"""Of AdamW, before the first private step."""
PUBLIC_START_BATCH = 128
"""Public records per step, before the first private one."""
PUBLIC_BATCH = 512
"""Public records that a step's exact gradient is taken over, the next ones each step."""


class NetworkTeacher:
    """A network that sees the sensitive pictures, clipped by Opacus.

    Guarantee: when it is made, and nothing is paid for yet, made-up records show that the network's
    gradients are each record's own, with the recipe's views and clipping.

    Args:
        setting: of a recipe with a [training] of some network.

    Raises:
        BadInput: the network, its weights, its views or the public records do not fit; nothing is
            paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        recipe, facts, part = setting.recipe, setting.facts, setting.recipe.training
        self._part: TrainingSection = part
        self._setting, self._party = setting, setting.only_party()
        self._pictures = AsPictures(facts.shape, recipe.features.full_scale)
        self._class_weights = part.weights_of(facts.classes)
        weights = setting.places.files / part.weights if part.weights else None
        given, classes = self._pictures.given, len(facts.classes)
        self._network = build(part.model, given, classes, seed=part.start_seed, weights=weights)
        check_fits(self._network, given, classes, private_training=True)
        self._about = f"network `{part.model}`"
        refuse_unexportable(part.model, self._layers, facts.shape, facts.classes)
        self._public = None
        if part.public_source is not None:
            self._public = self._public_records(part.public_source)
        setting.begin(quick=not self._starts_publicly)
        self._start_publicly()
        self._start = flatten(self._network)
        self.width = len(self._start)
        setting.progress.tell("looking at the records")
        moved = bool(part.shift or part.mirror)
        data, own = self._party.data, recipe.data
        if own.unit == "person":
            # Surplus records would be refused once they are summed, after the payment (K10).
            data = capped(data, own.max_records_per_person)
        self._records = network_records(
            data,
            self._pictures,
            self._network,
            Unit(own.unit),
            own.max_records_per_person,
            augment=Augment(part.start_seed, part.shift, part.mirror) if moved else None,
            views=part.views,
            ghost=part.ghost,
            class_weights=self._class_weights,
        )
        self._sketch = DrawnSketch(setting)

    @property
    def _layers(self) -> nn.Module:
        return nn.Sequential(self._pictures, self._network)

    def _public_records(self, source: str) -> tuple[torch.Tensor, torch.Tensor]:
        data = named_public_records(self._setting, source, "training.public_source")
        if data.classes != self._setting.facts.classes:
            raise BadInput(
                f"{source} has other classes than the sensitive data",
                where="training.public_source",
                why="its gradient would be that of another problem",
                remedy="use public records of the same classes",
            )
        return self._tensor(data), torch.from_numpy(np.array(data.y))

    def _tensor(self, data: Dataset) -> torch.Tensor:
        pictures: torch.Tensor = self._pictures(torch.from_numpy(np.array(data.x)))
        return pictures

    @property
    def _weight(self) -> torch.Tensor | None:
        return None if self._class_weights is None else torch.tensor(self._class_weights)

    @property
    def _starts_publicly(self) -> bool:
        return self._public is not None and self._part.public_epochs > 0

    def _start_publicly(self) -> None:
        epochs = self._part.public_epochs
        if not self._starts_publicly:
            return
        assert self._public is not None
        training = NetworkTraining(
            self._network,
            nn.Identity(),
            epochs=epochs,
            learning_rate=PUBLIC_RATE,
            seed=self._part.start_seed,
        )
        name, progress = self._public_start(epochs), self._setting.progress
        kept = Checkpoint(self._setting.places.work / f"{name}.state", name)
        progress.tell("training on public records")
        if (found := kept.load()) is not None:
            training.restore(found)
        while training.done < epochs:
            training.learn(*self._public, PUBLIC_START_BATCH, self._weight)
            if training.done < epochs:
                kept.keep(training.state)
            else:  # found again by every run that needs it
                kept.keep_now(training.state())
            progress.step(training.done, epochs)

    def _public_start(self, epochs: int) -> str:
        """A digest of all that the public training depends on."""
        assert self._public is not None
        numbers = (epochs, PUBLIC_RATE, PUBLIC_START_BATCH, self._part.start_seed)
        said = f"public start {torch.__version__} {self._about} {numbers}"
        found = hashlib.sha256(said.encode() + flatten(self._network).tobytes())
        weight = () if self._weight is None else (self._weight,)
        for part in (*self._public, *weight):
            found.update(f"{part.dtype} {tuple(part.shape)}".encode() + part.numpy().tobytes())
        return found.hexdigest()[:32]

    def open(self, passages: Passages) -> TrainedAnswers:
        """Opacus clips, the gate samples and draws."""
        part, clip, progress = self._part, self._part.clipping, self._setting.progress
        assert isinstance(clip, NetworkClip)
        gate, helped = passages[self._party.name][STEPS], self._public is not None
        self._sketch.draw(passages)
        self._steps = 0
        layer = Descent(
            self._start,
            unit=clip.unit,
            divisor=part.divisor(self._setting.recipe.data.declared_size),
            learning_rate=part.learning_rate,
            momentum=part.momentum,
            ema=part.ema,
            public_gradient=self._public_gradient if helped else None,
            public_share=part.public_share if helped else 0.0,
        )

        def clipped_sum(secret: SecretSample | None, step: int) -> Bounded:
            return self._records.clipped_sum(layer.weights, clip, secret, step=step)

        progress.tell("training")
        descend(gate, layer, clipped_sum, part, lambda step: progress.step(step, gate.count))
        unflatten(self._network, layer.result())
        model = TorchModel(self._layers.eval(), self._setting.facts.shape, self._about)
        return TrainedAnswers(model, self._sketch, has_learnt(layer.drift, gate))

    def _public_gradient(self, weights: Flat) -> Flat:
        assert self._public is not None
        x, y = self._public
        places = torch.arange(self._steps * PUBLIC_BATCH, (self._steps + 1) * PUBLIC_BATCH) % len(y)
        self._steps += 1
        unflatten(self._network, weights)
        logits, weight = self._network(x[places]), self._weight
        # Torch's own mean would divide by the weights, in each step by others.
        loss = F.cross_entropy(logits, y[places], weight, reduction="none").mean()
        parts = torch.autograd.grad(loss, trainable(self._network))
        return np.concatenate([part.reshape(-1).numpy() for part in parts])
