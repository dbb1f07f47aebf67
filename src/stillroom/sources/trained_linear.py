"""A linear layer over public features, trained through the gate."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stillroom.data import PublicPictures
from stillroom.engine import Engine
from stillroom.features.feature_map import FeatureMap
from stillroom.private import linear_records, look_at
from stillroom.public.descent import softmax_gradient
from stillroom.recipe import Recipe
from stillroom.release.linear import linear_model
from stillroom.release.model import ReleasedModel
from stillroom.sources.base import Facts, Party, Passages, Places, Progress, PublicSide
from stillroom.sources.public_records import named_public_records
from stillroom.sources.sketch import FROM_SKETCH, DrawnSketch
from stillroom.sources.trained import STEPS, TrainedAnswers, fitted_on, has_learnt
from stillroom.sources.training import PublicHelp, TrainingSection, linear_layer, train_linear
from stillroom.vocabulary import Unit


def feature_map(
    recipe: Recipe, facts: Facts, party: Party, public: PublicSide, places: Places
) -> FeatureMap:
    """The recipe's features, and the public pictures their directions are fitted on.

    Raises:
        BadInput: they do not fit the records; nothing is paid for yet.
    """
    part, sketch = recipe.features, recipe.section("sketch")
    trunk = None
    if part.name == "auxiliary":
        trunk = public.auxiliary[:-1]
    pictures = None
    if part.fitted_on == "public":
        pictures = PublicPictures(public.records.x, fitted_on(recipe))
    elif part.fitted_on not in (None, "sketch"):
        data = named_public_records(
            str(part.fitted_on), facts.shape, party, public, "features.fitted_on"
        )
        pictures = PublicPictures(data.x, fitted_on(recipe))
    return FeatureMap(
        part.name,
        facts.shape,
        full_scale=part.full_scale,
        size=part.size,
        components=part.components,
        engine=Engine(**recipe.engine.model_dump()),
        cache=places.private_work / "features",
        auxiliary=trunk,
        pictures=pictures,
        drawn=0 if sketch is None else sketch.samples,
    )


class LinearTeacher:
    """A linear layer over features that are fixed, public, or fitted on public pictures.

    Args:
        recipe: a recipe with a [training] of model linear.
        facts: what is public about the data.
        party: whose records.
        public: labelled public records help where there are some.
        places: where directions and features are kept.
        progress: told.

    Raises:
        BadInput, NumericalDoubt: features or records do not fit; nothing is paid for yet.
    """

    def __init__(
        self,
        recipe: Recipe,
        facts: Facts,
        party: Party,
        public: PublicSide,
        places: Places,
        progress: Progress,
    ) -> None:
        self._recipe, self._facts, self._party, self._public = recipe, facts, party, public
        self._checkpoint = places.checkpoint
        self._features = feature_map(recipe, facts, party, public, places)
        self.width = len(facts.classes) * self._features.width
        progress.tell("features")
        look_at(party.data, lambda x: self._features.look(x, progress.step))
        self._sketch = DrawnSketch(recipe, facts, party)

    def open(self, passages: Passages, progress: Progress) -> TrainedAnswers:
        """Sketch, directions, training."""
        own, recipe, sketch = passages[self._party.name], self._recipe, self._sketch
        training: TrainingSection = recipe.section("training")
        sketch.draw(own, progress)
        self._features.fit(self._to_fit_on(), self._kept)
        data, gate = recipe.data, own[STEPS]
        records = linear_records(
            self._party.data, self._features.rows, Unit(data.unit), data.max_records_per_person
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
        model, untaught = self._model(layer.result()), None
        if help_ is not None:
            alone = PublicHelp(help_.gradient, help_.steps + training.steps, share=0.0)
            shape = (len(self._facts.classes), self._features.width)
            weights = linear_layer(training, data.declared_size, *shape, alone).weights
            untaught = self._model(weights)
        return TrainedAnswers(
            model=model,
            sketch=sketch,
            learnt=has_learnt(layer.drift, gate),
            network=getattr(model, "layers", None),
            untaught=untaught,
        )

    def _model(self, weights: npt.NDArray[np.float32]) -> ReleasedModel:
        return linear_model(self._features, weights)

    @property
    def _kept(self) -> Path:
        """Where this run keeps its directions, so that it goes on with the same ones."""
        recipe = hashlib.sha256(self._recipe.model_dump_json().encode()).hexdigest()
        return self._checkpoint / f"directions-{recipe[:16]}.npz"

    def _to_fit_on(self) -> PublicPictures | None:
        section = self._sketch.section
        drawn = None if section is None else self._sketch.samples(section.samples, 1)
        return None if drawn is None else PublicPictures(drawn, FROM_SKETCH)

    def _help(self, training: TrainingSection) -> PublicHelp | None:
        known = self._public.labelled
        if not len(known):
            return None
        gradient = softmax_gradient(self._features.rows(known.x), known.y, len(self._facts.classes))
        return PublicHelp(gradient, training.public_epochs, training.public_share)
