"""Linear layers over public features, as a space to publish in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from stillroom.data import PublicPictures
from stillroom.methods.pg.compressing import flat_importance
from stillroom.methods.pg.section import PgSection
from stillroom.methods.pg.space import FITTED, Examples, Flat, Mask, Space
from stillroom.methods.pg.terms import about_model
from stillroom.models.flat_weights import unflatten
from stillroom.private import look_at
from stillroom.private.head_models import HeadPlan, HeadShards
from stillroom.private.shard_models import ShardModels
from stillroom.public.codebooks import coded
from stillroom.public.compression import importance
from stillroom.public.whitening import fit_head, whitening
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.model import LinearModel, ReleasedModel
from stillroom.release.torch_model import TorchModel
from stillroom.sources import Setting
from stillroom.sources.sketch import FROM_SKETCH, DrawnSketch
from stillroom.sources.trained_linear import features_of


class HeadSpace(Space):
    """Linear layers over public features, which are brought to one scale in all directions."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._fitted = features_of(setting)
        self._features = self._fitted.map
        self._width = self._features.width
        self.size = self.classes * self._width
        # A class is a layer: its weights are compared with each other.
        self.layers = [slice(at, at + self._width) for at in range(0, self.size, self._width)]
        setting.begin()
        setting.progress.tell("features")
        step = setting.progress.step
        look_at(setting.only_party().data, lambda x: self._features.look(x, step))

    def settle(self, sketch: DrawnSketch, examples: Examples | None, paid_as: str) -> None:
        section, drawn = sketch.section, None
        if section is not None:
            drawn = sketch.samples(section.samples, FITTED)
        self._fitted.fit(None if drawn is None else PublicPictures(drawn, FROM_SKETCH), paid_as)
        self._scale = np.eye(self._width, dtype=np.float32)
        public = self.setting.public.records.x
        if self.part.scale != "none" and (drawn is not None or len(public)):
            rows = self._features.rows(public if drawn is None else drawn)
            self._scale = whitening(rows, self.part.ridge, diagonal=self.part.scale == "diagonal")
        self.start = np.zeros(self.size, dtype=np.float32)
        if self.part.start != "common":
            assert examples is not None
            self.start = fit_head(
                self._rows(examples.x),
                examples.y,
                self.classes,
                steps=self.part.start_steps,
                rate=self.part.start_rate,
            ).reshape(-1)

    def _rows(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        rows: npt.NDArray[np.float32] = self._features.rows(x) @ self._scale
        return rows

    def shards(self) -> ShardModels:
        part = self.part
        plan = HeadPlan(
            part.models, self.recipe.data.key, part.shard_cap, part.steps, part.learning_rate
        )
        records = self.setting.only_party().data
        return HeadShards(records, self._features.rows, self._scale, plan)

    def model(self, weights: Flat) -> ReleasedModel:
        return self._released(self._heads(weights))

    def _heads(self, weights: Flat) -> Flat:
        """Weights for rows as the features give them, one row per class."""
        heads: Flat = weights.reshape(self.classes, self._width) @ self._scale.T
        return heads

    def _released(self, heads: Flat) -> ReleasedModel:
        name, shape = self._features.name, self.setting.facts.shape
        if self._features.fixed:
            return LinearModel(heads, name, shape, self._features.table)
        return TorchModel(self._features.layers(heads), shape, about_model(self.recipe))

    def compressed(self, weights: Flat, kept: Mask, part: PgSection) -> CompressedModel:
        """Layers over a network's features keep the weights of their constant as they are."""
        heads, mask = self._heads(weights), kept.reshape(self.classes, self._width)
        last = self._width - (0 if self._features.fixed else 1)
        code = coded(heads[:, :last], mask[:, :last], part.codebook_bits, part.residual_bits)
        model = self._released(np.hstack([code.array(), heads[:, last:]]))
        return CompressedModel(model, {"weights" if self._features.fixed else "layer.weight": code})

    def accuracy(self, weights: Flat, examples: Examples) -> float:
        scores = self._rows(examples.x) @ weights.reshape(self.classes, self._width).T
        return float((scores.argmax(axis=1) == examples.y).mean())

    def importance(self, examples: Examples) -> Flat:
        layer = nn.Linear(self._width, self.classes, bias=False)
        unflatten(layer, self.start)
        return flat_importance(importance(layer, self._rows(examples.x), examples.y))

    def public_runs(self, examples: Examples, count: int) -> Flat:
        raise AssertionError("directions of public runs are for networks")
