"""Words on a certificate that hold for every method; writer and verifier derive them."""

from __future__ import annotations

from typing import Any

from stillroom.data.loading import MODEL
from stillroom.recipe import Recipe
from stillroom.recipe.entities import EntitiesSection
from stillroom.vocabulary import Pair, Relation, Unit

_NOISE = {"noise": "checked: operating-system randomness, recorded with the block"}
_OF_RECORDS = {
    "unique ids": "checked: by the data set",
    **_NOISE,
    "declared size": "assumed: declared in the recipe, not counted in the data",
}
_OF_A_MODEL = {
    "one model": "checked: the ledger belongs to the hash of its weights",
    **_NOISE,
    "the recipe": "assumed: it would be the same with another model in the file",
}
LARGE_EPSILON = 10.0
PERSONS = (
    "The records name persons, and this release protects single records only: a person with "
    "several records is protected less."
)

LABELS_ONLY = (
    "LABELS ONLY. Everything about the records but their classes is declared public: their "
    "content, and that they were used. Nothing of that is protected. Epsilon bounds how surely "
    "whoever has the model, and all records, can tell the class of one of them."
)

ONLY_A_MODEL = (
    "Only a model was given, and no records, so the unit is the model as a whole: epsilon bounds "
    "how surely whoever has the student can tell whether this model or another was its teacher. "
    "Through this one release no record behind the model shows more than that. Yet no record is "
    "certified: nothing here knows the records, so nothing adds up what they tell elsewhere, "
    "through other models trained on them, this one trained further, or this one itself. And a "
    "student that hides its whole teacher has learnt little from it: at a small epsilon, expect "
    "guesses. Two roads certify records and teach far more, and both need the records: source "
    "trained (a teacher trained with DP-SGD) and source ensemble (teachers on disjoint shards)."
)
"""What can be certified where there are no records, and what cannot."""


def assumptions_of(recipe: Recipe) -> dict[str, str]:
    """What the figures of every method rest on."""
    return _OF_A_MODEL if recipe.data.source == MODEL else _OF_RECORDS


def note_on(recipe: Recipe) -> str | None:
    """What must be said of a recipe before anything is drawn and after it; None mostly."""
    return ONLY_A_MODEL if recipe.data.source == MODEL else None


def unproven_by(recipe: Recipe) -> tuple[Pair, ...]:
    """What the recipe's split does not support.

    A changed label can move a record to the open; or, where entities differ in their classes, from
    one entity to another, and then two of them change.
    """
    moved = {Unit.RECORD, Unit.PERSON} if _dealt_by_class(recipe) else set()
    open_to_see = set(Unit) - {Unit.LABEL} if recipe.data.withheld else set()
    return tuple(Pair(unit, Relation.CHANGE) for unit in Unit if unit in moved | open_to_see)


def _dealt_by_class(recipe: Recipe) -> bool:
    entities: EntitiesSection | None = recipe.section("entities")
    return entities is not None and entities.split == "uneven"


def promise_warnings(recipe: Recipe, *, names_persons: bool) -> tuple[str, ...]:
    """A word where the promise is weaker than a reader may think."""
    unit, declared = recipe.data.unit, recipe.data.declared_size
    note = note_on(recipe)
    sure = (
        "knows all the others may be nearly sure whether it was used."
        if note is None
        else "has the student may be nearly sure which of two models was its teacher."
    )
    large_epsilon = (
        f"An epsilon above {LARGE_EPSILON:g} promises hardly anything for one {unit}: whoever "
        f"{sure}"
    )
    large_delta = (
        f"Delta {recipe.privacy.delta:g} is above one in {declared:,}, the declared number of "
        f"{unit}s: a method that publishes one of them at random would keep that promise."
    )
    told = {
        note or "": note is not None,
        LABELS_ONLY: unit == "label",
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
