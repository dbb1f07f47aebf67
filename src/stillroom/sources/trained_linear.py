"""A linear layer over public features, trained through the gate."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stillroom.data import PublicPictures
from stillroom.features.feature_map import FeatureMap
from stillroom.private import capped, linear_records, look_at
from stillroom.public.descent import softmax_gradient
from stillroom.release.model import LinearModel, ReleasedModel
from stillroom.sources.base import Passages, Setting
from stillroom.sources.public_records import named_public_records
from stillroom.sources.sketch import FROM_SKETCH, DrawnSketch
from stillroom.sources.trained import STEPS, TrainedAnswers, fitted_on, has_learnt
from stillroom.sources.training import PublicHelp, TrainingSection, linear_layer, train_linear
from stillroom.vocabulary import Unit


@dataclass(frozen=True)
class RecipeFeatures:
    """A recipe's features, and the public pictures their directions are fitted on.

    Args:
        map: from records to rows.
        pictures: public ones; None where directions are fitted on a sketch, or not at all.
        keep: where this run keeps directions, so that it goes on with the same ones.
    """

    map: FeatureMap
    pictures: PublicPictures | None
    keep: Path

    def fit(self, drawn: PublicPictures | None = None, paid_as: str = "") -> None:
        """Find the directions, on public pictures or on those drawn from a sketch.

        Args:
            drawn: from a sketch, where directions are fitted on one.
            paid_as: the block that paid for the sketch: directions of another are never taken up.
        """
        keep = self.keep if self.pictures else self.keep.with_stem(f"{self.keep.stem}-{paid_as}")
        self.map.fit(self.pictures or drawn, keep)


def features_of(setting: Setting) -> RecipeFeatures:
    """The recipe's features.

    Raises:
        BadInput: they do not fit the records; nothing is paid for yet.
    """
    recipe, facts, public, places = setting.recipe, setting.facts, setting.public, setting.places
    part, sketch = recipe.features, recipe.section("sketch")
    pictures = None
    if part.fitted_on == "public":
        pictures = PublicPictures(public.records.x, fitted_on(recipe))
    elif part.fitted_on not in (None, "sketch"):
        where, source = "features.fitted_on", str(part.fitted_on)
        data = named_public_records(setting, source, where)
        pictures = PublicPictures(data.x, fitted_on(recipe))
    drawn = 0 if sketch is None else sketch.samples
    features = FeatureMap(
        part.name,
        facts.shape,
        full_scale=part.full_scale,
        size=part.size,
        components=part.components,
        engine=setting.engine,
        auxiliary=public.auxiliary[:-1] if part.name == "auxiliary" else None,
        fitted_on=drawn if pictures is None else len(pictures.x),
        table=recipe.table,
        cache=places.private_work / "features",
    )
    digest = hashlib.sha256(recipe.model_dump_json().encode()).hexdigest()
    keep = places.checkpoint / f"directions-{digest[:16]}.npz"
    return RecipeFeatures(features, pictures, keep)


class LinearTeacher:
    """A linear layer over features that are fixed, public, or fitted on public pictures.

    Args:
        setting: of a recipe with a [training] of model linear.

    Raises:
        BadInput, NumericalDoubt: features or records do not fit; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting, self._party = setting, setting.only_party()
        self._classes = len(setting.facts.classes)
        self._class_weights = setting.recipe.training.weights_of(setting.facts.classes)
        self._fitted = features_of(setting)
        self._features = self._fitted.map
        self.width = self._classes * self._features.width
        setting.begin(quick=self._features.fixed)
        setting.progress.tell("features")
        self._data, part = self._party.data, setting.recipe.data
        if part.unit == "person":
            # Surplus records would be refused once they are summed, after the payment (K10).
            self._data = capped(self._data, part.max_records_per_person)
        look_at(self._data, lambda x: self._features.look(x, setting.progress.step))
        self._sketch = DrawnSketch(setting)

    def open(self, passages: Passages) -> TrainedAnswers:
        """Sketch, directions, training."""
        recipe, progress = self._setting.recipe, self._setting.progress
        training: TrainingSection = recipe.section("training")
        self._sketch.draw(passages)
        data, gate = recipe.data, passages[self._party.name][STEPS]
        self._fitted.fit(self._to_fit_on(), gate.paid_as)
        progress.tell("features")
        records = linear_records(
            self._data,
            self._features.rows,
            Unit(data.unit),
            data.max_records_per_person,
            self._class_weights,
        )
        help_ = self._help(training)
        progress.tell("training")
        layer = train_linear(
            gate,
            records,
            training,
            data.declared_size,
            lambda step: progress.step(step, gate.count),
            help_ if training.public_share or training.public_epochs else None,
        )
        untaught = None
        if help_ is not None:
            alone = PublicHelp(help_.gradient, help_.steps + training.steps, share=0.0)
            shape = (self._classes, self._features.width)
            weights = linear_layer(training, data.declared_size, *shape, alone).weights
            untaught = self._model(weights)
        learnt = has_learnt(layer.drift, gate)
        return TrainedAnswers(self._model(layer.result()), self._sketch, learnt, untaught)

    def _model(self, weights: npt.NDArray[np.float32]) -> ReleasedModel:
        """A numpy graph for fixed features, else torch layers."""
        name, shape = self._features.name, self._setting.facts.shape
        if self._features.fixed:
            return LinearModel(weights, name, shape, self._features.table)
        from stillroom.release.torch_model import TorchModel

        about = f"linear layer over features `{name}`"
        return TorchModel(self._features.layers(weights), shape, about)

    def _to_fit_on(self) -> PublicPictures | None:
        section = self._sketch.section
        drawn = None if section is None else self._sketch.samples(section.samples, 1)
        return None if drawn is None else PublicPictures(drawn, FROM_SKETCH)

    def _help(self, training: TrainingSection) -> PublicHelp | None:
        known = self._setting.public.labelled
        if not len(known):
            return None
        rows, weights = self._features.rows(known.x), self._class_weights
        gradient = softmax_gradient(rows, known.y, self._classes, weights)
        return PublicHelp(gradient, training.public_epochs, training.public_share)
