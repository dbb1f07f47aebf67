"""Source plain: one ordinary teacher that saw every record; for a paper's algorithm as published.

It promises nothing: what it says leaves unprotected, and the price is infinite. A method that
bounds its answers itself, as a paper may, makes its own requests and asks `teacher`. The teacher is
trained here, or comes as a file where its records are not there: the unit is then the whole model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from stillroom.data import Dataset
from stillroom.data.loading import MODEL
from stillroom.errors import BadInput
from stillroom.gate import Passage, Unprotected
from stillroom.recipe import Recipe, Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_EPOCHS, MOST_PICTURES
from stillroom.sources import base
from stillroom.sources.base import Facts, Records, Request, Scores, SourceTerms
from stillroom.sources.trials import Phase
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.models.supervised import SupervisedTraining
    from stillroom.private.plain import PlainTeacher

OUTPUTS = "outputs"
OF_PLAIN = {"calls": "checked: each executed call is a row of the ledger"}


MODEL_FILES = (".safetensors", ".onnx")
PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")


class PlainSection(Section):
    """One ordinary teacher, trained on all records without protection, or from a file."""

    file: str | None = Field(
        None,
        description="the teacher itself, where there are no records: its weights as .safetensors, "
        "or an .onnx file",
    )
    teacher: str | None = Field(
        None,
        description="a name in the zoo, or package.module:callable; student-50k or the "
        "method's auxiliary network when left out; the make of the weights in a file",
    )
    epochs: int = Field(
        6, ge=1, le=MOST_EPOCHS, description="passes over the public part, or as many steps"
    )
    batch: int = Field(128, ge=2, le=MOST_PICTURES, description="records per step")
    learning_rate: float = Field(4e-3, gt=0, le=LARGEST_RATE, description="the highest")
    start_seed: Seed = Field(0, description="of weights and order")


class Plain:
    """An ordinary network; in mode certified only behind a method that bounds its answers."""

    name: ClassVar[str] = "plain"

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """It promises nothing, so it is for comparison alone, or for a method that does."""
        return {
            "mode, source: plain promises nothing and belongs to mode as-published": (
                recipe.mode != "as-published" and not recipe.sound_plain
            ),
            **_misfits_of_file(_section(recipe), alone=recipe.data.source == MODEL),
        }

    def requests(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Request]:
        """All scores at once, unprotected."""
        why = "an ordinary teacher's own scores leave as they are"
        width = max(1, ask.scores) * len(facts.classes)
        return [Request.fixed(OUTPUTS, Unprotected(width, why, recipe.data.pair.unit), 1)]

    def terms(self, recipe: Recipe, observed: base.Observed, paid: int) -> SourceTerms:
        """What it was, and that each call was recorded."""
        part, rests_on = _section(recipe), frozenset({base.PUBLIC_RECORDS})
        in_the_file = part.file is not None and part.teacher is None
        about = "ONNX network" if in_the_file else f"network `{teacher_of(recipe)}`"
        return SourceTerms(about, OF_PLAIN, (), observed=rests_on)

    def phases(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Phase]:
        """Its training; a model from a file has none."""
        from stillroom.sources.phases import plain_phases

        part = _section(recipe)
        return plain_phases(recipe, facts, teacher_of(recipe), part.epochs, part.batch)

    def prepare(self, setting: base.Setting, ask: base.Ask) -> base.Prepared:
        """Train it, on public and sensitive records; a model from a file is there already."""
        if _section(setting.recipe).file is not None:
            return _from_file(setting, ask)
        from stillroom.private.plain import train_in_the_clear

        party = setting.only_party()
        setting.begin()
        setting.progress.tell("training the teacher in the clear")
        teacher = train_in_the_clear(
            party.data,
            setting.public.records,
            setting.public.training or (lambda data: training_of(setting.recipe, data)),
            engine=setting.engine,
            folder=setting.places.private_work / "trained-in-the-clear",
            on_done=setting.progress.step,
        )
        return base.Prepared(
            1, lambda passages: PlainAnswers(teacher, setting, ask, passages[party.name])
        )


def training_of(recipe: Recipe, data: Dataset) -> SupervisedTraining:
    """How an ordinary teacher is trained on some records."""
    from stillroom.models.augmentation import Views
    from stillroom.models.supervised import SupervisedTraining

    part = _section(recipe)
    return SupervisedTraining(
        model=teacher_of(recipe),
        x=np.array(data.x),
        y=np.array(data.y),
        classes=len(data.classes),
        full_scale=recipe.features.full_scale,
        views=Views(),
        epochs=part.epochs,
        batch=part.batch,
        learning_rate=part.learning_rate,
        start_seed=part.start_seed,
    )


class PlainAnswers(base.Answers):
    """An ordinary teacher behind its passages.

    Args:
        teacher: gives bounded or unprotected values only.
        setting: of the recipe.
        ask: how many scores may be asked.
        passages: those of its party.
    """

    def __init__(
        self,
        teacher: PlainTeacher,
        setting: base.Setting,
        ask: base.Ask,
        passages: Mapping[str, Passage],
    ) -> None:
        from stillroom.models import AsPictures

        facts, self.teacher, self.passages = setting.facts, teacher, passages
        self._pictures = AsPictures(facts.shape, setting.recipe.features.full_scale)
        self._records, self._classes = ask.scores, len(facts.classes)

    @property
    def left(self) -> int:  # type: ignore[override]
        """All records at once, or none any more."""
        return self._records * self.passages[OUTPUTS].ahead(1)

    def scores(self, x: Records, groups: Integers | None = None) -> Scores:
        """Its logits, in one call."""
        import torch

        from stillroom.private.unprotected import GRID

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
        told = self.passages[OUTPUTS].answer(question, lambda: self._open().outputs(pictures))
        values = told.value.reshape(self._records, self._classes) / GRID
        return Scores(values[: len(x)], np.arange(len(x)))

    def close(self) -> None:
        """Let go of the teacher: what was answered can be read again, nothing else is asked."""
        del self.teacher

    def _open(self) -> PlainTeacher:
        if not hasattr(self, "teacher"):
            raise BadInput(
                "a new question for a teacher that is gone",
                where="plain",
                why="the source was closed after its last answer",
                remedy="ask all questions before `close`",
            )
        return self.teacher


def _from_file(setting: base.Setting, ask: base.Ask) -> base.Prepared:
    from stillroom.models import AsPictures
    from stillroom.private.model_file import model_teacher

    facts, party = setting.facts, setting.only_party()
    pictures = AsPictures(facts.shape, setting.recipe.features.full_scale)
    teacher = model_teacher(party.data, pictures, len(facts.classes))
    setting.begin()
    return base.Prepared(
        1, lambda passages: PlainAnswers(teacher, setting, ask, passages[party.name])
    )


def _misfits_of_file(part: PlainSection, *, alone: bool) -> dict[str, bool]:
    suffix = "" if part.file is None else PurePath(part.file).suffix
    trained = ("epochs", "batch", "learning_rate", "start_seed")
    return {
        'plain.file and data.source = "model" belong together': (part.file is not None) != alone,
        "plain.file: a pickle can run code as soon as it is read; save the weights as "
        ".safetensors (safetensors.torch.save_file), or export the model to .onnx": suffix
        in PICKLES,
        f"plain.file: a model comes as one of: {', '.join(MODEL_FILES)}": part.file is not None
        and suffix not in (*MODEL_FILES, *PICKLES),
        "plain.teacher: name the make of the weights, in the zoo or as package.module:callable": (
            suffix == ".safetensors" and part.teacher is None
        ),
        "plain.teacher: an .onnx file holds its own make": suffix == ".onnx"
        and part.teacher is not None,
        f"plain.{', plain.'.join(trained)}: a model from a file is not trained": (
            part.file is not None and not part.model_fields_set.isdisjoint(trained)
        ),
    }


def _section(recipe: Recipe) -> PlainSection:
    section = recipe.section("plain")
    return PlainSection() if section is None else section


def teacher_of(recipe: Recipe) -> str:
    """The network that an ordinary teacher is of."""
    return _section(recipe).teacher or "student-50k"
