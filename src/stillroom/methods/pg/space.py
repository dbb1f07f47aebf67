"""The weights of one architecture: where models start, and what is public about them.

There are two kinds, heads over features and whole networks. Everything in a space is public or
sanitised but the shards themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.methods.pg.section import PgSection
from stillroom.private.shard_models import ShardModels
from stillroom.release.compressed_model import CompressedModel
from stillroom.release.model import ReleasedModel
from stillroom.sources import Setting
from stillroom.sources.sketch import DrawnSketch
from stillroom.vocabulary import Integers

Flat = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
FITTED, LABELLED = 1, 3
"""Seeds of the samples of a sketch that features are fitted on, and of those with classes."""


@dataclass(frozen=True)
class Examples:
    """Public records with labels, or samples of a sketch with the classes they were drawn for."""

    x: npt.NDArray[Any]
    y: Integers


def examples_of(setting: Setting, sketch: DrawnSketch) -> Examples | None:
    """What models may be trained and judged on in public; None where there is nothing."""
    known = setting.public.labelled
    if len(known):
        return Examples(known.x, known.y)
    if sketch.section is None:
        return None
    drawn = sketch.labelled_samples(sketch.section.samples, LABELLED)
    return None if drawn is None else Examples(*drawn)


class Space(ABC):
    """The weights of one architecture.

    Args:
        setting: of a certified recipe of method pg.
    """

    size: int
    start: Flat
    layers: list[slice]

    def __init__(self, setting: Setting) -> None:
        self.setting, self.recipe = setting, setting.recipe
        self.part = setting.recipe.collection
        self.classes = len(setting.facts.classes)

    @abstractmethod
    def settle(self, sketch: DrawnSketch, examples: Examples | None, paid_as: str) -> None:
        """Fix all that is public: features, scales, and where models start."""

    @abstractmethod
    def shards(self) -> ShardModels:
        """The models on the sensitive records, each a function of its own shard."""

    @abstractmethod
    def model(self, weights: Flat) -> ReleasedModel:
        """The model of some weights."""

    @abstractmethod
    def compressed(self, weights: Flat, kept: Mask, part: PgSection) -> CompressedModel:
        """The model of some weights, of which only some are kept, as codes."""

    @abstractmethod
    def accuracy(self, weights: Flat, examples: Examples) -> float:
        """On public records, or on samples."""

    @abstractmethod
    def importance(self, examples: Examples) -> Flat:
        """How much each weight of the start matters on public records, or on samples."""

    @abstractmethod
    def public_runs(self, examples: Examples, count: int) -> Flat:
        """Trainings on parts of public records, or of samples, less their start; one per row."""
