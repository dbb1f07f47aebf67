"""What a recipe of method rona fixes about its certificate; see `methods.terms`."""

from __future__ import annotations

from stillroom.methods.recipe import Recipe
from stillroom.methods.recipe_parts import RonaPart
from stillroom.methods.rona.claims import claim_of, claimed_epsilon, headline_of
from stillroom.methods.rona.plans import answers_of, published_of
from stillroom.methods.terms import (
    OF_LINEAR_LAYERS,
    Facts,
    Terms,
    linear_about,
    linear_knowledge,
    promise_warnings,
    training_warnings,
)
from stillroom.release.sections.controls import BASE, Control
from stillroom.release.sections.published import Claim

OF_ENSEMBLES = {
    "disjoint shards": "checked: by keyed hash of the ids, features record by record",
    "integer answers": "checked: every teacher's answer lies in its set, in whole numbers",
}
OF_PUBLISHED = {"calls": "checked: each executed call is a row of the ledger"}
STUDENT = "the student: it saw public pictures, their labels, and what the teacher said of them"

_BASE = Control(BASE, None, "the same student, public labels only", private=False)
_CEILING = Control(
    "ceiling", None, "the same student, all labels in the clear: not private", private=True
)
_UNTAUGHT = Control(
    "teacher on public data",
    None,
    "the same teacher, public labels only",
    private=False,
    public_only=True,
)
_TEACHER = Control("teacher", None, "whom the student learnt from", private=False)
_LARGER = Control(
    "auxiliary teacher",
    None,
    "the larger network, public labels only",
    private=False,
    public_only=True,
)
_AUXILIARY = Control(
    "auxiliary teacher",
    None,
    "a network trained on public labels only",
    private=False,
    public_only=True,
)
_OPEN_TEACHER = Control(
    "teacher", None, "an ordinary network that saw all records: not private", private=True
)


def rona_terms(recipe: Recipe, facts: Facts, paid: int) -> Terms:
    """The terms of method rona, by its source."""
    ways = {"ensemble": _ensemble_terms, "plain": _plain_terms, "dp-trained": _teacher_terms}
    return ways[_part(recipe).source](recipe, facts, paid)


def shows_ceiling(recipe: Recipe) -> bool:
    """Whether models may be shown that saw sensitive records in the clear."""
    return recipe.purpose != "release" and recipe.data.test_is_public


def _teacher_terms(recipe: Recipe, facts: Facts, paid: int) -> Terms:
    return Terms(
        about=_about(recipe),
        assumptions=OF_LINEAR_LAYERS,
        knowledge=(*linear_knowledge(recipe, labelled=True), _pictures(recipe), STUDENT),
        claim=_headline(recipe),
        controls=_compared(recipe, _UNTAUGHT, _TEACHER),
        teacher=linear_about(recipe),
        warnings=(*promise_warnings(recipe, facts), *training_warnings(recipe, facts, paid)),
    )


def _ensemble_terms(recipe: Recipe, facts: Facts, paid: int) -> Terms:
    return Terms(
        about=_about(recipe),
        assumptions=OF_ENSEMBLES,
        knowledge=(*linear_knowledge(recipe), _pictures(recipe), STUDENT),
        claim=_headline(recipe),
        controls=_compared(recipe, _LARGER),
        teacher=f"network `{_part(recipe).auxiliary}`",
        warnings=(*promise_warnings(recipe, facts), *_ended_early(recipe, facts, paid)),
        facts=frozenset({"persons", "public records"}),
    )


def _plain_terms(recipe: Recipe, facts: Facts, paid: int) -> Terms:
    plan, public, delta = published_of(recipe), int(facts["public records"]), recipe.privacy.delta
    calls, total = int(facts["calls"]), plan.calls(public)
    early = f"The budget ended early: {calls} of {total} calls were paid for and made."
    more = [_OPEN_TEACHER] if shows_ceiling(recipe) else []
    claimed = claimed_epsilon(plan.claimed_calls(public), float(plan.sigma), delta)
    return Terms(
        about=_about(recipe),
        assumptions=OF_PUBLISHED,
        knowledge=(_pictures(recipe),),
        claim=Claim(claimed, claim_of(plan, public, delta)),
        controls=_compared(recipe, _AUXILIARY, *more),
        teacher=f"network `{make_of(recipe)}`",
        warnings=(*promise_warnings(recipe, facts), *([early] if calls < total else [])),
        facts=frozenset({"persons", "public records", "calls"}),
    )


def _compared(recipe: Recipe, *more: Control) -> tuple[Control, ...]:
    """Base, what else there is, and the ceiling where it may be shown."""
    return (_BASE, *more, *([_CEILING] if shows_ceiling(recipe) else []))


def make_of(recipe: Recipe) -> str:
    """The network of the ordinary teacher: the paper's auxiliary teacher is of the same make."""
    assert recipe.published is not None
    return recipe.published.teacher or _part(recipe).auxiliary


def _part(recipe: Recipe) -> RonaPart:
    assert recipe.rona is not None
    return recipe.rona


def _about(recipe: Recipe) -> str:
    return f"network `{_part(recipe).student}`, a student"


def _pictures(recipe: Recipe) -> str:
    share = "all" if recipe.data.labelled == 1 else "some"
    return f"public pictures of the same kind, {share} of them labelled"


def _headline(recipe: Recipe) -> Claim:
    return Claim(*headline_of(recipe.data.source, recipe.data.public))


def votes_a_round(recipe: Recipe, public: int) -> int:
    """How many votes a round asks for."""
    planned = answers_of(recipe, classes=2, hint_width=1).votes
    return min(-(-planned // _part(recipe).rounds), public)


def rounds_paid(recipe: Recipe, public: int, paid: int) -> int:
    """How many rounds there are for so many votes."""
    return max(1, min(_part(recipe).rounds, -(-paid // votes_a_round(recipe, public))))


def _ended_early(recipe: Recipe, facts: Facts, paid: int) -> tuple[str, ...]:
    """A word where the budget ended before the plan."""
    planned = answers_of(recipe, classes=2, hint_width=1).votes
    if paid >= planned:
        return ()
    rounds = rounds_paid(recipe, int(facts["public records"]), paid)
    return (
        f"The budget ended early: {paid} of {planned} planned answers were paid for and given, in "
        f"{rounds} of {_part(recipe).rounds} rounds; nothing was asked after the last of them.",
    )
