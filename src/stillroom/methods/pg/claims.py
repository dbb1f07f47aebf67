"""What PG, PGP and PGC claim beside what holds, and why (theory.md#pg).

Nothing here is a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from stillroom.errors import check_ranges
from stillroom.parameters import ParameterGrid
from stillroom.parameters.grid import LEVELS
from stillroom.release.sections.published import Claim

if TYPE_CHECKING:
    from stillroom.methods.pg import PgRecipe

FALSE: Mapping[str, str] = MappingProxyType(
    {
        "pg": "does not hold: every model is in the slice of every weight, so epsilons add up over "
        "weights and are not the largest of them; and the printed sensitivity is (M - 1) w_max "
        "times too small",
        "pgp": "does not hold: the centroid cancels, so what is published is Laplace noise on the "
        "raw weights of one private model, scaled by that model itself",
        "pgc": "does not hold: post-processing keeps an epsilon and does not divide it, and the "
        "one it divides does not hold either",
    }
)
COROLLARIES: Mapping[str, str] = MappingProxyType(
    {"pg": "Corollary 1", "pgp": "Corollary 4", "pgc": "Corollary 5"}
)
HEADLINES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "pg": {"mnist": 1.0, "cifar-10": 2.0, "svhn": 1.0},
        "pgp": {"cifar-10": 5.0, "svhn": 3.0},
        "pgc": {},
    }
)
"""The epsilon that the paper recommends or evaluates, by data set; PGC divides that of PG."""


def true_sensitivity(grid: ParameterGrid, models: int) -> float:
    """What one model moves a score by at most: w_max / M, however it is replaced.

    >>> round(true_sensitivity(ParameterGrid(1.0, 401, 0.1), 50), 6)
    0.007658
    """
    return grid.highest / models


def printed_sensitivity(models: int) -> float:
    """1 / (M (M - 1)), as the proof of Corollary 1 has it.

    >>> round(printed_sensitivity(50), 6)
    0.000408
    """
    return 1 / (models * (models - 1))


def steepness(grid: ParameterGrid, models: int, epsilon: Fraction, sensitivity: str) -> Fraction:
    """Of exp(epsilon u / (2 Delta)), per unit of the gate's whole scores.

    A score of `LEVELS` units is a mass of w_max / M. So with the true sensitivity the whole window
    costs epsilon, and with the printed one (M - 1) w_max times as much.

    Args:
        grid: of the weights.
        models: M.
        epsilon: epsilon_j.
        sensitivity: "printed" or "true".
    """
    check_ranges("steepness", {"sensitivity": sensitivity in ("printed", "true")})
    whole = epsilon / (2 * LEVELS)
    return whole if sensitivity == "true" else whole * (models - 1) * Fraction(grid.highest)


def claimed_epsilon(recipe: PgRecipe) -> float:
    """What the corollaries say of a run as published: pure, and for one scalar of one model."""
    part, publisher = recipe.published_part, recipe.pg.publisher
    if publisher == "pgp":
        return float(max(part.cluster_epsilon + part.residual_epsilon, part.epsilon))
    if publisher == "pgc":
        return float(part.epsilon) / max(1, part.bits - part.residual_bits)
    return float(part.epsilon)


def true_epsilon(recipe: PgRecipe, weights: int, delta: float) -> float:
    """What one record costs at most, by concentrated privacy: rho + 2 sqrt(rho log(1 / delta)).

    Such a figure is tighter than the ledger's where there are a million weights, since the ledger
    keeps to whole Renyi orders. It is infinite where the grid follows the weights, or where single
    weights of a private model leave.
    """
    part, models = recipe.published_part, recipe.collection.models
    if part.grid == "observed" or recipe.pg.publisher == "pgp":
        return math.inf
    grid = part.parameter_grid
    once = float(2 * LEVELS * steepness(grid, models, part.epsilon, part.sensitivity))
    together = models - 1 if part.sharing == "neighbouring" else 1
    rho = weights * part.tries * (together * once) ** 2 / 8
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def claim_of(recipe: PgRecipe, weights: int | None) -> Claim:
    """What the paper publishes: by its corollaries, or for the data set.

    Args:
        recipe: the recipe.
        weights: of a network that is published weight by weight.
    """
    publisher = recipe.pg.publisher
    if recipe.source != "plain" or weights is None:
        headline = HEADLINES[publisher].get(recipe.data.source)
        if headline is None:
            said = f"none for this data set; where the paper has a figure it {FALSE[publisher]}"
            return Claim(None, said)
        said = f"the paper evaluates epsilon {headline:g} here, pure; it {FALSE[publisher]}"
        return Claim(headline, said)
    claimed, true = claimed_epsilon(recipe), true_epsilon(recipe, weights, recipe.privacy.delta)
    told = "is infinite" if math.isinf(true) else f"is {true:,.0f} at most"
    return Claim(
        claimed,
        f"By {COROLLARIES[publisher]}: epsilon {claimed:.4g} for the whole model, pure. The claim "
        f"{FALSE[publisher]}. What one record really costs {told}",
    )
