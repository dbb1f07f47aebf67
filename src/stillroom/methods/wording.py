"""Words on a certificate that hold for every method; writer and verifier derive them."""

from __future__ import annotations

from typing import Any

from stillroom.recipe import Recipe
from stillroom.vocabulary import Pair, Relation, Unit

OF_ALL = {
    "unique ids": "checked: by the data set",
    "noise": "checked: operating-system randomness, recorded with the block",
    "declared size": "assumed: declared in the recipe, not counted in the data",
}
LARGE_EPSILON = 10.0
PERSONS = (
    "The records name persons, and this release protects single records only: a person with "
    "several records is protected less."
)


def unproven_by(recipe: Recipe) -> tuple[Pair, ...]:
    """What the recipe's split does not support: a changed label can move a record to the open."""
    changes = tuple(Pair(unit, Relation.CHANGE) for unit in Unit)
    return changes if recipe.data.withheld else ()


def promise_warnings(recipe: Recipe, *, names_persons: bool) -> tuple[str, ...]:
    """A word where the promise is weaker than a reader may think."""
    unit, declared = recipe.data.unit, recipe.data.declared_size
    large_epsilon = (
        f"An epsilon above {LARGE_EPSILON:g} promises hardly anything for one {unit}: whoever "
        "knows all the others may be nearly sure whether it was used."
    )
    large_delta = (
        f"Delta {recipe.privacy.delta:g} is above one in {declared:,}, the declared number of "
        f"{unit}s: a method that publishes one of them at random would keep that promise."
    )
    told = {
        PERSONS: names_persons and unit == "record",
        large_epsilon: recipe.privacy.epsilon > LARGE_EPSILON and recipe.mode == "certified",
        large_delta: recipe.privacy.delta * declared > 1,
    }
    return tuple(text for text, holds in told.items() if holds)


def stated_by(recipe: Recipe) -> dict[str, Any]:
    """The fields of a certificate that are the recipe's own words."""
    return {
        "mode": recipe.mode,
        "unit": Unit(recipe.data.unit),
        "delta": recipe.privacy.delta,
        "asked": recipe.privacy.epsilon,
        "tuning": recipe.privacy.tuning,
    }
