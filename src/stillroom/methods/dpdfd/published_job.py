"""DPDFD with source plain: ordinary teachers, a generator, the paper's algorithm to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from stillroom.errors import BadInput
from stillroom.methods.base import SHOWN_SAMPLES, Measured, Result
from stillroom.methods.dpdfd.published import train
from stillroom.methods.dpdfd.published_terms import (
    BROKEN_AT,
    ITERATIONS,
    about_student,
    from_file,
    shows_teacher,
)
from stillroom.methods.dpdfd.sheets import show
from stillroom.methods.generators import shown_samples
from stillroom.models import AsPictures, build, check_fits
from stillroom.private.output_gradients import PlainTeachers, train_teachers
from stillroom.private.plain import PlainTeacher
from stillroom.public.generators import build_generator
from stillroom.release.compression import report
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.sections.compression import CompressionReport
from stillroom.release.torch_generator import NetworkGenerator, refuse_unexportable_generator
from stillroom.release.torch_model import TorchModel
from stillroom.sources import SOURCES, Ask, Setting
from stillroom.sources.base import Passages, Prepared
from stillroom.sources.plain import PlainAnswers, teacher_of, training_of

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe


SHEETS = 10
"""Of generated pictures, in the run's folder."""


class PublishedJob:
    """A student and a generator, taught by the noisy gradients of ordinary teachers.

    Args:
        setting: of a recipe of method dpdfd with source plain.

    Raises:
        BadInput: a network does not fit the records; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, facts = setting, setting.facts
        self.recipe: DpdfdRecipe = setting.recipe
        self.plan, own = self.recipe.published_plan, self.recipe.dpdfd
        self._classes = len(facts.classes)
        self.pictures = AsPictures(facts.shape, self.recipe.features.full_scale)
        numbers = self.plan.generator
        self.student = self._network(own.student)
        refuse_unexportable(
            own.student, nn.Sequential(self.pictures, self.student), facts.shape, facts.classes
        )
        self.generator = build_generator(
            numbers.model,
            self.pictures.given,
            self._classes,
            latent=numbers.latent,
            width=numbers.width,
            conditional=False,
            seed=own.start_seed,
        )
        refuse_unexportable_generator(numbers.model, self._drawing())
        if not from_file(self.recipe):
            self._network(teacher_of(self.recipe))
        self._refuse_several_of_a_file()
        self._source: Prepared | None = None
        self._several: PlainTeachers | None = None
        if self.plan.several:
            self._several = self._trained()
        else:
            self._source = SOURCES[self.recipe.source].prepare(setting, Ask())

    @property
    def width(self) -> int:
        """Of a gradient of outputs."""
        return self._classes

    def run(self, passages: Passages) -> Result:
        """Algorithm 1, each iteration of it through the gate."""
        shown: PlainTeacher | None = None
        if self._source is not None:
            answers = self._source.open(passages)
            assert isinstance(answers, PlainAnswers)
            shown, teachers = answers.teacher, PlainTeachers([answers.teacher])
        else:
            assert self._several is not None
            teachers = self._several
        self.setting.progress.tell("student and generator")
        taught = train(
            self.student,
            self.generator,
            teachers,
            self.plan,
            passages[self.setting.only_party().name],
            self._told,
        )
        model = self._released(self.student, about_student(self.recipe))
        controls: dict[str, Measured] = {}
        if shows_teacher(self.recipe) and shown is not None:
            controls["teacher"] = shown
        observed = {ITERATIONS: taught.iterations, BROKEN_AT: taught.broken_at or 0}
        generator = self._drawing()
        return Result(
            model,
            observed,
            controls=controls,
            compression=self._compressed(model),
            samples=shown_samples(generator, SHOWN_SAMPLES),
            generator=generator,
        )

    def _compressed(self, model: TorchModel) -> CompressionReport | None:
        """Beside the teacher's make alone: its weights saw everything."""
        if from_file(self.recipe):
            return None
        name = teacher_of(self.recipe)
        make = self._released(self._network(name), f"network `{name}`")
        return report(make, model, self.setting.facts.classes)

    def _refuse_several_of_a_file(self) -> None:
        if self.plan.several and from_file(self.recipe):
            raise BadInput(
                "several teachers are trained here, and there is one model in a file",
                where="published.teachers, plain.file",
                why="without records no other teacher can be trained",
                remedy="leave published.teachers out",
            )

    def _told(self, iteration: int) -> None:
        """Progress, and now and then a sheet of what the student is shown."""
        planned = self.plan.part.iterations
        self.setting.progress.step(iteration, planned)
        if iteration % -(-planned // SHEETS) == 0 or iteration == planned:
            records, _ = self._drawing().draw(0, SHOWN_SAMPLES)
            show(self.setting, records, f"iteration-{iteration}")

    def _drawing(self) -> NetworkGenerator:
        """The generator as it is now, for anyone to draw from."""
        shape, scale = self.setting.facts.shape, self.pictures.full_scale
        return NetworkGenerator(self.generator, shape, scale, self.plan.generator.model)

    def _trained(self) -> PlainTeachers:
        """Several teachers, on all records or on shards of them."""
        setting, part = self.setting, self.plan.part
        party = setting.only_party()
        setting.begin()
        setting.progress.tell("training the teachers in the clear")
        return train_teachers(
            party.data,
            setting.public.records,
            lambda data: training_of(self.recipe, data),
            part.teachers,
            key=self.recipe.data.key if part.sharing == "disjoint" else None,
            engine=setting.engine,
            folder=setting.places.private_work / "trained-in-the-clear",
            on_done=setting.progress.step,
        )

    def _network(self, name: str) -> nn.Module:
        """A network by name, untrained, the same for the same recipe."""
        given = self.pictures.given
        network = build(name, given, self._classes, seed=self.recipe.dpdfd.start_seed)
        check_fits(network, given, self._classes, private_training=False)
        return network

    def _released(self, network: nn.Module, about: str) -> TorchModel:
        """A network from pictures to logits, for records as they are stored."""
        layers = nn.Sequential(self.pictures, network).eval()
        return TorchModel(layers, self.setting.facts.shape, about)
