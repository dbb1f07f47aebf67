"""Method dpdfd on its way to a student that never saw a real picture, through a certified source.

Free answers (sources trained and sketch): rounds of fresh queries without limit. Paid answers
(source ensemble): DPDFD-E. A generator, where the recipe has one, takes turns with the student
first.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from stillroom.durable import write_whole
from stillroom.errors import BadInput
from stillroom.methods.base import SHOWN_SAMPLES, Measured, ModelGuesses, Result
from stillroom.methods.dpdfd.generator_training import GeneratorTraining
from stillroom.methods.dpdfd.lessons import Lessons, teach
from stillroom.methods.dpdfd.paid_lessons import PaidLessons, most_questions
from stillroom.methods.dpdfd.queries import Floats, Queries
from stillroom.methods.dpdfd.sheets import show
from stillroom.methods.dpdfd.terms import about_student
from stillroom.methods.generators import shown_samples, sketch_generator
from stillroom.models import AsPictures, build, check_fits
from stillroom.models.checkpoints import Checkpoint
from stillroom.public.generators import build_generator
from stillroom.release.exportable import refuse_unexportable
from stillroom.release.generator import ReleasedGenerator
from stillroom.release.torch_generator import NetworkGenerator, refuse_unexportable_generator
from stillroom.release.torch_model import TorchModel
from stillroom.sources import SOURCES, Answers, Ask, Setting
from stillroom.sources.base import Passages
from stillroom.sources.ensemble_answers import PaidEnsemble
from stillroom.sources.sketch import SketchAnswers
from stillroom.sources.trained import TrainedAnswers

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe


TURNS = 50
"""Of student and generator, between two looks at how far they are."""


class DpdfdJob:
    """A student, and perhaps a generator, of answers that came through the gate.

    Args:
        setting: of a certified recipe of method dpdfd.

    Raises:
        BadInput: something does not fit the records; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self.recipe: DpdfdRecipe = setting.recipe
        self.setting, self.part, facts = setting, self.recipe.dpdfd, setting.facts
        self.pictures = AsPictures(facts.shape, self.recipe.features.full_scale)
        self.student = self._student()
        self.generator = self._generator()
        self._refuse_misfits()
        self.source = SOURCES[self.recipe.source].prepare(setting, Ask())

    @property
    def width(self) -> int:
        """Of a gradient sum."""
        return self.source.width

    def run(self, passages: Passages) -> Result:
        """Distillation, each answer through the gate."""
        answers = self.source.open(passages)
        own = passages[self.setting.only_party().name]
        self._state_file = self.setting.state_file("dpdfd", next(iter(own.values())))
        if answers.left is None:
            self._teach_freely(answers, self._turns(answers.network))
        else:
            self._teach_by_paid_answers(answers)
        layers = nn.Sequential(self.pictures, self.student).eval()
        model = TorchModel(layers, self.setting.facts.shape, about_student(self.recipe))
        controls: dict[str, Measured] = {}
        if isinstance(answers, TrainedAnswers):
            alone = self.setting.public.tested is None
            controls["teacher"] = ModelGuesses(answers.model, alone)
        generator = self._released(answers)
        return Result(
            model,
            answers.observed,
            controls=controls,
            samples=None if generator is None else shown_samples(generator, SHOWN_SAMPLES),
            generator=generator,
        )

    def _teach_freely(
        self, answers: Answers, turns: GeneratorTraining | None, sheet: str = "round"
    ) -> None:
        state = self._kept()
        if turns is not None:
            self._take_turns(turns, state)
        progress = self.setting.progress
        progress.tell("student")

        def keep(done: int, lessons: Lessons) -> None:
            self._keep({**self._networks(), "lessons": lessons.state()})
            show(self.setting, lessons.latest(SHOWN_SAMPLES), f"{sheet}-{done}")

        teach(
            self.student,
            self.pictures,
            answers,
            self._queries(answers, turns),
            self.part,
            state=state.get("lessons"),
            on_round=keep,
            on_step=progress.step,
        )

    def _teach_by_paid_answers(self, answers: Answers) -> None:
        progress, turns = self.setting.progress, self._turns(None)
        teachers, sketched = self.recipe.teachers, self.recipe.sketch is not None
        assert teachers is not None
        if sketched:
            # What it says is paid for already; votes are for what it does not know.
            assert isinstance(answers, PaidEnsemble)
            assert answers.sketch is not None
            self._teach_freely(SketchAnswers(answers.sketch), None, "sketch")
        progress.tell("student")

        def after(done: int, asked: Tensor) -> None:
            progress.step(done, self.part.rounds)
            show(self.setting, asked[-SHOWN_SAMPLES:].numpy(), f"round-{done}")
            if turns is not None:
                turns.train(self._turns_per_round)

        lessons = PaidLessons(
            self.student,
            self.pictures,
            answers,
            self._queries(answers, turns),
            self.part,
            teachers,
            taught=sketched,
        )
        lessons.teach(after)

    def _turns(self, teacher: nn.Module | None) -> GeneratorTraining | None:
        if self.generator is None or self.recipe.generator is None:
            return None
        part, seed = self.recipe.generator, self.part.start_seed
        return GeneratorTraining(self.generator, self.student, teacher, self.pictures, part, seed)

    def _take_turns(self, turns: GeneratorTraining, state: dict[str, Any]) -> None:
        """Once: a run that goes on takes both as they were."""
        if "generator" in state:
            turns.generator.load_state_dict(state["generator"])
            self.student.load_state_dict(state["student"])
            return
        assert self.recipe.generator is not None
        self.setting.progress.tell("student and generator")
        steps, per_sheet = self.recipe.generator.steps, self._turns_per_round
        kept = Checkpoint(self._state_file.with_suffix(".turns"), self._state_file.stem)
        if (found := kept.load()) is not None:
            turns.restore(found)
        while turns.done < steps:
            to_sheet = per_sheet - turns.done % per_sheet
            turns.train(min(TURNS, to_sheet, steps - turns.done))
            kept.keep(turns.state)
            self.setting.progress.step(turns.done, steps)
            if turns.done % per_sheet == 0 or turns.done == steps:
                records, _ = turns.released().draw(0, SHOWN_SAMPLES)
                show(self.setting, records, f"generator-{-(-turns.done // per_sheet)}")
        self._keep(self._networks())
        kept.forget()

    @property
    def _turns_per_round(self) -> int:
        assert self.recipe.generator is not None
        per_round: int = math.ceil(self.recipe.generator.steps / self.part.rounds)
        return per_round

    def _queries(self, answers: Answers, turns: GeneratorTraining | None) -> Queries:
        scale = self.pictures.full_scale

        def generated(count: int, seed: int) -> Floats:
            assert turns is not None
            records, _ = turns.released().draw(seed, count)
            return (records / scale).astype(np.float32)

        shape = self.setting.facts.shape
        return Queries(answers, self.part, shape, scale, None if turns is None else generated)

    def _released(self, answers: Answers) -> ReleasedGenerator | None:
        """The generator network, or else the sketch, for anyone to draw from."""
        if self.generator is not None and self.recipe.generator is not None:
            shape, scale = self.setting.facts.shape, self.pictures.full_scale
            return NetworkGenerator(self.generator, shape, scale, self.recipe.generator.model)
        sketch = getattr(answers, "sketch", None)
        return None if sketch is None else sketch_generator(sketch)

    def _student(self) -> nn.Module:
        name, facts = self.part.student, self.setting.facts
        given, classes = self.pictures.given, len(facts.classes)
        network = build(name, given, classes, seed=self.part.start_seed)
        check_fits(network, given, classes, private_training=False)
        layers = nn.Sequential(self.pictures, network)
        refuse_unexportable(name, layers, facts.shape, facts.classes)
        return network

    def _generator(self) -> Any:
        part, facts = self.recipe.generator, self.setting.facts
        if part is None:
            return None
        generator = build_generator(
            part.model,
            self.pictures.given,
            len(facts.classes),
            latent=part.latent,
            width=part.width,
            conditional=part.conditional,
            seed=self.part.start_seed,
        )
        scale = self.pictures.full_scale
        released = NetworkGenerator(generator, facts.shape, scale, part.model)
        refuse_unexportable_generator(part.model, released)
        return generator

    def _refuse_misfits(self) -> None:
        teachers, shape = self.recipe.teachers, self.setting.facts.shape
        made = self.part.structured or self.part.mixed
        if len(shape) == 1 and made:
            raise BadInput(
                f"structured queries are pictures, the records have the shape {shape}",
                where="dpdfd.structured, dpdfd.mixed",
                why="rows of features have no shapes and curves",
                remedy="set both to 0, and draw queries from a sketch or a generator",
            )
        if teachers is not None and teachers.questions > most_questions(self.part):
            raise BadInput(
                "there are fewer queries than questions that would be paid for",
                where="teachers.votes, dpdfd",
                why="a query is asked about once; the rest would be paid for and never drawn",
                remedy="ask fewer questions, or make more queries per round",
            )

    def _networks(self) -> dict[str, Any]:
        own = {"student": self.student.state_dict()}
        return own if self.generator is None else {**own, "generator": self.generator.state_dict()}

    def _keep(self, state: dict[str, Any]) -> None:
        """Sanitised state: a run that is cut off goes on after the last round."""
        content = io.BytesIO()
        torch.save(state, content)
        self._state_file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._state_file, content.getvalue())

    def _kept(self) -> dict[str, Any]:
        if not self._state_file.exists():
            return {}
        self.setting.progress.tell("going on after the last round")
        state: dict[str, Any] = torch.load(self._state_file, weights_only=True)
        return state
