"""What a recipe draws and what that costs, known before any record is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from stillroom.errors import BadInput
from stillroom.gate import Mechanism, NoisyCounts
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.methods.direct import Direct
from stillroom.methods.recipe import Recipe
from stillroom.methods.sketch import Sketch
from stillroom.private import Clip
from stillroom.private.network_clip import NetworkClip
from stillroom.vocabulary import Pair, Relation, Unit

NOMINAL_WIDTH = 10**6
"""Weights assumed where the data have not been looked at; only the table error depends on it."""
NOMINAL_SHAPE = (64, 64)

Wishes = list[tuple[Mechanism, int]]


@dataclass(frozen=True)
class Cost:
    """What a recipe will draw and what that costs.

    Args:
        multiplier: noise over clip.
        epsilon: certified, for the whole release.
        training: the noisy sums and how many.
        sketch: the releases of the sketch; empty without one.
        evaluation: the charged evaluation; empty where the test part is public.
    """

    multiplier: Fraction
    epsilon: float
    training: tuple[Mechanism, int]
    sketch: Wishes
    evaluation: Wishes

    @property
    def wishes(self) -> Wishes:
        """All of it, in the order in which it is reserved."""
        return [self.training, *self.sketch, *self.evaluation]


def plan_of(recipe: Recipe) -> Direct:
    """The recipe's numbers for the method."""
    training = recipe.training
    linear = training.model == "linear"
    return Direct(
        steps=training.steps,
        rate=training.rate,
        clip=Clip(training.clip, training.normalise) if linear else NetworkClip(training.clip),
        public_size=recipe.data.public_size,
        learning_rate=training.learning_rate,
        momentum=training.momentum,
        average_from=training.average_from,
        unit=Unit(recipe.data.unit),
    )


def sketch_of(recipe: Recipe, shape: tuple[int, ...]) -> Sketch | None:
    """The recipe's sketch, for pictures of that shape."""
    part = recipe.sketch
    if part is None:
        return None
    if len(shape) != 2:
        raise BadInput(
            f"a sketch needs grey pictures, got records of shape {shape}",
            where="sketch",
            why="its basis is that of grey pictures",
            remedy="leave [sketch] out",
        )
    return Sketch(
        mu=part.mu,
        shape=(shape[0], shape[1]),
        full_scale=recipe.features.full_scale,
        coefficients=part.coefficients,
        directions=part.directions,
        centres=part.centres,
        lloyd=part.lloyd,
        radius=part.radius,
        residual=part.residual,
    )


def headline(recipe: Recipe) -> Pair:
    """The pair the recipe's epsilon is for: one record, or one person, more or less."""
    return Pair(Unit(recipe.data.unit), Relation.ADD_OR_REMOVE)


def cost_of(
    recipe: Recipe,
    classes: int,
    width: int = NOMINAL_WIDTH,
    shape: tuple[int, ...] = NOMINAL_SHAPE,
) -> Cost:
    """The least noise with which the whole release, all its parts included, fits the recipe.

    Raises:
        BadInput: what is drawn beside the training costs more than the recipe's epsilon.
    """
    plan, privacy, pair = plan_of(recipe), recipe.privacy, headline(recipe)
    most = recipe.data.max_records_per_person if pair.unit is Unit.PERSON else 1
    counts = NoisyCounts(privacy.evaluation_sigma, classes**2, most, pair.unit)
    evaluation: Wishes = [] if recipe.data.test_is_public else [(counts, 1)]
    sketch = sketch_of(recipe, shape)
    statistics = [] if sketch is None else sketch.wishes(classes, pair.unit)
    extra = [line for mechanism, n in [*statistics, *evaluation] for line in mechanism.lines(n)]
    if extra and price(extra, pair).epsilon(privacy.delta) >= privacy.epsilon:
        parts = {"the sketch": statistics, "the charged evaluation": evaluation}
        named = " and ".join(name for name, drawn in parts.items() if drawn)
        raise BadInput(
            f"{named} alone would cost more than the recipe's epsilon",
            where="privacy.evaluation_sigma" if sketch is None else "sketch.mu",
            why="nothing would be left for the training",
            remedy="raise evaluation_sigma, lower the sketch's mu, or declare the test part public",
        )
    multiplier = smallest_sigma(
        lambda noise: [*plan.mechanism(width, noise).lines(plan.steps), *extra],
        privacy.epsilon,
        privacy.delta,
        pair,
    )
    sums = plan.mechanism(width, multiplier)
    spent = price([*sums.lines(plan.steps), *extra], pair).epsilon(privacy.delta)
    return Cost(multiplier, spent, (sums, plan.steps), statistics, evaluation)
