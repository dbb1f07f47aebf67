"""The phases of method dpdfd, and trials of what it shows its student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stillroom.sources import SOURCES, Answers, Ask, Facts
from stillroom.sources.base import Records, Scores
from stillroom.sources.gate_trials import Draws
from stillroom.sources.network_trials import NetworkAnswers, NetworkSteps, NetworkTrial
from stillroom.sources.phases import (
    asked_of_teachers,
    ending,
    network_of,
    plain_phases,
    sketch_of,
    teacher_answers,
)
from stillroom.sources.plain import teacher_of
from stillroom.sources.public_trials import Selected
from stillroom.sources.sketch_trials import SketchAsked, SketchSamples
from stillroom.sources.trials import (
    Phase,
    Trial,
    Work,
    at_once,
    made_up,
    seconds_of,
    sensitive_records,
)
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe
    from stillroom.methods.dpdfd.section import DpdfdSection

TOGETHER = 50
LEAST, SHARE = 40, 20
"""A trial makes a twentieth of a round's queries of each kind, or so many."""


def phases_of(recipe: DpdfdRecipe, facts: Facts, tested: float) -> list[Phase]:
    """The source, then rounds of queries."""
    if recipe.source == "plain":
        ends = ending(recipe, facts, tested, recipe.dpdfd.student)
        return [*_published(recipe, facts), *ends]
    phases = [*SOURCES[recipe.source].phases(recipe, facts, Ask())]
    part, turns = recipe.dpdfd, recipe.generator
    if turns is not None and recipe.source != "ensemble":
        works = [Work(_turn(recipe, facts), turns.steps)]
        phases.append(Phase("student and generator", works))
    sketched = recipe.sketch is not None
    works = []
    if recipe.source != "ensemble" or sketched:
        works += _free_lessons(recipe, facts)
    if recipe.source == "ensemble":
        works += _paid_lessons(recipe, facts, sketched=sketched)
        if turns is not None:
            works.append(Work(_turn(recipe, facts), turns.steps))
    ends = ending(recipe, facts, tested, part.student, rivals=1)
    return [*phases, Phase("student", works), *ends]


def _pool(recipe: DpdfdRecipe) -> int:
    part = recipe.dpdfd
    of_sketch = 0 if recipe.sketch is None else part.samples + part.mixed
    return part.structured + part.generated + of_sketch


def _made(recipe: DpdfdRecipe, facts: Facts) -> list[Work]:
    """All queries of all rounds."""
    part, sketched = recipe.dpdfd, recipe.sketch is not None
    trial = Queries(part.model_copy(), facts.shape, recipe.features.full_scale, sketched)
    works = [Work(trial, part.rounds * _pool(recipe))]
    if sketched:
        used = part.samples + part.mixed + part.mixed // 2 + part.structured
        works.append(Work(SketchSamples(sketch_of(recipe, facts)), part.rounds * used))
    return works


def _free_lessons(recipe: DpdfdRecipe, facts: Facts) -> list[Work]:
    part, pool = recipe.dpdfd, _pool(recipe)
    network = network_of(recipe, facts, part.student, part.batch)
    asked = part.rounds * pool
    by_sketch = recipe.source != "trained"
    teacher: Trial = (
        SketchAsked(sketch_of(recipe, facts)) if by_sketch else teacher_answers(recipe, facts)
    )
    banked = sum(min(part.bank, pool * number) for number in range(1, part.rounds + 1))
    moved = part.refined * pool * max(0, part.rounds - 1) * part.refinement_steps
    # Forward and back through both: about three answers of the teacher and a step of the student.
    refined = [Work(teacher, 3 * moved), Work(NetworkSteps(network), moved)]
    return [
        *_made(recipe, facts),
        *refined,
        Work(teacher, asked),
        Work(NetworkSteps(network), part.epochs * banked),
    ]


