"""RONA's recipe as plans: what an ensemble answers, and what the paper's algorithm asks."""

from __future__ import annotations

from fractions import Fraction

from stillroom.gate import Mechanism
from stillroom.methods.recipe import Recipe
from stillroom.methods.rona.answers import Confident, EnsembleAnswers
from stillroom.methods.rona.published_plan import HINTS, LOSSES, OUTPUTS, Published
from stillroom.private import EnsemblePlan
from stillroom.vocabulary import Unit

_ORDER = (OUTPUTS, HINTS, LOSSES)
"""Where the budget is short, distillation ends early and not the hints."""


def answers_of(recipe: Recipe, classes: int, hint_width: int) -> EnsembleAnswers:
    """What the ensemble of a recipe answers."""
    part = recipe.teachers
    assert part is not None
    confident = None
    if part.threshold is not None:
        confident = Confident(part.threshold, part.threshold_noise, part.votes)
    return EnsembleAnswers(
        teachers=EnsemblePlan(
            count=part.count, key=recipe.data.key, shard_cap=part.shard_cap, ridge=part.ridge
        ),
        classes=classes,
        hints=part.hints,
        hint_width=hint_width if part.hints else 0,
        votes=part.votes if confident is None else part.asked or part.votes,
        hint_share=part.hint_share if part.hints else Fraction(0),
        temperature=part.temperature,
        confident=confident,
        unit=Unit(recipe.data.unit),
    )


def published_of(recipe: Recipe) -> Published:
    """The numbers of the paper's algorithm in a recipe."""
    rona, part = recipe.rona, recipe.published
    assert rona is not None
    assert part is not None
    return Published(
        hint_epochs=rona.hint_epochs,
        rounds=rona.rounds,
        distillation_epochs=rona.distillation_epochs,
        self_epochs=rona.self_epochs,
        batch=rona.batch,
        self_batch=rona.self_batch,
        queries=rona.queries,
        sigma=part.sigma,
        temperature=rona.temperature or 3.0,
        hint_layer=rona.hint_layer or 1,
        guided_layer=rona.guided_layer or 1,
        learning_rate=rona.learning_rate,
        bound=part.bound,
        reading=part.reading,
        selection=rona.selection,
        start_seed=rona.start_seed,
    )


def public_records(recipe: Recipe) -> int:
    """How many public records a recipe expects: its declared size and share say so."""
    share = recipe.data.public
    return round(recipe.data.public_size * share / (1 - share))


def published_wishes(
    recipe: Recipe, classes: int, hint_width: int, public: int | None
) -> dict[str, tuple[Mechanism, int]]:
    """What the paper's algorithm draws, by name."""
    size = public_records(recipe) if public is None else public
    found = published_of(recipe).wishes(size, hint_width, classes, unit=Unit(recipe.data.unit))
    return {name: found[name] for name in _ORDER if name in found}
