"""What a recipe of method rona fixes about its certificate; pure, and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.methods.base import SHOWN_SAMPLES, Terms
from stillroom.methods.generators import sketch_terms
from stillroom.methods.rona.claims import claimed_epsilon, headline_of, verdict_on
from stillroom.release.sections.controls import BASE, Control
from stillroom.release.sections.published import Claim
from stillroom.sources import SOURCES, Facts
from stillroom.sources.base import PUBLIC_RECORDS, Observed

if TYPE_CHECKING:
    from stillroom.methods.rona import RonaRecipe

STUDENT = "the student: it saw public pictures, their labels, and what the teacher said of them"
CALLS = "calls"

_BASE = Control(BASE, None, "the same student, public labels only", private=False)
_CEILING = Control(
    "ceiling", None, "the same student, all labels in the clear: not private", private=True
)
_TEACHER = Control("teacher", None, "whom the student learnt from", private=False)
_OPEN_TEACHER = Control(
    "teacher", None, "an ordinary network that saw all records: not private", private=True
)


def _public_control(name: str, about: str) -> Control:
    return Control(name, None, about, private=False, public_only=True)


UNTAUGHT = "teacher on public data"
AUXILIARY = "auxiliary teacher"
_BESIDE = {
    "trained": (_public_control(UNTAUGHT, "the same teacher, public labels only"), _TEACHER),
    "ensemble": (_public_control(AUXILIARY, "the larger network, public labels only"),),
    "plain": (_public_control(AUXILIARY, "a network trained on public labels only"),),
}


def controls_of(recipe: RonaRecipe) -> tuple[Control, ...]:
    """Base, what else there is, and where it may be shown what saw records in the clear."""
    open_teacher = (_OPEN_TEACHER,) if recipe.source == "plain" else ()
    in_the_clear = (*open_teacher, _CEILING) if shows_ceiling(recipe) else ()
    return (_BASE, *_BESIDE[recipe.source], *in_the_clear)


def shows_ceiling(recipe: RonaRecipe) -> bool:
    """Whether models may be shown that saw sensitive records in the clear."""
    return recipe.purpose != "release" and recipe.data.test_is_public


def claim_of(recipe: RonaRecipe, facts: Facts) -> Claim:
    """What the paper publishes: for the data set, or by its formula."""
    if recipe.source != "plain":
        return Claim(*headline_of(recipe.data.source, recipe.data.public))
    plan, delta = recipe.published_plan, recipe.privacy.delta
    calls = plan.claimed_calls(facts.public_records)
    claimed = claimed_epsilon(calls, float(plan.published.sigma), delta)
    return Claim(claimed, verdict_on(plan, facts.public_records, delta))


def terms_of(recipe: RonaRecipe, observed: Observed, paid: int) -> Terms:
    """The terms of method rona, by its source."""
    own = SOURCES[recipe.source].terms(recipe, observed, paid)
    share = "all" if recipe.data.labelled == 1 else "some"
    pictures = f"public pictures of the same kind, {share} of them labelled"
    about = f"network `{recipe.rona.student}`, a student"
    if recipe.source == "plain":
        calls = int(observed[CALLS])
        total = recipe.published_plan.calls(int(observed[PUBLIC_RECORDS]))
        early = f"The budget ended early: {calls} of {total} calls were paid for and made."
        return Terms(
            about,
            own.assumptions,
            (pictures,),
            teacher=f"network `{recipe.teacher_network}`",
            warnings=(early,) if calls < total else (),
            observed=own.observed | {CALLS},
        )
    larger = f"network `{recipe.rona.auxiliary}`"
    return Terms(
        about,
        own.assumptions,
        (*own.knowledge, pictures, STUDENT),
        teacher=own.about if recipe.source == "trained" else larger,
        warnings=own.warnings,
        observed=own.observed,
        samples=SHOWN_SAMPLES if recipe.sketch else 0,
        generator=sketch_terms(recipe),
        compact=recipe.compression is not None,
    )
