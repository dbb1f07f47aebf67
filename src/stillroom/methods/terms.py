"""What a recipe fixes about its certificate: stated when it is written, derived again by `verify`.

Nothing here looks at a record. What else the statements rest on are `facts` that the method
observed; they stand on the certificate as the releaser's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stillroom.methods.costs import plan_of
from stillroom.methods.recipe import Recipe
from stillroom.private.network_clip import ASSUMPTIONS as OF_NETWORKS
from stillroom.release.sections.controls import Control
from stillroom.release.sections.published import Claim
from stillroom.vocabulary import Pair, Relation, Unit

Facts = Mapping[str, bool | int | float | str]

OF_ALL = {
    "unique ids": "checked: by the data set",
    "noise": "checked: operating-system randomness, recorded with the block",
    "public size": "assumed: declared in the recipe, not counted in the data",
}
OF_LINEAR_LAYERS = {
    "integer sums": "checked: every term's norm is compared with the clip in whole numbers",
    "features of one record": "checked: no statistic over several records, each computed by itself",
}
SHOWN_SAMPLES = 100
"""Pictures of the sketch on a card."""
FROM_SKETCH = "samples of the sketch, which came through the gate"
FROM_PUBLIC_PART = "the public part of the data"
OWN_THEOREM = Claim(None, "none: DP-SGD has its own theorem")
STUDENT_OF_SKETCH = "a student that saw only samples of the sketch, labelled by the teacher"
UNLEARNT = (
    "The noisy gradients cannot be told from noise alone: the sensitive records have taught the "
    "model next to nothing. More records, a larger clip, fewer steps or a larger epsilon may help."
)
LARGE_EPSILON = 10.0
PERSONS = (
    "The records name persons, and this release protects single records only: a person with "
    "several records is protected less."
)


@dataclass(frozen=True)
class Terms:
    """Everything about a certificate that its recipe and the observed facts decide.

    Args:
        about: what kind of model is released.
        assumptions: what the figures rest on, beside what holds for every method.
        knowledge: what public things were used.
        claim: what the method's paper publishes, and whether it holds.
        controls: the models it is compared with, in order, without their accuracies.
        teacher: what kind of model it is measured beside, where it is a compressed one.
        warnings: what a reader must see.
        facts: the names of the facts these statements rest on.
    """

    about: str
    assumptions: Mapping[str, str]
    knowledge: tuple[str, ...]
    claim: Claim
    controls: tuple[Control, ...] = ()
    teacher: str | None = None
    warnings: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset({"persons", "learnt"})


def terms_of(recipe: Recipe, facts: Facts, paid: int) -> Terms:
    """The terms of a recipe.

    Args:
        recipe: the recipe.
        facts: what the method observed; `persons`: whether the records name persons.
        paid: how many answers of the first mechanism were paid for.
    """
    if recipe.method == "rona":
        from stillroom.methods.rona.terms import rona_terms

        return rona_terms(recipe, facts, paid)
    return direct_terms(recipe, facts, paid)


def direct_terms(recipe: Recipe, facts: Facts, paid: int) -> Terms:
    """The terms of method direct."""
    linear = recipe.training.model == "linear"
    about = linear_about(recipe) if linear else f"network `{recipe.training.model}`"
    knowledge = linear_knowledge(recipe) if linear else _network_knowledge(recipe)
    if recipe.student is not None:
        about = f"network `{recipe.student.model}`, a student of a {about}"
        knowledge = (*knowledge, STUDENT_OF_SKETCH)
    return Terms(
        about=about,
        assumptions=OF_LINEAR_LAYERS if linear else OF_NETWORKS,
        knowledge=knowledge,
        claim=OWN_THEOREM,
        warnings=(*promise_warnings(recipe, facts), *training_warnings(recipe, facts, paid)),
    )


def unproven_by(recipe: Recipe) -> tuple[Pair, ...]:
    """What the recipe's split does not support: a changed label can move a record to the open."""
    changes = tuple(Pair(unit, Relation.CHANGE) for unit in Unit)
    return changes if recipe.data.sensitive_classes else ()


def linear_about(recipe: Recipe) -> str:
    """What a linear layer over features is called."""
    from stillroom.features import FEATURES

    name = recipe.features.name
    return f"linear layer over {'fixed ' if name in FEATURES else ''}features `{name}`"


def linear_knowledge(recipe: Recipe, *, labelled: bool = False) -> tuple[str, ...]:
    """The public things that a linear layer's features rest on.

    Args:
        recipe: the recipe.
        labelled: whether labelled public records are there to help.
    """
    part, training = recipe.features, recipe.training
    known = f"fixed features `{part.name}`, fitted on nothing"
    if part.size is not None:
        known = f"a public backbone, `{part.name}`, at {part.size} pixels"
    elif part.name == "auxiliary":
        known = "the auxiliary teacher, a network trained on the public part"
    told = [known]
    if labelled and (training.public_share or training.public_epochs):
        told.append("labels of public records, beside the sensitive ones")
    if part.components is not None:
        told.append(f"{part.components} directions of the features, fitted on {fitted_on(recipe)}")
    return tuple(told)


def fitted_on(recipe: Recipe) -> str:
    """What directions of features are fitted on, in words."""
    source = recipe.features.fitted_on
    named = {"sketch": FROM_SKETCH, "public": FROM_PUBLIC_PART}
    return named.get(str(source), f"the public data set {source}")


def promise_warnings(recipe: Recipe, facts: Facts) -> tuple[str, ...]:
    """A word where the promise is weaker than a reader may think."""
    unit, declared = recipe.data.unit, recipe.data.public_size
    large_epsilon = (
        f"An epsilon above {LARGE_EPSILON:g} promises hardly anything for one {unit}: whoever "
        "knows all the others may be nearly sure whether it was used."
    )
    large_delta = (
        f"Delta {recipe.privacy.delta:g} is above one in {declared:,}, the declared number of "
        f"{unit}s: a method that publishes one of them at random would keep that promise."
    )
    told = {
        PERSONS: facts["persons"] and unit == "record",
        large_epsilon: recipe.privacy.epsilon > LARGE_EPSILON and recipe.mode == "certified",
        large_delta: recipe.privacy.delta * declared > 1,
    }
    return tuple(text for text, holds in told.items() if holds)


def training_warnings(recipe: Recipe, facts: Facts, paid: int) -> tuple[str, ...]:
    """A word where the budget ended early, and where the model has not learnt."""
    planned = plan_of(recipe).steps
    early = (
        f"The budget ended early: {paid} of {planned} planned steps were paid for and taken, none "
        "after them."
    )
    told = {early: paid < planned, UNLEARNT: not facts["learnt"]}
    return tuple(text for text, holds in told.items() if holds)


def stated_by(recipe: Recipe) -> dict[str, Any]:
    """The fields of a certificate that are the recipe's own words."""
    return {
        "method": recipe.method,
        "mode": recipe.mode,
        "unit": Unit(recipe.data.unit),
        "delta": recipe.privacy.delta,
        "asked": recipe.privacy.epsilon,
        "tuning": recipe.privacy.tuning,
    }


def _network_knowledge(recipe: Recipe) -> tuple[str, ...]:
    part = recipe.training
    told = [f"the public weights {part.weights}" if part.weights else "random first weights"]
    if part.public_source is not None:
        told.append(f"labelled public records of {part.public_source}")
    return tuple(told)
