"""Method pg with source plain: a collection of ordinary models, and the paper's algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from stillroom.data import Dataset
from stillroom.methods.base import Measured, Result
from stillroom.methods.pg.compressing import coded_network
from stillroom.methods.pg.network_space import COLLECTIONS, network_of, training_of
from stillroom.methods.pg.published import Flat, Publishing
from stillroom.methods.pg.terms import ONE_MODEL, TRIES, about_model, controls_of
from stillroom.models.flat_weights import flatten, layers_of, unflatten
from stillroom.private.parameter_collection import Collection, CollectionPlan
from stillroom.public.compression import MOST_PICTURES, importance
from stillroom.public.pruning import kept_by_chance
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.compression import report
from stillroom.release.model import ReleasedModel
from stillroom.release.torch_model import TorchModel
from stillroom.sources import Setting
from stillroom.sources.base import Passages

if TYPE_CHECKING:
    from stillroom.methods.pg import PgRecipe


class PublishedJob:
    """A model of generated parameters, as the paper has it.

    Args:
        setting: of a recipe of method pg with source plain.

    Raises:
        BadInput: the network does not fit the records, or the disk is too small.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.recipe: PgRecipe = setting.recipe
        self.part, collection = self.recipe.published_part, self.recipe.collection
        self._training = training_of(setting)
        self._network = network_of(setting, self._training)
        self._layers = layers_of(self._network)
        setting.begin()
        setting.progress.tell("training the collection")
        shared = self.part.sharing == "neighbouring"
        plan = CollectionPlan(self._training, collection.models, self.recipe.data.key, shared)
        self._collection = Collection(
            setting.only_party().data,
            plan,
            flatten(self._network),
            folder=setting.places.private_work / COLLECTIONS,
            engine=setting.engine,
            on_done=setting.progress.step,
        )

    @property
    def width(self) -> int:
        """Weights of a model."""
        size: int = self._collection.size
        return size

    def run(self, passages: Passages) -> Result:
        """Draw all weights, again until the public test is passed or the tries are used up."""
        own = passages[self.setting.only_party().name]
        publishing, part = Publishing(self._collection, self.part, own), self.part
        for number in range(part.tries):
            self.setting.progress.tell("generating parameters")
            weights = self._generated(publishing, number)
            model = self._finished(weights, number)
            if part.threshold is None or self._tested(model) > part.threshold:
                break
        else:
            number += 1  # none of them passed
        controls: dict[str, Measured] = {}
        if controls_of(self.recipe):
            controls[ONE_MODEL] = self._collection.one_model()
        compression = None
        if isinstance(model, CompressedModel):
            classes = self.setting.facts.classes
            compression = report(self._released(self._layers_of(weights)), model, classes)
        return Result(model, {TRIES: number + 1}, controls=controls, compression=compression)

    def _generated(self, publishing: Publishing, number: int) -> Flat:
        """Algorithm 1, or 2 for publisher pgp; Algorithm 3 begins with the first."""
        if self.recipe.pg.publisher != "pgp":
            return publishing.generated(number)
        part, size = self.part, self._collection.size
        model = self._collection.published_model(
            self._layers,
            float(part.significant),
            part.parameter_grid.radius,
            max(1, int(part.significant * size)),
        )
        return publishing.grouped(number, model, self._layers)

    def _finished(self, weights: Flat, number: int) -> ReleasedModel:
        """The model; for publisher pgc pruned by chance, clustered and truncated (Algorithm 3)."""
        layers, part = self._layers_of(weights), self.part
        if self.recipe.pg.publisher != "pgc":
            return self._released(layers)
        matters = importance(layers, self._public.x[:MOST_PICTURES])
        seed = self.recipe.collection.start_seed + number
        return coded_network(
            layers,
            kept_by_chance(matters, seed, 1 - part.pruned),
            self.setting.facts.shape,
            about_model(self.recipe),
            codebook_bits=part.codebook_bits,
            residual_bits=part.residual_bits,
        )

    def _tested(self, model: ReleasedModel) -> float:
        guesses = model.logits(self._public.x).argmax(axis=1)
        return float((guesses == self._public.y).mean())

    @property
    def _public(self) -> Dataset:
        """Public records: a test on sensitive ones would be a question of its own."""
        labelled, tested = self.setting.public.labelled, self.setting.public.tested
        data = labelled if len(labelled) else tested
        assert data is not None
        return data

    def _layers_of(self, weights: Flat) -> nn.Module:
        network = self._training.built()
        unflatten(network, weights)
        return nn.Sequential(self._training.pictures, network).eval()

    def _released(self, layers: nn.Module) -> TorchModel:
        return TorchModel(layers, self.setting.facts.shape, about_model(self.recipe))
