"""What can be trained by method direct: a linear layer over features, or a whole network."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset, PublicPictures, Split
from stillroom.data.store import home, load_parts
from stillroom.engine import Engine
from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features import FEATURES
from stillroom.features.projection import (
    Grid,
    Projection,
    check_components,
    fit_projection,
    plain_rows,
)
from stillroom.methods.costs import plan_of
from stillroom.methods.direct import PublicHelp, layer_of, train
from stillroom.methods.recipe import Recipe
from stillroom.methods.terms import fitted_on
from stillroom.private import LinearPersons, LinearRecords
from stillroom.public.descent import softmax_gradient
from stillroom.release import LinearModel
from stillroom.release.model import ReleasedModel
from stillroom.vocabulary import Integers, OpenGate

Progress = Callable[[int, int], None]
CHECKED = 64
"""Records whose features are computed twice, before anything is paid for."""
FEW = 1000
"""Records that are not worth waking other cores for."""


class Learner(Protocol):
    """A model that is to be trained on the sensitive part of a split."""

    @property
    def width(self) -> int:
        """Coordinates of a gradient; known before anything is drawn."""

    def look(self, on_done: Progress) -> None:
        """Look at every record that will be used, before anything is paid for (K10).

        Raises:
            BadInput, NumericalDoubt: one cannot be used; nothing is drawn or stored.
        """

    def prepare(self, sampled: PublicPictures | None) -> None:
        """Get ready to train; `sampled` comes from the sketch. Nothing is refused any more."""

    def train(self, gate: OpenGate, on_step: Callable[[int], None]) -> None:
        """Train through a paid gate, or go on with it."""

    def noise_alone(self, sigma: float) -> float:
        """How likely noise alone is to drift as far as the noisy sums did, at most."""

    def guesses(self, data: Dataset) -> Integers:
        """The class given to each record; no record sways another's."""

    def model(self) -> ReleasedModel:
        """What is handed over."""


