"""What Zhao's scheme claims beside what holds (theory.md#zhao). Nothing here is a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.methods.votes.participation import most_drawn
from stillroom.release.sections.published import Claim

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe

HOLDS = (
    "holds, loosely: reports are clamped to the M classes, so one costs (M - 1) / M of it, and "
    "many cost less than their sum; it would not hold if reports outside were drawn again"
)


def claimed_epsilon(recipe: VotesRecipe) -> float:
    """T_n epsilon, for the entity that answers most often."""
    asked = most_drawn(recipe.entities, recipe.votes.queries, "votes")
    return float(asked * recipe.published_part.epsilon)


def claim_of(recipe: VotesRecipe) -> Claim:
    """What the paper publishes for such a run."""
    if recipe.mode == "as-published":
        claimed = claimed_epsilon(recipe)
        return Claim(claimed, f"By composition: epsilon {claimed:g}, pure. The claim {HOLDS}")
    return Claim(None, f"none for this way of voting; the paper's, epsilon per report, {HOLDS}")
