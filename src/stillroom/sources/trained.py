"""Source trained: one model trained on the sensitive records with DP-SGD; its answers are free."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from stillroom.features import FIXED, TABLE
from stillroom.gate import Passage
from stillroom.public.drift import Drift
from stillroom.recipe import Recipe
from stillroom.release.model import ReleasedModel
from stillroom.sources import base
from stillroom.sources.base import Facts, Observed, Request, SourceTerms
from stillroom.sources.noise import sigma_of
from stillroom.sources.sketch import FROM_SKETCH, DrawnSketch, sketch_requests
from stillroom.sources.training import TrainingSection
from stillroom.sources.trials import Phase
from stillroom.vocabulary import Integers

STEPS = "gradient sums"
NOMINAL_WIDTH = 10**6
"""Weights assumed where the data have not been looked at; only the table error depends on it."""
NOISE_ALONE = 1e-4
"""A model that learnt from noise alone goes without its warning once in 10,000 runs, at most."""
OF_LINEAR_LAYERS = {
    "integer sums": "checked: every term's norm is compared with the clip in whole numbers",
    "features of one record": "checked: no statistic over several records, each computed by itself",
}
CLASS_WEIGHTS = {
    "class weights": "assumed: declared in the recipe, from public knowledge, not counted in the "
    "data; each gradient is multiplied before it is clipped"
}
FROM_PUBLIC_PART = "the public part of the data"
UNLEARNT = (
    "The noisy gradients cannot be told from noise alone: the sensitive records have taught the "
    "model next to nothing. More records, a larger clip, fewer steps or a larger epsilon may help."
)


class Trained:
    """DP-SGD on a linear layer over public features, or on a whole network."""

    name: ClassVar[str] = "trained"

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """What a training, its features and its sketch do not go together with."""
        training, features, sketch = _training(recipe), recipe.features, recipe.section("sketch")
        return {
            **training.misfits(),
            "features: a network looks at the pictures themselves": not training.linear
            and bool(features.model_fields_set - {"full_scale"}),
            "features.fitted_on: there is no [sketch]": features.fitted_on == "sketch"
            and sketch is None,
        }

    def requests(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Request]:
        """The gradient sums, and the sketch's."""
        training, width = _training(recipe), facts.width or NOMINAL_WIDTH
        unit = recipe.data.pair.unit
        sums = Request(
            STEPS, lambda scale: training.mechanism(width, scale, unit), training.steps, wide=True
        )
        return [sums, *sketch_requests(recipe, facts)]

    def terms(self, recipe: Recipe, observed: Observed, paid: int) -> SourceTerms:
        """What a training says of itself."""
        training, planned = _training(recipe), _training(recipe).steps
        early = (
            f"The budget ended early: {paid} of {planned} planned steps were paid for and taken, "
            "none after them."
        )
        told = {early: paid < planned, UNLEARNT: not observed["learnt"]}
        if training.linear:
            about, assumptions = linear_about(recipe), OF_LINEAR_LAYERS
            knowledge = feature_knowledge(recipe)
            if recipe.data.public_share and (training.public_share or training.public_epochs):
                labels = "labels of public records, beside the sensitive ones"
                knowledge = (knowledge[0], labels, *knowledge[1:])
        else:
            from stillroom.private.network_clip import ASSUMPTIONS, OF_PERSONS

            persons = recipe.data.unit == "person"
            about = f"network `{training.model}`"
            assumptions = OF_PERSONS if persons else ASSUMPTIONS
            knowledge = _network_knowledge(training)
        if training.class_weights is not None:
            assumptions = {**assumptions, **CLASS_WEIGHTS}
            weights = ", ".join(f"{float(weight):g}" for weight in training.class_weights)
            knowledge = (*knowledge, f"class weights {weights}, declared in the recipe")
        return SourceTerms(
            about=about,
            assumptions=assumptions,
            knowledge=knowledge,
            warnings=tuple(text for text, holds in told.items() if holds),
            observed=frozenset({"learnt"}),
        )

    def phases(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Phase]:
        """Those of a linear layer, or of a network."""
        from stillroom.sources.phases import linear_phases, network_phases

        linear = _training(recipe).linear
        return linear_phases(recipe, facts) if linear else network_phases(recipe, facts)

    def prepare(self, setting: base.Setting, ask: base.Ask) -> base.Prepared:
        """Features or network, and a look at the records."""
        if _training(setting.recipe).linear:
            from stillroom.sources.trained_linear import LinearTeacher

            linear = LinearTeacher(setting)
            return base.Prepared(linear.width, linear.open)
        from stillroom.sources.trained_network import NetworkTeacher

        network = NetworkTeacher(setting)
        return base.Prepared(network.width, network.open)


class TrainedAnswers(base.Answers):
    """A sanitised model, asked without limit.

    Args:
        model: trained through the gate.
        sketch: drawn beside it, perhaps.
        learnt: whether the noisy sums can be told from noise alone.
        untaught: the same model trained on public labels alone; None where there are none.
    """

    def __init__(
        self,
        model: ReleasedModel,
        sketch: DrawnSketch,
        learnt: bool,
        untaught: ReleasedModel | None = None,
    ) -> None:
        self.model, self.sketch, self.untaught, self._learnt = model, sketch, untaught, learnt
        self.network = getattr(model, "network", None)

    @property
    def observed(self) -> base.Observed:
        """Whether it has learnt."""
        return {"learnt": self._learnt}

    def scores(self, x: base.Records, groups: Integers | None = None) -> base.Scores:
        """The model's logits."""
        logits = self.model.logits(np.array(x)).astype(np.float64)
        return base.Scores(logits, np.arange(len(x)))

    def samples(self, count: int, seed: int) -> base.Records | None:
        """Of the sketch beside it."""
        return self.sketch.samples(count, seed)


def has_learnt(drift: Drift, passage: Passage) -> bool:
    """Whether the noisy sums can be told from noise alone, by their drift."""
    return drift.chance(sigma_of(passage)) <= NOISE_ALONE


def linear_about(recipe: Recipe) -> str:
    """What a linear layer over features is called."""
    name = recipe.features.name
    return f"linear layer over {'fixed ' if name in FIXED else ''}features `{name}`"


def feature_knowledge(recipe: Recipe) -> tuple[str, ...]:
    """The public things that features rest on."""
    part = recipe.features
    known = f"fixed features `{part.name}`, fitted on nothing"
    if part.size is not None:
        known = f"a public backbone, `{part.name}`, at {part.size} pixels"
    elif part.name == TABLE:
        known = "a public schema: ranges and lists that were written down, not measured"
    elif part.name == "auxiliary":
        known = "the auxiliary teacher, a network trained on the public part"
    if part.components is None:
        return (known,)
    return known, f"{part.components} directions of the features, fitted on {fitted_on(recipe)}"


def fitted_on(recipe: Recipe) -> str:
    """What directions of features are fitted on, in words."""
    source = recipe.features.fitted_on
    named = {"sketch": FROM_SKETCH, "public": FROM_PUBLIC_PART}
    return named.get(str(source), f"the public data set {source}")


def _network_knowledge(training: TrainingSection) -> tuple[str, ...]:
    first = f"the public weights {training.weights}" if training.weights else "random first weights"
    if training.public_source is None:
        return (first,)
    return first, f"labelled public records of {training.public_source}"


def _training(recipe: Recipe) -> TrainingSection:
    section = recipe.section("training")
    assert isinstance(section, TrainingSection)
    return section