class LinearLearner:
    """A linear layer over features that are fixed, public, or fitted on public pictures.

    Args:
        recipe: the recipe.
        split: its sensitive part is trained on.
        folder: of the run; keeps fitted directions, so that a run goes on with the same ones.
        auxiliary: a network trained on public records, for features `auxiliary`.
        labelled: public records with labels, which help where the recipe says so.

    Raises:
        BadInput: the features, or what their directions are fitted on, do not fit the records;
            nothing is paid for yet.
    """

    def __init__(
        self,
        recipe: Recipe,
        split: Split,
        folder: Path,
        auxiliary: Any = None,
        labelled: Dataset | None = None,
    ) -> None:
        part, data = recipe.features, split.sensitive
        self._recipe, self._data, self._folder = recipe, data, folder
        self._labelled = labelled
        self._help: PublicHelp | None = None
        self._projection: Projection | None = None
        self._looked: list[tuple[Dataset, Grid]] = []
        self._test = split.test
        self._extractor = None
        if part.name not in FEATURES:
            from stillroom.features.extraction import Extractor

            self._extractor = Extractor(
                part.name, data.shape, part.full_scale, part.size, auxiliary
            )
        fitted = part.fitted_on not in (None, "sketch")
        self._public = _public(recipe, split) if fitted else None
        self._refuse_misfits()

    def _refuse_misfits(self) -> None:
        """What cannot work is found before anything is paid for."""
        if self._extractor is None:
            return
        features = math.prod(self._extractor.layout)
        _ = self._extractor.graph
        components, sketch = self._recipe.features.components, self._recipe.sketch
        if components is not None:
            drawn = 0 if sketch is None else sketch.samples
            pictures = drawn if self._public is None else len(self._public.x)
            check_components(components, features, pictures)

    @property
    def width(self) -> int:
        """One weight a class and feature, and one for a constant."""
        part, shape = self._recipe.features, self._data.shape
        if part.components is not None:
            return len(self._data.classes) * (part.components + 1)
        if self._extractor is not None:
            high, wide = self._extractor.layout
            return len(self._data.classes) * (high * wide + 1)
        columns = FEATURES[part.name](np.zeros((1, *shape), np.float32)).shape[1]
        return len(self._data.classes) * int(columns)

    def fit(self, sampled: PublicPictures | None) -> None:
        """Find the directions that features are brought to; `sampled` comes from the sketch."""
        part = self._recipe.features
        if part.components is not None:
            recipe = hashlib.sha256(self._recipe.model_dump_json().encode()).hexdigest()
            kept = self._folder / f"directions-{recipe[:16]}.npz"
            pictures = sampled if self._public is None else self._public
            assert pictures is not None
            if not kept.exists():
                fitted = fit_projection(self._grid, pictures, part.components)
                draft = kept.with_suffix(".draft.npz")
                np.savez(draft, mean=fitted.mean, directions=fitted.directions)
                os.replace(draft, kept)
            with np.load(kept) as arrays:
                self._projection = Projection(arrays["mean"], arrays["directions"])

    def look(self, on_done: Progress) -> None:
        """Compute the features of sensitive and tested records, and some of them twice."""
        for part in (self._data, self._test):
            if self._extractor is not None:
                self._looked.append((part, self._grid(part.x, on_done)))
            else:
                refuse_company(self._recipe.features.name, part.x)

    def prepare(self, sampled: PublicPictures | None) -> None:
        """Bring the features to their directions."""
        self.fit(sampled)
        rows = self._rows_of(self._data)
        classes = len(self._data.classes)
        if self._recipe.data.unit == "record" or self._data.persons is None:
            self._records = LinearRecords(rows, self._data.y, classes)
        else:
            most = self._recipe.data.max_records_per_person
            self._records = LinearPersons(rows, self._data.y, classes, self._data.persons, most)
        if self._labelled is not None and len(self._labelled):
            training = self._recipe.training
            known = self.rows(self._labelled.x)
            gradient = softmax_gradient(known, self._labelled.y, classes)
            self._help = PublicHelp(gradient, training.public_epochs, training.public_share)

    def _grid(self, x: npt.NDArray[Any], on_done: Progress = lambda done, total: None) -> Grid:
        assert self._extractor is not None
        few = len(x) < FEW
        engine = Engine("serial") if few else Engine(**self._recipe.engine.model_dump())
        # Networks are slow, and their features are kept; they are as sensitive as their records.
        part = self._recipe.features
        slow = part.size is not None or part.name == "auxiliary"
        cache = home() / "features" if slow and not few else None
        return self._extractor.grid(x, engine=engine, cache=cache, on_done=on_done)

    def rows(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Feature rows of records, each from its own record alone."""
        if self._extractor is None:
            return FEATURES[self._recipe.features.name](x)
        return self._on_directions(self._grid(x))

    def _rows_of(self, data: Dataset) -> npt.NDArray[np.float32]:
        """The rows of records that were looked at before, and of others."""
        for part, grid in self._looked:
            if part is data:
                return self._on_directions(grid)
        return self.rows(data.x)

    def _on_directions(self, grid: Grid) -> npt.NDArray[np.float32]:
        return plain_rows(grid) if self._projection is None else self._projection.rows(grid)

    def train(self, gate: OpenGate, on_step: Callable[[int], None]) -> None:
        """Closed-form clipping, integer sums."""
        training = self._recipe.training
        help_ = self._help if training.public_share or training.public_epochs else None
        self._layer = train(gate, self._records, plan_of(self._recipe), on_step, help_)
        self._weights = self._layer.result()

    def noise_alone(self, sigma: float) -> float:
        """By the drift of the noisy sums."""
        return self._layer.drift.chance(sigma)

    def guesses(self, data: Dataset) -> Integers:
        """By exact logits."""
        records = LinearRecords(self._rows_of(data), data.y, len(data.classes))
        return records.guesses(self._weights)

    def scores(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The logits of records that anyone may see."""
        logits: npt.NDArray[np.float32] = self.rows(x) @ self._weights.T
        return logits

    def model(self) -> ReleasedModel:
        """A numpy graph for fixed features, else torch layers."""
        return self._with(self._weights)

    def public_only(self) -> ReleasedModel:
        """The same model trained on the labelled public records alone: a control."""
        assert self._help is not None
        plan = plan_of(self._recipe)
        help_ = PublicHelp(self._help.gradient, self._help.steps + plan.steps, share=0.0)
        classes = len(self._data.classes)
        return self._with(layer_of(plan, classes, self.width // classes, help_).weights)

    def _with(self, weights: npt.NDArray[np.float32]) -> ReleasedModel:
        name = self._recipe.features.name
        if self._extractor is None:
            return LinearModel(weights, name, self._data.shape)
        from stillroom.features.layers import LinearOverFeatures
        from stillroom.release.torch_model import TorchModel

        layers = LinearOverFeatures(
            self._extractor.network, self._extractor.shortest, self._projection, weights
        )
        return TorchModel(layers, self._data.shape, f"linear layer over features `{name}`")


def refuse_company(name: str, x: npt.NDArray[Any]) -> None:
    """See for some records that their fixed features are the same, to the last bit, alone.

    Raises:
        NumericalDoubt: they are not, on this machine.
    """
    rows, some = FEATURES[name](x), range(0, len(x), max(1, len(x) // CHECKED))
    if not all(
        np.array_equal(FEATURES[name](x[i : i + 1])[0], rows[i], equal_nan=True) for i in some
    ):
        raise NumericalDoubt(
            "a record's features differ when they are computed alone",
            where=name,
            why="one record could then move the rows of others, which nobody paid for",
            remedy="report it, with the processor and the version of numpy",
        )


def learner_of(recipe: Recipe, split: Split, recipe_folder: Path, run_folder: Path) -> Learner:
    """What the recipe trains.

    Raises:
        BadInput: something it needs does not fit the records; nothing is paid for yet.
    """
    if recipe.training.model == "linear":
        return LinearLearner(recipe, split, run_folder)
    from stillroom.methods.network_learner import NetworkLearner

    return NetworkLearner(recipe, split, recipe_folder)


def _public(recipe: Recipe, split: Split) -> PublicPictures:
    source, origin = str(recipe.features.fitted_on), fitted_on(recipe)
    if source == "public":
        return PublicPictures(split.public.x, origin)
    parts = load_parts(source, None)
    data, shape = parts.get("all") or parts["train"], split.sensitive.shape
    refuse_overlap(data, split, "features.fitted_on")
    if data.shape != shape:
        raise BadInput(
            f"{source} has records of shape {data.shape}, the sensitive ones {shape}",
            where="features.fitted_on",
            why="directions of other features mean nothing here",
            remedy="fit on pictures of the same shape",
        )
    return PublicPictures(data.x, origin)


def refuse_overlap(public: Dataset, split: Split, where: str) -> None:
    """Refuse public records that are sensitive too, or tested on."""
    seen = set(public.ids)
    if not seen.isdisjoint(split.sensitive.ids):
        raise BadInput(
            "public and sensitive records overlap",
            where=where,
            why="what is fitted on them would tell about sensitive records, and nobody paid for it",
            remedy="use public records that are not among the sensitive ones",
        )
    if not seen.isdisjoint(split.test.ids):
        raise BadInput(
            "public and tested records overlap",
            where=where,
            why="a model that has seen them is not tested by them, and they may be sensitive too",
            remedy="use public records that are not among the tested ones",
        )
