"""The phases of method rona."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stillroom.methods.rona.terms import shows_ceiling
from stillroom.sources import SOURCES, Ask, Facts
from stillroom.sources.gate_trials import Draws
from stillroom.sources.network_trials import NetworkAnswers, NetworkSteps, ViewsMade
from stillroom.sources.phases import (
    EXPORTING,
    asked_of_teachers,
    ending,
    network_of,
    plain_phases,
    sketch_of,
    teacher_answers,
)
from stillroom.sources.public_trials import Selected
from stillroom.sources.sketch_trials import SketchSamples
from stillroom.sources.trials import (
    STARTING,
    Given,
    Longest,
    Phase,
    Work,
    at_once,
    sensitive_records,
)

if TYPE_CHECKING:
    from stillroom.methods.rona import RonaRecipe


def phases_of(recipe: RonaRecipe, facts: Facts, tested: float) -> list[Phase]:
    """Public networks, the source, and Algorithm 1."""
    if recipe.source == "plain":
        epochs = 6 if recipe.plain is None else recipe.plain.epochs
        batch = recipe.rona.self_batch
        teacher = plain_phases(recipe, facts, recipe.teacher_network, epochs, batch)
        student = _called(recipe, facts)
        ends = ending(recipe, facts, tested, recipe.rona.student, rivals=3)
        return [_public(recipe, facts), *_ceiling(recipe, facts), *teacher, student, *ends]
    of_source = SOURCES[recipe.source].phases(recipe, facts, Ask())
    asked = [_asked(recipe, facts)] if recipe.source == "trained" else []
    packed = Phase("compression", [Work(Given(EXPORTING))])
    student = _student(recipe, facts)
    return [
        _public(recipe, facts),
        *_ceiling(recipe, facts),
        *of_source,
        *asked,
        student,
        packed,
        *ending(recipe, facts, tested, recipe.rona.student, rivals=4),
    ]


def _steps(recipe: RonaRecipe, facts: Facts, model: str, records: float) -> Work:
    """An ordinary training in a worker: so many records in all passes together."""
    network = network_of(recipe, facts, model, recipe.rona.self_batch, alone=True)
    return Work(NetworkSteps(network), records)


def _public(recipe: RonaRecipe, facts: Facts) -> Phase:
    """Base and the auxiliary teacher, side by side where there are cores."""
    part, public = recipe.rona, facts.public_records
    works = [_steps(recipe, facts, part.student, part.epochs * public)]
    if recipe.source != "trained" or recipe.features.name == "auxiliary" or part.hint_epochs:
        works.append(_steps(recipe, facts, part.auxiliary, part.auxiliary_epochs * public))
    seen = Work(ViewsMade(facts.shape), (part.views - 1) * public) if part.views > 1 else None
    together = at_once(recipe, len(works))
    start = [Work(Given(STARTING))] if together > 1 else []
    made = [] if seen is None else [seen]
    return Phase(
        "training on public records", [*start, *made, Work(Longest(tuple(works), together))]
    )


def _ceiling(recipe: RonaRecipe, facts: Facts) -> list[Phase]:
    if not shows_ceiling(recipe):
        return []
    records = facts.public_records + sensitive_records(recipe)
    passes = math.ceil(recipe.rona.epochs * facts.public_records / records)
    work = _steps(recipe, facts, recipe.rona.student, passes * records)
    return [Phase("training the ceiling in the clear", [work])]


def _extras(recipe: RonaRecipe) -> int:
    return recipe.rona.composites + recipe.rona.samples


def _asked(recipe: RonaRecipe, facts: Facts) -> Phase:
    """Views, and what the teacher says of pictures that nobody took."""
    part = recipe.rona
    works = [Work(teacher_answers(recipe, facts), _extras(recipe))]
    if part.views > 1 and len(facts.shape) > 1:
        works.append(Work(ViewsMade(facts.shape), (part.views - 1) * facts.public_records))
    if part.samples:
        works.append(Work(SketchSamples(sketch_of(recipe, facts)), part.samples))
    return Phase("asking the teacher", works)


def _student(recipe: RonaRecipe, facts: Facts) -> Phase:
    """Hints, self learning, distillation."""
    part, public = recipe.rona, facts.public_records
    labelled = public * float(recipe.data.labelled)
    taught, shown = part.rounds * part.distillation_epochs, public + _extras(recipe)
    works = []
    if recipe.source == "ensemble":
        section = recipe.teachers
        assert section is not None
        works += asked_of_teachers(recipe, facts)
        if section.grouped:
            shown = public
        else:
            shown = min(section.votes, public) * (part.rounds + 1) // (2 * part.rounds)
            if part.selection == "k-centre":
                pairs = (len(facts.classes), public, section.questions)
                works.append(Work(Selected(*pairs)))
    else:
        views = min(part.views, taught)
        works.append(Work(teacher_answers(recipe, facts), views * public))
    auxiliary = network_of(recipe, facts, part.auxiliary, part.batch)
    works.append(Work(NetworkAnswers(auxiliary), part.hint_epochs * public))
    hinted = part.hint_epochs * (public if recipe.teachers is None else recipe.teachers.hints)
    seen = hinted + taught * shown + part.rounds * part.self_epochs * labelled
    network = network_of(recipe, facts, part.student, part.batch)
    return Phase("student", [*works, Work(NetworkSteps(network), seen)])


def _called(recipe: RonaRecipe, facts: Facts) -> Phase:
    """The paper's Algorithm 1: each batch is a call of its own."""
    part, plan, public = recipe.rona, recipe.published_plan, facts.public_records
    calls = plan.calls(public)
    network = network_of(recipe, facts, part.student, part.batch)
    teacher = network_of(recipe, facts, recipe.teacher_network, part.batch)
    learnt = part.rounds * part.self_epochs * public
    draws = 2 if plan.literal else 1
    works = [
        Work(NetworkSteps(network), calls * part.batch + learnt),
        Work(NetworkAnswers(teacher), 2 * calls * part.batch),
        Work(Draws(part.batch * len(facts.classes)), draws * calls),
    ]
    return Phase("student", works)
