"""What a recipe of source plain fixes about its certificate; pure, and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.methods.base import SHOWN_SAMPLES, Terms
from stillroom.methods.generators import network_terms
from stillroom.release.sections.controls import Control
from stillroom.sources import SOURCES
from stillroom.sources.base import Observed

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe

ITERATIONS, BROKEN_AT = "iterations", "broken at"
_OPEN_TEACHER = Control(
    "teacher", None, "an ordinary network that saw all records: not private", private=True
)
SHARDS = "the records of several teachers are dealt to them by hash of their ids or persons"
PUBLIC_INPUTS = {
    "public records": "assumed: all but the labels of the records is declared public by the recipe"
}
BOUNDED = {
    "bounded gradients": "checked: in exact integers, for whatever the teacher is",
    "detached": "checked: nothing of the teacher but its noisy gradients reaches the generator",
}


def about_student(recipe: DpdfdRecipe) -> str:
    """What kind of model is released."""
    if recipe.only_labels:
        return f"network `{recipe.dpdfd.student}`, trained on public records and noisy labels"
    return f"network `{recipe.dpdfd.student}`, a student that saw generated pictures only"


def from_file(recipe: DpdfdRecipe) -> bool:
    """Whether the teacher came as a file, and nothing here knows its records."""
    return recipe.plain is not None and recipe.plain.file is not None


def shows_teacher(recipe: DpdfdRecipe) -> bool:
    """Whether the teacher may be shown: it saw sensitive records in the clear."""
    one = recipe.published_plan.part.teachers == 1 and not recipe.only_labels
    return one and recipe.purpose != "release" and recipe.data.test_is_public


def published_controls(recipe: DpdfdRecipe) -> tuple[Control, ...]:
    """The teacher, where it may be shown."""
    return (_OPEN_TEACHER,) if shows_teacher(recipe) else ()


def published_terms(recipe: DpdfdRecipe, observed: Observed, paid: int) -> Terms:
    """The terms of source plain."""
    own = SOURCES[recipe.source].terms(recipe, observed, paid)
    plan, done = recipe.published_plan, int(observed[ITERATIONS])
    direct = plan.part.direct
    part, drawn, broken = plan.part, plan.generator, int(observed[BROKEN_AT])
    early = (
        f"The training ended early: {done} of {part.iterations} iterations were paid for and made."
    )
    numbers = (
        f"In iteration {broken} a number was not finite any more. What is released is as it was "
        "before."
    )
    warnings = {numbers: broken > 0, early: not broken and done < part.iterations}
    shards = {"shards": f"checked: {SHARDS}"} if plan.moved < plan.terms else {}
    return Terms(
        about_student(recipe),
        {
            **(PUBLIC_INPUTS if direct else {}),
            **own.assumptions,
            **(BOUNDED if part.detached else {}),
            **shards,
        },
        own.knowledge,
        teacher=None if direct or from_file(recipe) else own.about,
        warnings=(*own.warnings, *(text for text, holds in warnings.items() if holds)),
        observed=own.observed | {ITERATIONS, BROKEN_AT},
        samples=0 if direct else SHOWN_SAMPLES,
        generator=None
        if direct
        else network_terms(recipe, drawn.model, drawn.latent, conditional=False),
    )
