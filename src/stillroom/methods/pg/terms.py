"""What a recipe of method pg fixes about its certificate; pure, and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillroom.methods.base import SHOWN_SAMPLES, Terms
from stillroom.methods.generators import sketch_terms
from stillroom.release.sections.controls import Control
from stillroom.sources.base import Observed
from stillroom.sources.ensemble import OF_ENSEMBLES
from stillroom.sources.sketch import FROM_SKETCH
from stillroom.sources.trained import feature_knowledge, linear_about

if TYPE_CHECKING:
    from stillroom.methods.pg import PgRecipe

START, ONE_MODEL = "start", "one model"
TRIES = "tries"
LABELLED = "public records with their labels"
OF_GRIDS = {"fixed grid": "checked: every entry is one of its public points"}
OF_SELECTION = {
    "public judge": "checked: it is shown generated parameters and public records alone",
    "number of runs": "assumed: nobody can watch how long the draw took",
}
OF_PUBLISHED = {"every draw": "checked: recorded with its block, those of rejected tries as well"}
_ONE_MODEL = Control(ONE_MODEL, None, "one of the models, as trained: not private", private=True)


def about_model(recipe: PgRecipe) -> str:
    """What is released, in one line."""
    if recipe.collection.is_head:
        return linear_about(recipe)
    return f"network `{recipe.collection.model}`"


def controls_of(recipe: PgRecipe) -> tuple[Control, ...]:
    """What was there before the shards said anything; as published, one of the models."""
    if recipe.source == "plain":
        shown = recipe.purpose != "release" and recipe.data.test_is_public
        return (_ONE_MODEL,) if shown else ()
    start = recipe.collection.start
    if start == "common":
        return ()
    about = {
        "public": "where all models started: public labels alone",
        "sketch": "where all models started: samples of the sketch alone",
    }
    return (Control(START, None, about[start], private=False, public_only=start == "public"),)


def terms_of(recipe: PgRecipe, observed: Observed, paid: int) -> Terms:
    """The terms of the publisher, certified or as published."""
    if recipe.source == "plain":
        return _published_terms(recipe, observed)
    part, about = recipe.pg, about_model(recipe)
    assumptions = dict(OF_ENSEMBLES)
    assumptions |= OF_GRIDS if part.mechanism == "exponential" else {}
    assumptions |= {} if part.retries is None else OF_SELECTION
    return Terms(
        about,
        assumptions,
        _knowledge(recipe),
        teacher=about if part.publisher == "pgc" else None,
        compact=part.publisher == "pgc",
        warnings=_early(recipe, paid),
        samples=SHOWN_SAMPLES if recipe.sketch else 0,
        generator=sketch_terms(recipe),
    )


def _early(recipe: PgRecipe, paid: int) -> tuple[str, ...]:
    part = recipe.pg
    if part.mechanism == "exponential" or part.retries is not None or paid >= part.rounds:
        return ()
    return (
        f"The budget ended early: {paid} of {part.rounds} rounds were paid for; what was published "
        "last is released.",
    )


def _knowledge(recipe: PgRecipe) -> tuple[str, ...]:
    collection, part = recipe.collection, recipe.pg
    features = feature_knowledge(recipe) if collection.is_head else ("random first weights",)
    sketched = recipe.sketch is not None
    labels = LABELLED if recipe.data.public > 0 else FROM_SKETCH
    used = {
        LABELLED: collection.start == "public",
        FROM_SKETCH: collection.start == "sketch",
        labels: part.retries is not None or part.map == "directions" or part.kept < 1,
        "features of public pictures, or of samples, which fix their scale": collection.is_head
        and collection.scale != "none"
        and (sketched or recipe.data.public > 0),
    }
    return (*features, *(text for text, holds in used.items() if holds))


def _published_terms(recipe: PgRecipe, observed: Observed) -> Terms:
    part, about = recipe.published_part, about_model(recipe)
    tries = int(observed[TRIES])
    given_up = (f"None of {part.tries} tries passed the public test; the last one is released.",)
    return Terms(
        about,
        OF_PUBLISHED,
        ("random first weights",),
        teacher=about if recipe.pg.publisher == "pgc" else None,
        compact=recipe.pg.publisher == "pgc",
        warnings=given_up if tries > part.tries else (),
        observed=frozenset({TRIES}),
    )
