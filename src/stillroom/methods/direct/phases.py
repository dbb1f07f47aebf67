"""The phases of method direct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.sources import SOURCES, Ask, Facts
from stillroom.sources.network_trials import NetworkSteps
from stillroom.sources.phases import ending, network_of, sketch_of, teacher_answers
from stillroom.sources.sketch_trials import SketchSamples
from stillroom.sources.trials import Phase, Work

if TYPE_CHECKING:
    from stillroom.methods.direct import DirectRecipe


def phases_of(recipe: DirectRecipe, facts: Facts, tested: float) -> list[Phase]:
    """Those of the source, and the student of its sketch."""
    of_source, part = SOURCES[recipe.source].phases(recipe, facts, Ask()), recipe.student
    if part is None:
        training = recipe.training
        model = None if training.linear else training.model
        return [*of_source, *ending(recipe, facts, tested, model)]
    network = network_of(recipe, facts, part.model, part.batch)
    works = [
        Work(SketchSamples(sketch_of(recipe, facts)), part.samples),
        Work(teacher_answers(recipe, facts), part.samples),
        Work(NetworkSteps(network), part.samples * part.epochs),
    ]
    return [
        *of_source,
        Phase("student", works),
        *ending(recipe, facts, tested, part.model),
    ]
