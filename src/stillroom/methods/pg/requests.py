"""What a parameter publisher draws, fixed before any record is looked at; pure, without torch."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, isqrt
from typing import TYPE_CHECKING

import numpy as np

from stillroom.features import FEATURES
from stillroom.gate import (
    ExponentialChoice,
    GaussianAnswers,
    LaplaceCounts,
    Mechanism,
    PrivateSelection,
    Unprotected,
)
from stillroom.gate.accounting import ROUNDING_VARIANCE
from stillroom.methods.pg.claims import steepness
from stillroom.private.parameter_slices import BITS, GRID
from stillroom.sources import Facts, Request
from stillroom.sources.noise import least_sigma
from stillroom.sources.sketch import sketch_requests
from stillroom.vocabulary import Unit

if TYPE_CHECKING:
    from stillroom.methods.pg import PgRecipe

LATENTS, PARAMETERS, EXTREMES = "latents", "parameters", "extremes"
SIGNIFICANT, CLUSTERS, ASSIGNMENTS = "significant", "clusters", "assignments"
REACHES, RESIDUALS = "reaches", "residuals"
STEPS = 1 << 16
"""Units the longest latents have."""
TOGETHER = 1 << 14
"""Weights per answer: a crash loses one such part at most."""
MOST_LAYERS = 64
"""Of a network that PGP publishes: its layers are clustered in one answer."""
NOMINAL_LATENTS = 2570
_FINEST = 1 << 48
"""Steepness is rounded down to this fraction: a little less is told than could be."""


def weights_of(recipe: PgRecipe, facts: Facts) -> int | None:
    """Weights of a model; None where only building it, or its features, would tell."""
    collection, features = recipe.collection, recipe.features
    if not collection.is_head:
        return collection.weights(facts.shape, len(facts.classes))
    if features.components is not None:
        return len(facts.classes) * (features.components + 1)
    if recipe.table is not None:
        return len(facts.classes) * recipe.table.width
    if features.name in FEATURES:
        blank = np.zeros((1, *facts.shape), dtype=np.float32)
        return len(facts.classes) * int(FEATURES[features.name](blank).shape[1])
    return None


def latents_of(recipe: PgRecipe, facts: Facts) -> int | None:
    """How many latents are published; None where they are not known without building the model."""
    if recipe.pg.map != "weights":
        return recipe.pg.latents
    weights = weights_of(recipe, facts)
    return None if weights is None else ceil(recipe.pg.kept * weights)


def latent_requests(recipe: PgRecipe, facts: Facts) -> list[Request]:
    """The latents of every round, and the sketch beside them."""
    part, unit = recipe.pg, recipe.data.pair.unit
    known = latents_of(recipe, facts)
    latents = known or facts.width or NOMINAL_LATENTS

    def gaussian(scale: Fraction) -> Mechanism:
        squared = 4 * STEPS**2
        sigma = least_sigma(part.rounds * squared * scale**2 + ROUNDING_VARIANCE)
        return GaussianAnswers(sigma, latents, squared, unit)

    def exponential(scale: Fraction) -> Mechanism:
        # All choices together cost rho = L epsilon^2 / 8, as one Gaussian of that scale does.
        squared = 4 / (scale**2 * part.rounds * latents)
        epsilon = Fraction(isqrt(int(squared * _FINEST**2)), _FINEST)
        window = part.grid.window
        return ExponentialChoice(
            recipe.collection.models,
            part.points,
            window,
            epsilon / (2 * max(window)),
            unit=unit,
        )

    by_choice = part.mechanism == "exponential"
    run, rows = (exponential, latents) if by_choice else (gaussian, 1)

    def best(scale: Fraction) -> Mechanism:
        assert part.retries is not None
        return PrivateSelection(run(scale), rows, Fraction(1, part.retries))

    wide = known is None or not by_choice
    if part.retries is None:
        asked = Request(LATENTS, run, part.rounds * rows, wide=wide)
    else:
        asked = Request(LATENTS, best, 1, wide=wide)
    return [asked, *sketch_requests(recipe, facts)]


def published_requests(recipe: PgRecipe, facts: Facts) -> list[Request]:
    """What Algorithms 1 to 3 draw of every weight by itself."""
    part, unit = recipe.published_part, recipe.data.pair.unit
    weights = weights_of(recipe, facts) or facts.width or 1
    models = recipe.collection.models
    grid = part.parameter_grid
    choice = ExponentialChoice(
        models,
        part.points,
        grid.window,
        steepness(grid, models, part.epsilon, part.sensitivity),
        models - 1 if part.sharing == "neighbouring" else 1,
        unit,
    )
    asked = [Request.fixed(PARAMETERS, choice, weights * part.tries)]
    if part.grid == "observed":
        why = "the grid of a weight lies between its smallest and its largest value"
        parts = -(-weights // TOGETHER)
        asked.append(Request.fixed(EXTREMES, Unprotected(2 * TOGETHER, why, unit), parts))
    if recipe.pg.publisher == "pgp":
        asked += _grouped(recipe, weights, unit)
    return asked


def _grouped(recipe: PgRecipe, weights: int, unit: Unit) -> list[Request]:
    """Private k-means of the significant weights of one model, and their residuals."""
    part = recipe.published_part
    chosen = max(1, int(part.significant * weights))
    all_clusters = part.clusters * MOST_LAYERS
    furthest = 4 * GRID * chosen

    def leaves(name: str, width: int, why: str) -> Request:
        return Request.fixed(name, Unprotected(width, why, unit), part.tries, wide=True)

    # As the paper counts: one weight that comes or goes moves a count and a sum.
    for_means = 2 * GRID * part.cluster_rounds / part.cluster_epsilon
    means = LaplaceCounts(for_means, 2 * all_clusters, furthest, unit)
    residuals = LaplaceCounts(GRID / part.residual_epsilon, chosen, furthest, unit)
    return [
        leaves(SIGNIFICANT, -(-weights // BITS), "which weights of the private model are large"),
        Request.fixed(CLUSTERS, means, part.cluster_rounds * part.tries, wide=True),
        leaves(ASSIGNMENTS, chosen, "the cluster of each of them"),
        leaves(REACHES, all_clusters, "how far each cluster reaches, which scales its noise"),
        Request.fixed(RESIDUALS, residuals, part.tries, wide=True),
    ]
