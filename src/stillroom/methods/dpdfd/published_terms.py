"""What a recipe of source plain fixes about its certificate; pure, and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.methods.base import Terms
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
BOUNDED = {
    "bounded gradients": "checked: in exact integers, for whatever the teacher is",
    "detached": "checked: nothing of the teacher but its noisy gradients reaches the generator",
}


def shows_teacher(recipe: DpdfdRecipe) -> bool:
    """Whether the teacher may be shown: it saw sensitive records in the clear."""
    one = recipe.published_plan.part.teachers == 1
    return one and recipe.purpose != "release" and recipe.data.test_is_public


def about_student(recipe: DpdfdRecipe) -> str:
    """What is released."""
    return f"network `{recipe.dpdfd.student}`, a student that saw generated pictures only"


def published_controls(recipe: DpdfdRecipe) -> tuple[Control, ...]:
    """The teacher, where it may be shown."""
    return (_OPEN_TEACHER,) if shows_teacher(recipe) else ()


def published_terms(recipe: DpdfdRecipe, observed: Observed, paid: int) -> Terms:
    """The terms of source plain."""
    own = SOURCES[recipe.source].terms(recipe, observed, paid)
    plan, done = recipe.published_plan, int(observed[ITERATIONS])
    part, broken = plan.part, int(observed[BROKEN_AT])
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
        {**own.assumptions, **(BOUNDED if part.detached else {}), **shards},
        own.knowledge,
        teacher=own.about,  # of several, one is measured: all are alike
        warnings=(*own.warnings, *(text for text, holds in warnings.items() if holds)),
        observed=own.observed | {ITERATIONS, BROKEN_AT},
    )
