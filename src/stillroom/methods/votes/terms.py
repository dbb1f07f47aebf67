"""What a recipe of method votes fixes about its certificate; pure, and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.methods.base import Terms
from stillroom.methods.votes.section import IN_SUMS
from stillroom.sources.trained import feature_knowledge

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe

PUBLIC_PICTURES = "public records without their labels, on which the entities vote"
NEIGHBOURS = "which public records are alike, by public features"


def assumptions_of(recipe: VotesRecipe) -> dict[str, str]:
    """What the figures rest on."""
    entities, votes = recipe.entities, recipe.votes
    told = {
        "disjoint records": "checked: each id is at one entity",
        "own teachers": "checked: each is a function of its entity's records and of public things",
    }
    if recipe.data.unit == "person":
        known = "one entity" if entities.per_person == 1 else f"{entities.per_person} entities"
        told["persons"] = f"assumed: a person is known to at most {known}"
    if entities.participation < 1 or entities.epsilons is not None:
        told["participation"] = "checked: by a public lottery and public budgets, never by records"
    if votes.report not in IN_SUMS or recipe.mode == "as-published":
        return {**told, "reports": "checked: clamped or drawn from a fixed set, never drawn again"}
    return {
        **told,
        "secure sum": "assumed: nobody sees a row by itself; the aggregator follows the protocol, "
        f"at most {entities.colluding} entities tell it what they sent",
        "noise shares": f"checked: at least {entities.count - entities.dropouts} rows are in every "
        "sum that is opened",
    }


def warnings_of(recipe: VotesRecipe) -> tuple[str, ...]:
    """What a reader must see."""
    if recipe.votes.report not in IN_SUMS or recipe.mode == "as-published":
        return ()
    return (
        "The certified epsilon is that of the opened sum. If the secure sum is broken, and single "
        "rows are seen, each entity has only the noise of its own share: see the figure for that "
        "case. It is told and not part of any budget.",
    )


def about_model(recipe: VotesRecipe) -> str:
    """What is released, in one line."""
    return f"network `{recipe.student.model}`, a student of {recipe.entities.count} entities' votes"


def terms_of(recipe: VotesRecipe) -> Terms:
    """The terms of entities and student."""
    return Terms(
        about_model(recipe),
        assumptions_of(recipe),
        (*feature_knowledge(recipe), PUBLIC_PICTURES, NEIGHBOURS),
        warnings=warnings_of(recipe),
    )
