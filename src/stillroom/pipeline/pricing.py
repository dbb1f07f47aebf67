"""What a recipe draws and what that costs, known before any record is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from stillroom.data.dataset import class_names
from stillroom.errors import BadInput
from stillroom.gate import Mechanism, NoisyCounts
from stillroom.gate.accounting import price as price_of
from stillroom.gate.calibration import smallest_sigma
from stillroom.gate.events import Line
from stillroom.methods.base import Plan
from stillroom.methods.registry import method_named
from stillroom.recipe import Recipe
from stillroom.sources import Facts, Request

NOMINAL_SHAPE: tuple[int, ...] = (64, 64)
NOMINAL_CLASSES = 10
EVALUATION = "evaluation"
Wish = tuple[Mechanism, int]


@dataclass(frozen=True)
class Cost:
    """What a recipe will draw and what that costs.

    Args:
        multiplier: the scale of the noise that was sought; None where the recipe gives the noise.
        epsilon: certified, for the whole release; of several parties, for the one that pays most.
        requests: what is drawn.
    """

    multiplier: Fraction | None
    epsilon: float
    requests: Sequence[Request]

    @property
    def wishes(self) -> dict[str, Wish]:
        """Mechanisms and numbers of answers, by the request's name."""
        return self._wishes(self.requests)

    def wishes_of(self, party: str) -> dict[str, Wish]:
        """What one party reserves; where its budget is short, less of the first."""
        own = (request.to(party) for request in self.requests)
        return self._wishes([request for request in own if request is not None])

    def _wishes(self, requests: Sequence[Request]) -> dict[str, Wish]:
        scale = self.multiplier or Fraction(1)
        return {request.name: (request.at(scale), request.count) for request in requests}


def nominal_facts(recipe: Recipe) -> Facts:
    """What is assumed about the data where they have not been looked at."""
    data = recipe.data
    if data.shape is not None:  # there are no records, and the recipe says what a model takes
        return Facts(tuple(data.shape), class_names(data.classes))
    shape, classes = NOMINAL_SHAPE, class_names(NOMINAL_CLASSES)
    if data.form is not None and data.form.shape is not None:
        shape = data.form.shape
    if data.table is not None:
        shape, classes = (len(data.table.columns),), data.table.classes
    share = recipe.data.public_share
    public = round(recipe.data.declared_size * share / (1 - share))
    return Facts(shape, classes, public)


def requests_of(recipe: Recipe, plan: Plan, facts: Facts) -> list[Request]:
    """What the method draws, and the charged evaluation unless the test part is public."""
    if recipe.data.test_is_public:
        return list(plan.requests)
    privacy = recipe.privacy
    counts = NoisyCounts(
        privacy.evaluation_sigma,
        len(facts.classes) ** 2,
        privacy.evaluation_records_per_person,
        recipe.data.pair.unit,
    )
    return [*plan.requests, Request.fixed(EVALUATION, counts, 1 + len(plan.controls))]


def price(recipe: Recipe, facts: Facts | None = None) -> Cost:
    """The least noise with which the whole release, all its parts included, fits the recipe.

    Guarantee: nothing is spent by pricing.

    Args:
        recipe: the recipe.
        facts: what is public about the data; assumed where they have not been looked at.

    Raises:
        BadInput: what is drawn at fixed noise costs more than the recipe's epsilon.
    """
    facts = nominal_facts(recipe) if facts is None else facts
    plan, privacy = method_named(recipe.method).plan(recipe, facts), recipe.privacy
    requests, pair = requests_of(recipe, plan, facts), recipe.data.pair

    def lines(scale: Fraction, *, fixed_only: bool = False) -> list[Line]:
        drawn = [request for request in requests if not (fixed_only and request.sought)]
        return [line for request in drawn for line in request.at(scale).lines(request.count)]

    def cost(multiplier: Fraction | None) -> Cost:
        whole = price_of(lines(multiplier or Fraction(1)), pair)
        return Cost(multiplier, whole.epsilon(privacy.delta), requests)

    if recipe.mode == "as-published":
        return cost(None)
    fixed = lines(Fraction(1), fixed_only=True)
    if fixed and price_of(fixed, pair).epsilon(privacy.delta) >= privacy.epsilon:
        raise BadInput(
            f"{_named(requests)} alone would cost more than the recipe's epsilon",
            where="sketch.mu, privacy.evaluation_sigma",
            why="nothing would be left for the training",
            remedy="raise evaluation_sigma, lower the sketch's mu, or declare the test part public",
        )
    if not any(request.sought for request in requests):
        return cost(None)
    return cost(smallest_sigma(lines, privacy.epsilon, privacy.delta, pair))


def _named(requests: list[Request]) -> str:
    fixed = [request.name for request in requests if not request.sought]
    parts = {
        "the sketch": any(name != EVALUATION for name in fixed),
        "the charged evaluation": EVALUATION in fixed,
    }
    return " and ".join(name for name, drawn in parts.items() if drawn)
