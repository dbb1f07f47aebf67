"""Whole networks as a space to publish in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from torch import nn

from stillroom.engine import WorkItem, run_all
from stillroom.engine.rows import ROW
from stillroom.errors import BadInput
from stillroom.methods.pg.compressing import coded_network, flat_importance, masks_of
from stillroom.methods.pg.section import PgSection
from stillroom.methods.pg.space import Examples, Flat, Mask, Space
from stillroom.methods.pg.terms import about_model
from stillroom.models import check_fits
from stillroom.models.flat_weights import flatten, layers_of, unflatten
from stillroom.models.weight_training import WeightTraining, train_unit
from stillroom.private.parameter_collection import CollectionPlan, NetworkShards
from stillroom.private.shard_models import ShardModels
from stillroom.public.compression import importance
from stillroom.randomness import order
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.model import ReleasedModel
from stillroom.release.torch_model import TorchModel
from stillroom.sources import Setting
from stillroom.sources.sketch import DrawnSketch

COLLECTIONS = "collections"


class NetworkSpace(Space):
    """Whole networks, from pictures to scores."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._training = training_of(setting)
        self._network = network_of(setting, self._training)
        self.start = flatten(self._network)
        self.size, self.layers = len(self.start), layers_of(self._network)
        setting.begin()

    def settle(self, sketch: DrawnSketch, examples: Examples | None, paid_as: str) -> None:
        if self.part.start != "common":
            assert examples is not None
            longer = replace(
                self._training,
                places=len(examples.y),
                epochs=self.part.start_steps,
                learning_rate=self.part.start_rate,
                checkpoints=1,
            )
            self.start = longer.trained(self.start, examples.x, examples.y, "start")

    def shards(self) -> ShardModels:
        setting = self.setting
        plan = CollectionPlan(self._training, self.part.models, self.recipe.data.key)
        return NetworkShards(
            setting.only_party().data,
            plan,
            self.size,
            folder=setting.places.private_work / COLLECTIONS,
            engine=setting.engine,
            on_done=setting.progress.step,
        )

    def _layers(self, weights: Flat) -> nn.Module:
        """From records as they are stored to scores."""
        network = self._training.built()
        unflatten(network, weights)
        return nn.Sequential(self._training.pictures, network).eval()

    def model(self, weights: Flat) -> ReleasedModel:
        layers = self._layers(weights)
        return TorchModel(layers, self.setting.facts.shape, about_model(self.recipe))

    def compressed(self, weights: Flat, kept: Mask, part: PgSection) -> CompressedModel:
        layers = self._layers(weights)
        return coded_network(
            layers,
            masks_of(layers, kept),
            self.setting.facts.shape,
            about_model(self.recipe),
            codebook_bits=part.codebook_bits,
            residual_bits=part.residual_bits,
        )

    def accuracy(self, weights: Flat, examples: Examples) -> float:
        guesses = self.model(weights).logits(examples.x).argmax(axis=1)
        return float((guesses == examples.y).mean())

    def importance(self, examples: Examples) -> Flat:
        return flat_importance(importance(self._layers(self.start), examples.x, examples.y))

    def public_runs(self, examples: Examples, count: int) -> Flat:
        """Each on as many records as a shard may have, by a public order."""
        self.setting.progress.tell("public runs")
        shuffled = order(self.part.start_seed, "runs", size=len(examples.y))
        units = []
        for number, own in enumerate(np.array_split(shuffled, count)):
            some = own[: self.part.shard_cap]
            payload = {"x": examples.x[some], "y": examples.y[some], "number": number}
            units.append(WorkItem(f"run-{number:05d}", payload))
        ends = run_all(
            partial(train_unit, self._training, self.start),
            units,
            engine=self.setting.engine,
            on_done=self.setting.progress.step,
        )
        return np.stack([end[ROW] - self.start for end in ends])


def training_of(setting: Setting) -> WeightTraining:
    """How one model of the recipe's collection is trained."""
    part, facts = setting.recipe.collection, setting.facts
    return WeightTraining(
        part.model,
        facts.shape,
        len(facts.classes),
        float(setting.recipe.features.full_scale),
        places=part.shard_cap,
        epochs=part.epochs,
        batch=part.batch,
        learning_rate=part.learning_rate,
        start_seed=part.start_seed,
        checkpoints=part.checkpoints,
    )


def network_of(setting: Setting, training: WeightTraining) -> nn.Module:
    """The recipe's network at its common start, which fits the records and can be released.

    Raises:
        BadInput: it does not, or has another number of weights than the recipe says.
    """
    part, facts = setting.recipe.collection, setting.facts
    network, given = training.built(), training.pictures.given
    check_fits(network, given, len(facts.classes), private_training=False)
    if any(True for _ in network.buffers()):
        raise BadInput(
            "the network keeps numbers beside its weights, as norms over the batch do",
            where="collection.model",
            why="they are learnt from records, and are not among the parameters that are published",
            remedy="use norms within one record, such as GroupNorm, or none",
        )
    layers = nn.Sequential(training.pictures, network)
    refuse_unexportable(part.model, layers, facts.shape, facts.classes)
    told, size = part.weights(facts.shape, len(facts.classes)), len(flatten(network))
    if told is not None and told != size:
        raise BadInput(
            f"the network has {size:,} weights, and the recipe says {told:,}",
            where="collection.parameters",
            why="the price is that of as many weights as are drawn",
            remedy=f"write parameters = {size}",
        )
    return network
