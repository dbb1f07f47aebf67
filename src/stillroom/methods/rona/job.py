"""Method rona on its way to a student: public work, a source behind the gate, Algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import nn

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.methods.base import SHOWN_SAMPLES, Measured, ModelGuesses, Result
from stillroom.methods.compression import compressed_model
from stillroom.methods.generators import sketch_generator
from stillroom.methods.rona.algorithm import Guide, teach
from stillroom.methods.rona.lessons import FreeLessons, Hinting, PaidLessons
from stillroom.methods.rona.public_part import PublicPart, blocks_of
from stillroom.methods.rona.terms import AUXILIARY, UNTAUGHT, shows_ceiling
from stillroom.models.checkpoints import Checkpoint
from stillroom.private.plain import PlainTeacher, train_in_the_clear
from stillroom.release.compression import report
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.model import ReleasedModel
from stillroom.release.sections.controls import BASE
from stillroom.release.torch_model import TorchModel
from stillroom.sources import SOURCES, Ask, Setting
from stillroom.sources.base import Passages
from stillroom.sources.ensemble_answers import PaidEnsemble
from stillroom.sources.plain import PlainSection
from stillroom.sources.teachers import VOTES
from stillroom.sources.trained import TrainedAnswers

if TYPE_CHECKING:
    from stillroom.methods.rona import RonaRecipe

IN_THE_CLEAR = "trained-in-the-clear"


class RonaJob:
    """A student in the open, taught by answers that came through the gate.

    Args:
        setting: of a recipe of method rona.

    Raises:
        BadInput: something does not fit the records; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self.recipe: RonaRecipe = setting.recipe
        self.setting, self.part, public = setting, self.recipe.rona, setting.public
        self.public = PublicPart(self.recipe, public.records, public.labelled)
        self.student = self.public.student()
        # A layer that is not there is found before anything is paid for.
        self.guide: Guide | None = None
        self.hint_shape: tuple[int, ...] = ()
        if self.part.hint_epochs:
            self.guide, self.hint_shape = self.public.guide(self.student)
        self._refuse_misfits()
        layers = nn.Sequential(self.public.pictures, self.student)
        shape, classes = setting.facts.shape, setting.facts.classes
        refuse_unexportable(self.part.student, layers, shape, classes)
        setting.begin()
        setting.progress.tell("training on public records")
        self.base, self._auxiliary = self.public.train(setting, auxiliary=self._needs_auxiliary)
        self._ceiling = self._in_the_clear() if shows_ceiling(self.recipe) else None
        side = replace(public, auxiliary=self._auxiliary, training=self._teacher_training)
        self.source = SOURCES[self.recipe.source].prepare(
            replace(setting, public=side), Ask(hint_shape=self.hint_shape or None)
        )

    def _in_the_clear(self) -> PlainTeacher:
        """The ceiling: the student's network, on all labels."""
        self.setting.progress.tell("training the ceiling in the clear")
        return train_in_the_clear(
            self.setting.only_party().data,
            self.public.data,
            lambda data: self.public.training(self.part.student, data, self.part.epochs),
            engine=self.setting.engine,
            folder=self.setting.places.private_work / IN_THE_CLEAR,
            on_done=self.setting.progress.step,
        )

    @property
    def width(self) -> int:
        """Of a gradient sum, or of a hint."""
        return self.source.width

    def _refuse_misfits(self) -> None:
        """What this source cannot teach."""
        teachers = self.recipe.teachers
        if self.recipe.features.name == "auxiliary":
            blocks_of(self.public.network(self.part.auxiliary), "rona.auxiliary")
        if teachers is None:
            return
        if teachers.grouped:
            blocks_of(self.student, "rona.student")
        elif teachers.questions > len(self.public.x):
            raise BadInput(
                "there are fewer public records than questions that would be paid for",
                where="teachers.votes",
                why="a record is asked about once; the rest would be paid for and never drawn",
                remedy="ask fewer questions, or make more records public",
            )

    @property
    def _needs_auxiliary(self) -> bool:
        """Whether a teacher trained on public labels is used for more than to compare with."""
        features = self.recipe.features.name == "auxiliary"
        return self.recipe.source != "trained" or features or self.part.hint_epochs > 0

    def _teacher_training(self, data: Dataset) -> object:
        epochs = (self.recipe.plain or PlainSection()).epochs
        return self.public.training(self.recipe.teacher_network, data, epochs)

    @property
    def auxiliary(self) -> nn.Module:
        """The teacher trained on public labels."""
        assert self._auxiliary is not None
        return self._auxiliary

    def run(self, passages: Passages) -> Result:
        """Algorithm 1, each answer through the gate."""
        progress, answers = self.setting.progress, self.source.open(passages)
        hinting = None
        if self.guide is not None:
            hinting = Hinting(self.public, self.auxiliary, self.hint_shape)
        if answers.left is None:
            progress.tell("asking the teacher")
            lessons: FreeLessons | PaidLessons = FreeLessons(answers, self.public, hinting)
        else:
            paid = passages[self.setting.only_party().name][VOTES].count
            lessons = PaidLessons(self.recipe, answers, paid, self.public, hinting)
        progress.tell("student")
        pictures = self.public.pictures
        first = next(iter(passages[self.setting.only_party().name].values()))
        state = self.setting.state_file("student", first)
        kept = Checkpoint(state, state.stem)
        told = (self.part, self.guide, progress.step, kept)
        teach(self.student, pictures, self.public, lessons, *told)
        beside: dict[str, ReleasedModel] = {}
        samples = generator = None
        if isinstance(answers, TrainedAnswers):
            assert answers.untaught is not None
            teacher = answers.model
            beside = {UNTAUGHT: answers.untaught, "teacher": teacher}
            samples = answers.sketch.shown(SHOWN_SAMPLES)
            generator = sketch_generator(answers.sketch)
        else:
            assert isinstance(answers, PaidEnsemble)
            teacher = self.released(self.auxiliary, f"network `{self.part.auxiliary}`")
            beside = {AUXILIARY: teacher}
        own = self.released(self.student, f"network `{self.part.student}`, a student")
        progress.tell("compression")
        part = self.recipe.compression
        model = own if part is None else compressed_model(own, self.public.x, part)
        return Result(
            model,
            answers.observed,
            controls=self.controls(beside),
            compression=report(teacher, model, self.setting.facts.classes),
            samples=samples,
            generator=generator,
        )

    def released(self, network: nn.Module, about: str) -> TorchModel:
        """A network from pictures to logits, for records as they are stored."""
        layers = nn.Sequential(self.public.pictures, network).eval()
        return TorchModel(layers, self.setting.facts.shape, about)

    def controls(self, more: Mapping[str, ReleasedModel]) -> dict[str, Measured]:
        """What the student is compared with, by name: Base, what else there is, the ceiling."""
        models = {BASE: self.released(self.base, "Base"), **more}
        alone = self.setting.public.tested is None
        found: dict[str, Measured] = {
            name: ModelGuesses(model, alone) for name, model in models.items()
        }
        return found if self._ceiling is None else {**found, "ceiling": self._ceiling}