def _paid_lessons(recipe: DpdfdRecipe, facts: Facts, *, sketched: bool) -> list[Work]:
    part, section, pool = recipe.dpdfd, recipe.teachers, _pool(recipe)
    assert section is not None
    network = network_of(recipe, facts, part.student, part.batch)
    per_round = min(-(-section.questions // part.rounds), pool)
    learnt = pool if sketched or section.grouped else per_round
    seen = learnt * part.rounds * (part.rounds + 1) / 2
    return [
        *_made(recipe, facts),
        *asked_of_teachers(recipe, facts),
        Work(NetworkAnswers(network), part.rounds * pool),
        Work(Selected(len(facts.classes), pool, per_round), part.rounds),
        Work(NetworkSteps(network), part.epochs * seen),
    ]


def _turn(recipe: DpdfdRecipe, facts: Facts) -> GeneratorTurn:
    network = network_of(recipe, facts, recipe.dpdfd.student, recipe.dpdfd.batch)
    turns = recipe.generator
    assert turns is not None
    return GeneratorTurn(network, turns.model_dump_json(), with_teacher=recipe.source != "ensemble")


def _published(recipe: DpdfdRecipe, facts: Facts) -> list[Phase]:
    """The paper's Algorithm 1, or its direct training."""
    part, classes = recipe.published_plan.part, len(facts.classes)
    student = network_of(recipe, facts, recipe.dpdfd.student, part.batch)
    seen = part.iterations * part.batch
    draws = Work(Draws(part.batch * classes), part.iterations)
    learnt = Work(NetworkSteps(student), seen)
    if recipe.only_labels:
        return [Phase("training on public records", [learnt, draws])]
    section = recipe.plain
    epochs, batch = (6, 128) if section is None else (section.epochs, section.batch)
    teachers = plain_phases(recipe, facts, teacher_of(recipe), epochs, batch)
    if recipe.published_plan.several:
        records = sensitive_records(recipe) + facts.public_records
        each = records / (part.teachers if part.sharing == "disjoint" else 1)
        network = network_of(recipe, facts, teacher_of(recipe), batch, alone=True)
        units = part.teachers / at_once(recipe, part.teachers)
        works = [Work(NetworkSteps(network), epochs * each * units)]
        teachers = [Phase("training the teachers in the clear", works)]
    turn = GeneratorTurn(
        student, recipe.published_plan.generator.model_dump_json(), with_teacher=True
    )
    asked = network_of(recipe, facts, teacher_of(recipe), part.batch)
    told = Work(NetworkAnswers(asked), part.teachers * seen)
    works = [Work(turn, part.iterations), learnt, told, draws]
    return [*teachers, Phase("student and generator", works)]


@dataclass(frozen=True)
class Queries:
    """One query of a round, of whatever kinds the recipe has, before anyone is asked about it.

    Args:
        part: how many of each kind.
        shape: of a record.
        full_scale: the largest value of a record.
        sketched: whether there are samples of a sketch.
    """

    part: DpdfdSection
    shape: tuple[int, ...]
    full_scale: float
    sketched: bool

    def __hash__(self) -> int:
        return hash((self.part.model_dump_json(), self.shape, self.full_scale, self.sketched))

    def seconds(self) -> float:
        """Of fewer of each kind, with made-up samples."""
        from stillroom.methods.dpdfd.queries import Queries as OfRounds

        own = self.part
        kinds = {
            name: min(count, max(LEAST, count // SHARE))
            for name, count in (
                ("samples", own.samples if self.sketched else 0),
                ("mixed", own.mixed if self.sketched else 0),
                ("structured", own.structured),
            )
        }
        if not any(kinds.values()):
            return 0.0
        few = own.model_copy(update={**kinds, "generated": 0})
        made = OfRounds(_MadeUp(self.shape, sketched=self.sketched), few, self.shape, 255.0)
        return seconds_of(lambda: made.of_round(0)) / sum(kinds.values())


class _MadeUp(Answers):
    """A source of made-up samples, which knows nothing: to it all classes are alike."""

    def __init__(self, shape: tuple[int, ...], *, sketched: bool) -> None:
        self._shape, self._sketched = shape, sketched

    def scores(self, x: Records, groups: Integers | None = None) -> Scores:
        return Scores(np.zeros((len(x), 2)), np.arange(len(x)))

    def samples(self, count: int, seed: int) -> Records | None:
        return made_up(count, self._shape).astype("float32") if self._sketched else None


@dataclass(frozen=True)
class GeneratorTurn:
    """One turn of generator and student.

    Args:
        student: the student.
        text: the generator's section, as JSON.
        with_teacher: whether a teacher is differentiated through; one of the student's make.
    """

    student: NetworkTrial
    text: str
    with_teacher: bool

    def seconds(self) -> float:
        """With a batch of generated pictures."""
        from torch import nn

        from stillroom.methods.dpdfd.generator_section import GeneratorSection
        from stillroom.methods.dpdfd.generator_training import GeneratorTraining
        from stillroom.public.generators import build_generator

        part, trial = GeneratorSection.model_validate_json(self.text), self.student
        pictures = trial.pictures()
        generator: Any = build_generator(
            part.model,
            pictures.given,
            trial.classes,
            latent=part.latent,
            width=part.width,
            conditional=part.conditional,
            seed=0,
        )
        teacher = nn.Sequential(pictures, trial.network()) if self.with_teacher else None
        turns = GeneratorTraining(generator, trial.network(), teacher, pictures, part, 0)
        return seconds_of(lambda: turns.train(1))
