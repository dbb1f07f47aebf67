"""Sources: where knowledge of sensitive records comes from; each answers through the gate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stillroom.recipe import Recipe, RecipeWithPublicPart
from stillroom.recipe.common import DataWithPublicPart
from stillroom.sources.base import (
    Answers,
    Ask,
    Facts,
    Party,
    Places,
    Prepared,
    Progress,
    PublicSide,
    Request,
    Scores,
    Setting,
    Source,
    SourceTerms,
)
from stillroom.sources.ensemble import EnsembleSource
from stillroom.sources.plain import Plain, PlainSection
from stillroom.sources.sketch import SketchSection, SketchSource
from stillroom.sources.teachers import TeachersSection
from stillroom.sources.trained import Trained
from stillroom.sources.training import TrainingSection

__all__ = [
    "NO_MU",
    "SOURCES",
    "Answers",
    "Ask",
    "Facts",
    "Party",
    "Places",
    "Prepared",
    "Progress",
    "PublicSide",
    "RecipeOfSource",
    "RecipeWithSource",
    "Request",
    "Scores",
    "Setting",
    "Source",
    "SourceTerms",
]

SOURCES: dict[str, Source] = {
    source.name: source for source in (Trained(), EnsembleSource(), Plain(), SketchSource())
}
NO_MU = "sketch.mu: is missing: beside another source a sketch has a share of its own"
_SECTIONS = {
    "training": ("trained",),
    "sketch": ("trained", "ensemble", "sketch"),
    "teachers": ("ensemble",),
    "plain": ("plain",),
}
"""Which sources have which sections."""


class RecipeOfSource(Recipe):
    """A recipe of a method that learns from any source, and has no public part."""

    source: Literal["trained", "ensemble", "plain", "sketch"] = Field(
        "trained", description="where the privacy comes from; plain is as-published only"
    )
    training: TrainingSection = TrainingSection()
    sketch: SketchSection | None = Field(None, description="class statistics, released once")
    teachers: TeachersSection | None = Field(None, description="for source ensemble")
    plain: PlainSection | None = Field(None, description="for source plain")

    def misfits(self) -> dict[str, bool]:
        misplaced = {
            f"{name}: only for source {' or '.join(owners)}": name in self.model_fields_set
            and self.source not in owners
            for name, owners in _SECTIONS.items()
        }
        beside = self.sketch is not None and self.source != "sketch"
        return {
            **super().misfits(),
            **misplaced,
            **SOURCES[self.source].misfits(self),
            NO_MU: beside and self.sketch is not None and self.sketch.mu is None,
        }


class RecipeWithSource(RecipeOfSource, RecipeWithPublicPart):
    """A recipe of a method that learns on public records from any source."""

    data: DataWithPublicPart
