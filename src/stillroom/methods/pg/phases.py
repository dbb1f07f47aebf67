"""The phases of method pg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stillroom.features import FIXED
from stillroom.sources import Facts
from stillroom.sources.gate_trials import Draws
from stillroom.sources.network_trials import NetworkAnswers, NetworkSteps
from stillroom.sources.phases import (
    directions_of,
    ending,
    network_of,
    rows_of,
    sketch_phases,
    weights_of,
    width_of,
)
from stillroom.sources.trials import (
    Phase,
    Work,
    in_parallel,
    made_up_data,
    seconds_of,
    sensitive_records,
)

if TYPE_CHECKING:
    from stillroom.methods.pg import PgRecipe

TRIED = 64
"""Models on shards in a trial, which are trained side by side."""


def phases_of(recipe: PgRecipe, facts: Facts, tested: float) -> list[Phase]:
    """Rounds of models on shards; or a collection, and parameters like its own."""
    if recipe.source == "plain":
        phases = _published(recipe, facts)
    elif recipe.collection.is_head:
        phases = _heads(recipe, facts)
    else:
        phases = _networks(recipe, facts)
    model = None if recipe.collection.is_head else recipe.collection.model
    return [*phases, *ending(recipe, facts, tested, model, rivals=1)]


def _heads(recipe: PgRecipe, facts: Facts) -> list[Phase]:
    part, records = recipe.collection, sensitive_records(recipe)
    width, classes = width_of(recipe, facts), len(facts.classes)
    # Fixed features are looked at first, and computed again for the shards.
    again = 2 if recipe.features.name in FIXED else 1
    trial = HeadRound(part.models, part.shard_cap, part.steps, width, classes)
    latents = recipe.pg.latents or width * classes
    rounds = [Work(trial, recipe.pg.rounds), Work(Draws(latents), recipe.pg.rounds)]
    return [
        Phase("features", rows_of(recipe, facts, again * records)),
        *sketch_phases(recipe, facts),
        *directions_of(recipe, facts, records),
        Phase("models on shards", rounds),
    ]


def _networks(recipe: PgRecipe, facts: Facts) -> list[Phase]:
    part, own = recipe.collection, recipe.pg
    network = network_of(recipe, facts, part.model, part.batch, alone=True)
    records = min(float(part.shard_cap), sensitive_records(recipe) / part.models)
    step = NetworkSteps(network)
    runs = in_parallel(recipe, step, part.epochs * records, own.public_runs)
    public = [Phase("public runs", runs)] if own.public_runs else []
    works = in_parallel(recipe, step, part.epochs * records * own.rounds, part.models)
    latents = own.latents or weights_of(network)
    start = 0 if part.start == "common" else part.start_steps * facts.public_records
    drawn = [Work(Draws(latents), own.rounds), Work(step, start)]
    return [*sketch_phases(recipe, facts), *public, Phase("models on shards", [*works, *drawn])]


def _published(recipe: PgRecipe, facts: Facts) -> list[Phase]:
    part = recipe.collection
    network = network_of(recipe, facts, part.model, part.batch, alone=True)
    records = sensitive_records(recipe) / part.models
    if recipe.published_part.sharing == "neighbouring":
        records *= part.models - 1
    each = part.epochs * min(float(part.shard_cap), records)
    trained = in_parallel(recipe, NetworkSteps(network), each, part.models)
    weights = weights_of(network)
    density = Density(part.models, recipe.published_part.points)
    drawn = [Work(density, weights), Work(NetworkAnswers(network), facts.public_records)]
    tries = recipe.published_part.tries
    return [
        Phase("training the collection", trained),
        Phase("generating parameters", [Work(w.trial, w.times * tries) for w in drawn]),
    ]


@dataclass(frozen=True)
class HeadRound:
    """A round of linear layers on shards.

    Args:
        models: one per shard.
        cap: places of a shard.
        steps: of a head on its shard.
        width: features.
        classes: how many there are.
    """

    models: int
    cap: int
    steps: int
    width: int
    classes: int

    def seconds(self) -> float:
        """Of a few dozen models."""
        from stillroom.private.head_models import HeadPlan, HeadShards
        from stillroom.public.latent_fits import kept_weights

        few, size = min(self.models, TRIED), self.width * self.classes
        data = made_up_data(few, (self.width,), self.classes, 1.0)
        plan = HeadPlan(few, "made up", self.cap, self.steps)
        rows = np.eye(self.width, dtype=np.float32)
        shards = HeadShards(data, lambda x: np.asarray(x, np.float32), rows, plan)
        latents = kept_weights(np.ones(size, dtype=np.bool_))
        start = np.zeros(size, np.float32)
        once = seconds_of(lambda: shards.latent_sum(start, 0, latents, 1.0, 1024))
        return once * self.models / few


@dataclass(frozen=True)
class Density:
    """One parameter drawn like those of many models, on a grid.

    Args:
        models: how many there are.
        points: of the grid.
    """

    models: int
    points: int

    def seconds(self) -> float:
        """A kernel at each point and model, for a few hundred parameters at once."""
        values = np.ones((256, self.points, 1))
        places = np.ones((256, 1, min(self.models, 64)))
        once = seconds_of(lambda: np.exp(-((values - places) ** 2)).sum(axis=2))
        return once * max(1, self.models / 64) / 256
