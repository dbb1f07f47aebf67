"""A whole network, trained on the sensitive pictures themselves; needs torch and Opacus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.data import Dataset, PublicPictures, Split
from stillroom.data.store import load_parts
from stillroom.errors import BadInput
from stillroom.methods.costs import plan_of
from stillroom.methods.direct import descend
from stillroom.methods.learners import Progress, refuse_overlap
from stillroom.methods.own_network import refuse_unexportable
from stillroom.methods.recipe import Recipe
from stillroom.models import AsPictures, build, check_fits
from stillroom.models.augmentation import Augment
from stillroom.models.flat_weights import Flat, flatten, trainable, unflatten
from stillroom.models.training import NetworkTraining
from stillroom.private.network_clip import NetworkClip
from stillroom.private.networks import NetworkRecords, guesses
from stillroom.public import Descent
from stillroom.release.model import ReleasedModel
from stillroom.release.torch_model import TorchModel
from stillroom.vocabulary import Integers, OpenGate

PUBLIC_RATE = 1e-3
"""Of AdamW, before the first private step."""
PUBLIC_START_BATCH = 128
"""Public records per step, before the first private one."""
PUBLIC_BATCH = 512
"""Public records that a step's exact gradient is taken over, the next ones each step."""


class NetworkLearner:
    """A network over the pictures, by DP-SGD (E6).

    Guarantee: when it is made, and nothing is paid for yet, made-up records show that the network's
    gradients are each record's own, with the recipe's views and clipping.

    Args:
        recipe: the recipe.
        split: its sensitive part is trained on.
        folder: of the recipe; a file of weights lies beside it.

    Raises:
        BadInput: the network, its weights, its views or the public records do not fit; nothing is
            paid for yet.
    """

    def __init__(self, recipe: Recipe, split: Split, folder: Path) -> None:
        part, data = recipe.training, split.sensitive
        self._recipe, self._data = recipe, data
        self._pictures = AsPictures(data.shape, recipe.features.full_scale)
        weights = folder / part.weights if part.weights else None
        given = self._pictures.given
        self._network = build(
            part.model, given, len(data.classes), seed=part.start_seed, weights=weights
        )
        check_fits(self._network, given, len(data.classes), private_training=True)
        self._public = self._public_records(split)
        if self._public is not None and part.public_epochs:
            stages = NetworkTraining(
                self._network,
                nn.Identity(),
                epochs=part.public_epochs,
                learning_rate=PUBLIC_RATE,
                seed=part.start_seed,
            )
            for _ in range(part.public_epochs):
                stages.learn(*self._public, PUBLIC_START_BATCH)
        self._start = flatten(self._network)
        augment = (
            Augment(part.start_seed, part.shift, part.mirror) if part.shift or part.mirror else None
        )
        self._records = NetworkRecords(
            self._tensor(data.x),
            data.y,
            len(data.classes),
            self._network,
            augment=augment,
            views=part.views,
            ghost=part.ghost,
        )

    def _public_records(self, split: Split) -> tuple[torch.Tensor, torch.Tensor] | None:
        source = self._recipe.training.public_source
        if source is None:
            return None
        parts = load_parts(source, None)
        public = parts.get("all") or parts["train"]
        refuse_overlap(public, split, "training.public_source")
        if (public.shape, public.classes) != (self._data.shape, self._data.classes):
            raise BadInput(
                f"{source} has other records or classes than the sensitive data",
                where="training.public_source",
                why="its gradient would be that of another problem",
                remedy="use public records of the same shape and classes",
            )
        return self._tensor(public.x), torch.from_numpy(np.array(public.y))

    def _tensor(self, x: npt.NDArray[Any]) -> torch.Tensor:
        pictures: torch.Tensor = self._pictures(torch.from_numpy(np.array(x)))
        return pictures

    @property
    def width(self) -> int:
        """The trainable weights."""
        return len(self._start)

    def look(self, on_done: Progress) -> None:
        """See that the network can be released; the records were looked at before."""
        layers = nn.Sequential(self._pictures, self._network)
        name = self._recipe.training.model
        refuse_unexportable(name, layers, self._data.shape, self._data.classes)

    def prepare(self, sampled: PublicPictures | None) -> None:
        """Nothing is fitted: a network looks at the pictures themselves."""

    def train(self, gate: OpenGate, on_step: Callable[[int], None]) -> None:
        """Opacus clips, the gate samples and draws."""
        part, plan = self._recipe.training, plan_of(self._recipe)
        clip = plan.clip
        assert isinstance(clip, NetworkClip)
        self._steps = 0
        self._layer = Descent(
            self._start,
            unit=clip.unit,
            divisor=plan.divisor,
            learning_rate=part.learning_rate,
            momentum=part.momentum,
            ema=part.ema,
            public_gradient=None if self._public is None else self._public_gradient,
            public_share=0.0 if self._public is None else part.public_share,
        )
        layer = self._layer
        descend(
            gate,
            layer,
            lambda secret, step: self._records.clipped_sum(layer.weights, clip, secret, step=step),
            plan,
            on_step,
        )
        self._weights = layer.result()
        unflatten(self._network, self._weights)

    def _public_gradient(self, weights: Flat) -> Flat:
        assert self._public is not None
        x, y = self._public
        places = torch.arange(self._steps * PUBLIC_BATCH, (self._steps + 1) * PUBLIC_BATCH) % len(y)
        self._steps += 1
        unflatten(self._network, weights)
        loss = F.cross_entropy(self._network(x[places]), y[places])
        parts = torch.autograd.grad(loss, trainable(self._network))
        return np.concatenate([part.reshape(-1).numpy() for part in parts])

    def noise_alone(self, sigma: float) -> float:
        """By the drift of the noisy sums."""
        return self._layer.drift.chance(sigma)

    def guesses(self, data: Dataset) -> Integers:
        """One record at a time."""
        return guesses(self._network, self._weights, self._tensor(data.x))

    def model(self) -> ReleasedModel:
        """The network, from raw records."""
        layers = nn.Sequential(self._pictures, self._network)
        return TorchModel(layers, self._data.shape, f"network `{self._recipe.training.model}`")
