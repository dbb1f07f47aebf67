"""What a recipe draws and what that costs, known before any record is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from stillroom.errors import BadInput
from stillroom.gate import Mechanism, NoisyCounts
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.gate.events import Line
from stillroom.methods.direct import Direct
from stillroom.methods.recipe import Recipe
from stillroom.methods.sketch import Sketch
from stillroom.private import Clip
from stillroom.private.network_clip import NetworkClip
from stillroom.vocabulary import Pair, Relation, Unit

NOMINAL_WIDTH = 10**6
"""Weights assumed where the data have not been looked at; only the table error depends on it."""
NOMINAL_SHAPE = (64, 64)

NOMINAL_HINT = 256

RIVALS = {"dp-trained": 3, "ensemble": 2, "plain": 2}
"""Models that rona's sources measure beside the student, but for those that saw too much."""

Wishes = list[tuple[Mechanism, int]]


@dataclass(frozen=True)
class Cost:
    """What a recipe will draw and what that costs.

    Args:
        multiplier: the scale of the noise that was sought; None where the recipe gives the noise.
        epsilon: certified, for the whole release.
        learning: what the training draws; where the budget is short, less of the first.
        sketch: the releases of the sketch; empty without one.
        evaluation: the charged evaluation; empty where the test part is public.
    """

    multiplier: Fraction | None
    epsilon: float
    learning: Wishes
    sketch: Wishes
    evaluation: Wishes

    @property
    def wishes(self) -> Wishes:
        """All of it, in the order in which it is reserved."""
        return [*self.learning, *self.sketch, *self.evaluation]


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


def learning_of(
    recipe: Recipe, classes: int, width: int, public: int | None = None
) -> Callable[[Fraction], Wishes]:
    """What the training draws, at a scale of its noise.

    Args:
        recipe: the recipe.
        classes: how many classes there are.
        width: coordinates of a gradient sum, or of a hint.
        public: public records; estimated from the recipe when left out.
    """
    source = "dp-trained" if recipe.rona is None else recipe.rona.source
    if source == "ensemble":
        from stillroom.methods.rona.plans import answers_of

        return answers_of(recipe, classes, width).wishes
    if source == "plain":
        from stillroom.methods.rona.plans import published_wishes

        fixed = published_wishes(recipe, classes, width, public)
        return lambda scale: list(fixed.values())
    plan = plan_of(recipe)
    return lambda scale: [(plan.mechanism(width, scale), plan.steps)]


def beside_learning(recipe: Recipe, classes: int, shape: tuple[int, ...]) -> tuple[Wishes, Wishes]:
    """What is drawn beside the training, at noise the recipe gives: the sketch, the evaluation."""
    privacy, pair = recipe.privacy, headline(recipe)
    counts = NoisyCounts(
        privacy.evaluation_sigma, classes**2, privacy.evaluation_records_per_person, pair.unit
    )
    measured = 1 if recipe.rona is None else 1 + RIVALS[recipe.rona.source]
    sketch = sketch_of(recipe, shape)
    return (
        [] if sketch is None else sketch.wishes(classes, pair.unit),
        [] if recipe.data.test_is_public else [(counts, measured)],
    )


def cost_of(
    recipe: Recipe,
    classes: int,
    width: int | None = None,
    shape: tuple[int, ...] = NOMINAL_SHAPE,
    *,
    public: int | None = None,
) -> Cost:
    """The least noise with which the whole release, all its parts included, fits the recipe.

    Args:
        recipe: the recipe.
        classes: how many classes there are.
        width: coordinates of a gradient sum, or of a hint; only the table error depends on it.
        shape: of a record, for a sketch.
        public: public records, for a paper's algorithm.

    Raises:
        BadInput: what is drawn beside the training costs more than the recipe's epsilon.
    """
    privacy, pair = recipe.privacy, headline(recipe)
    statistics, evaluation = beside_learning(recipe, classes, shape)
    extra = [line for mechanism, n in [*statistics, *evaluation] for line in mechanism.lines(n)]
    if width is None:
        asked = recipe.rona is not None and recipe.rona.source != "dp-trained"
        width = NOMINAL_HINT if asked else NOMINAL_WIDTH
    learning = learning_of(recipe, classes, width, public)

    def lines(scale: Fraction) -> list[Line]:
        return [line for mechanism, n in learning(scale) for line in mechanism.lines(n)] + extra

    if recipe.mode == "as-published":
        spent = price(lines(Fraction(1)), pair).epsilon(privacy.delta)
        return Cost(None, spent, learning(Fraction(1)), statistics, evaluation)
    if extra and price(extra, pair).epsilon(privacy.delta) >= privacy.epsilon:
        parts = {"the sketch": statistics, "the charged evaluation": evaluation}
        named = " and ".join(name for name, drawn in parts.items() if drawn)
        raise BadInput(
            f"{named} alone would cost more than the recipe's epsilon",
            where="sketch.mu" if statistics else "privacy.evaluation_sigma",
            why="nothing would be left for the training",
            remedy="raise evaluation_sigma, lower the sketch's mu, or declare the test part public",
        )
    scale = smallest_sigma(lines, privacy.epsilon, privacy.delta, pair)
    spent = price(lines(scale), pair).epsilon(privacy.delta)
    return Cost(scale, spent, learning(scale), statistics, evaluation)
