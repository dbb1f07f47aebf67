"""Source plain: one ordinary teacher that saw every record; for a paper's algorithm as published.

It promises nothing: what it says leaves unprotected, and the price is infinite. A method that
bounds its answers itself, as a paper may, makes its own requests and asks `teacher`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.gate import Unprotected
from stillroom.recipe import Recipe, Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_EPOCHS, MOST_PICTURES
from stillroom.sources.base import (
    Ask,
    Facts,
    Observed,
    Party,
    Passages,
    Places,
    Progress,
    PublicSide,
    Reals,
    Records,
    Request,
    Scores,
    SourceTerms,
    only,
)
from stillroom.vocabulary import Integers

OUTPUTS = "outputs"
OF_PLAIN = {"calls": "checked: each executed call is a row of the ledger"}


class PlainSection(Section):
    """One ordinary teacher, trained on all records without protection."""

    teacher: str | None = Field(
        None,
        description="a name in the zoo, or package.module:callable; student-50k or the "
        "method's auxiliary network when left out",
    )
    epochs: int = Field(
        6, ge=1, le=MOST_EPOCHS, description="passes over the public part, or as many steps"
    )
    batch: int = Field(128, ge=2, le=MOST_PICTURES, description="records per step")
    learning_rate: float = Field(4e-3, gt=0, le=LARGEST_RATE, description="the highest")
    start_seed: Seed = Field(0, description="of weights and order")


class Plain:
    """An ordinary network; in mode as-published alone."""

    name: ClassVar[str] = "plain"

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """It promises nothing, so it is for comparison alone."""
        return {
            "mode, source: plain promises nothing and belongs to mode as-published": (
                recipe.mode != "as-published"
            )
        }

    def requests(self, recipe: Recipe, facts: Facts, ask: Ask) -> list[Request]:
        """All scores at once, unprotected."""
        why = "an ordinary teacher's own scores leave as they are"
        width = max(1, ask.scores) * len(facts.classes)
        return [Request.fixed(OUTPUTS, Unprotected(width, why, recipe.data.pair.unit), 1)]

    def terms(self, recipe: Recipe, observed: Observed, paid: int) -> SourceTerms:
        """What it was, and that each call was recorded."""
        return SourceTerms(f"network `{_make(recipe)}`", OF_PLAIN, ())

    def prepare(
        self,
        recipe: Recipe,
        facts: Facts,
        parties: Sequence[Party],
        public: PublicSide,
        ask: Ask,
        places: Places,
        progress: Progress,
    ) -> PlainAnswers:
        """Train it, on public and sensitive records."""
        from stillroom.models.augmentation import Views
        from stillroom.models.supervised import SupervisedTraining
        from stillroom.private.plain import train_in_the_clear

        party, part = only(parties, self.name), _section(recipe)

        def training(data: Any) -> Any:
            return SupervisedTraining(
                model=_make(recipe),
                x=np.array(data.x),
                y=np.array(data.y),
                classes=len(facts.classes),
                full_scale=recipe.features.full_scale,
                views=Views(),
                epochs=part.epochs,
                batch=part.batch,
                learning_rate=part.learning_rate,
                start_seed=part.start_seed,
            )

        progress.tell("training the teacher in the clear")
        teacher = train_in_the_clear(
            party.data,
            public.records,
            public.training or training,
            engine=Engine(**recipe.engine.model_dump()),
            folder=places.private_work / "trained-in-the-clear",
            on_done=progress.step,
        )
        return PlainAnswers(teacher, recipe, facts, ask, party.name)


class PlainAnswers:
    """An ordinary teacher behind its passages.

    Args:
        teacher: gives bounded or unprotected values only.
        recipe: the recipe.
        facts: what is public about the data.
        ask: how many scores may be asked.
        party: whose records it saw.
    """

    width = 1
    network: ClassVar[Any] = None
    observed: ClassVar[Observed] = {}

    def __init__(self, teacher: Any, recipe: Recipe, facts: Facts, ask: Ask, party: str) -> None:
        from stillroom.models import AsPictures

        self.teacher = teacher
        self._pictures = AsPictures(facts.shape, recipe.features.full_scale)
        self._records, self._classes, self._party = ask.scores, len(facts.classes), party

    def open(self, passages: Passages, progress: Progress) -> PlainAnswers:
        """Keep the passages."""
        self.passages = passages[self._party]
        return self

    @property
    def left(self) -> int:
        """All records at once, or none any more."""
        return self._records * self.passages[OUTPUTS].ahead(1)

    def scores(self, x: Records, groups: Integers | None = None) -> Scores:
        """Its logits, in one call."""
        import torch

        from stillroom.private.plain import GRID

        if len(x) > self._records:
            raise BadInput(
                f"{self._records} records may be asked about, got {len(x)}",
                where="scores",
                why="the call was planned for so many",
                remedy="ask about fewer, or plan for more",
            )
        padded = np.zeros((self._records, *x.shape[1:]), x.dtype)
        padded[: len(x)] = x
        pictures = self._pictures(torch.from_numpy(padded))
        question = b"outputs " + hashlib.sha256(padded.tobytes()).digest()
        told = self.passages[OUTPUTS].answer(question, lambda: self._teacher.outputs(pictures))
        values = told.value.reshape(self._records, self._classes) / GRID
        return Scores(values[: len(x)], np.arange(len(x)))

    def hints(self, x: Records, centre: Reals, known: Records, values: Reals) -> Reals:
        """The public hints: a method that wants the teacher's own asks `teacher`."""
        return centre

    def samples(self, count: int, seed: int) -> Records | None:
        """It makes no records."""
        return None

    def close(self) -> None:
        """Let go of the teacher: what was answered can be read again, nothing else is asked."""
        self.teacher = None

    @property
    def _teacher(self) -> Any:
        if self.teacher is None:
            raise BadInput(
                "a new question for a teacher that is gone",
                where="plain",
                why="the source was closed after its last answer",
                remedy="ask all questions before `close`",
            )
        return self.teacher


def _section(recipe: Recipe) -> PlainSection:
    section = recipe.section("plain")
    return PlainSection() if section is None else section


def _make(recipe: Recipe) -> str:
    return _section(recipe).teacher or "student-50k"
