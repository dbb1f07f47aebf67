"""DP-SGD as a plan: the numbers of a private training, and the loop that follows them.

Abadi et al. 2016, Algorithm 1, with the gate's exact noise: on a linear layer over public features,
with the closed-form clipping of an outer product and integer sums; or on a whole network, whose
gradients Opacus clips. At rate 1 it is full-batch gradient descent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import Field

from stillroom.errors import BadInput
from stillroom.gate import GaussianSum
from stillroom.private import Clip, LinearRecords
from stillroom.private.network_clip import NetworkClip
from stillroom.public import Descent
from stillroom.public.descent import Gradient
from stillroom.recipe import Exact, Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_DRAWS, MOST_EPOCHS, MOST_VIEWS
from stillroom.vocabulary import Bounded, Integers, OpenGate, Sanitised, SecretSample, Unit

SMALLEST_RATE = Fraction(1, 10**5)
MOST_SMALL_STEPS = 20_000
FOR_NETWORKS = {"weights", "ema", "views", "shift", "mirror", "ghost", "public_source"}


class TrainingSection(Section):
    """Private training: gradient descent on a linear layer, or on a whole network."""

    model: str = Field(
        "linear", description="linear: over the features; else a network, over the pictures"
    )
    weights: str | None = Field(
        None, description="for a network: public weights to start from, a file beside the recipe"
    )
    start_seed: Seed = Field(0, description="for a network: of its first weights and augmentation")
    steps: int = Field(60, ge=1, le=MOST_DRAWS, description="noisy gradient sums")
    rate: Exact = Field(
        Fraction(1, 2), ge=SMALLEST_RATE, le=1, description="the share of the records in a step"
    )
    clip: Exact = Field(
        Fraction(1, 2), gt=0, description="the largest norm of one record's gradient"
    )
    normalise: bool = Field(False, description="scale every gradient to the clip")
    class_weights: list[Annotated[Exact, Field(gt=0, le=1)]] | None = Field(
        None,
        min_length=2,
        description="what a record's gradient is multiplied by before the clip, one number per "
        "class, at most 1; public, never counted in the data",
    )
    learning_rate: float = Field(8.0, gt=0, le=LARGEST_RATE, description="length of a step")
    momentum: float = Field(0.9, ge=0, lt=1, description="how much of the last step goes on")
    average_from: int | None = Field(
        None, ge=0, le=MOST_DRAWS, description="average the weights after this step"
    )
    ema: float | None = Field(
        None, ge=0, lt=1, description="for a network: how slowly averaged weights follow"
    )
    views: int = Field(
        1, ge=1, le=MOST_VIEWS, description="for a network: augmented views of each record"
    )
    shift: int = Field(0, ge=0, le=4096, description="for a network: the farthest shift of a view")
    mirror: bool = Field(False, description="for a network: whether views may be mirrored")
    ghost: bool = Field(False, description="for a network: ghost clipping; pays for wide layers")
    public_source: str | None = Field(
        None, description="for a network: labelled public records, a known or imported name"
    )
    public_epochs: int = Field(
        0,
        ge=0,
        le=MOST_EPOCHS,
        description="where there are labelled public records: passes over them before all steps",
    )
    public_share: float = Field(
        0.5, ge=0, lt=1, description="of labelled public records: their gradient's part of a step"
    )

    @property
    def linear(self) -> bool:
        """Whether a linear layer over features is trained."""
        return self.model == "linear"

    def weights_of(self, classes: Sequence[str]) -> tuple[float, ...] | None:
        """One weight per class; None where all count alike.

        Raises:
            BadInput: there are more or fewer than classes.
        """
        if self.class_weights is None:
            return None
        if len(self.class_weights) != len(classes):
            raise BadInput(
                f"{len(self.class_weights)} class weights for {len(classes)} classes",
                where="training.class_weights",
                why="each record's gradient is multiplied by the weight of its class",
                remedy=f"give one number for each of: {', '.join(classes)}",
            )
        return tuple(float(weight) for weight in self.class_weights)

    @property
    def clipping(self) -> Clip | NetworkClip:
        """The largest norm of one gradient, and the grid it is summed on."""
        return Clip(self.clip, self.normalise) if self.linear else NetworkClip(self.clip)

    def divisor(self, declared_size: int) -> float:
        """The declared size of a batch, never the real one (E5)."""
        return float(self.rate * declared_size)

    def mechanism(self, width: int, multiplier: Fraction, unit: Unit = Unit.RECORD) -> GaussianSum:
        """Noise of `multiplier` clips on a sum of that width."""
        clip = self.clipping
        return GaussianSum(multiplier * clip.steps, width, clip.squared_norm, self.rate, unit)

    def misfits(self) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        misplaced = sorted(FOR_NETWORKS & self.model_fields_set)
        return {
            f"training.{', training.'.join(misplaced)}: only for a network": self.linear
            and bool(misplaced),
            "training: a network has clips, not normalise; and ema, not average_from": not (
                self.linear or (not self.normalise and self.average_from is None)
            ),
            "training.class_weights: normalise makes every gradient as long as the clip, whatever "
            "it was multiplied by": self.class_weights is not None and self.normalise,
            "training.average_from: must lie below training.steps": self.average_from is not None
            and self.average_from >= self.steps,
            f"training.steps, training.rate: more than {MOST_SMALL_STEPS} steps of less than a "
            "thousandth of the records; their price takes too long to compute": (
                self.steps > MOST_SMALL_STEPS and self.rate < Fraction(1, 1000)
            ),
        }


@dataclass(frozen=True)
class PublicHelp:
    """What labelled public records add to the training of a linear layer, free of charge.

    Args:
        gradient: exact, at given weights.
        steps: along it alone, before the first private step.
        share: of the public gradient in each private step.
    """

    gradient: Gradient
    steps: int
    share: float


def train_linear(
    gate: OpenGate,
    records: LinearRecords,
    plan: TrainingSection,
    declared_size: int,
    on_step: Callable[[int], None] = lambda step: None,
    public: PublicHelp | None = None,
) -> Descent:
    """Train a linear layer through a gate that was paid for `plan.steps` sums.

    A run that was cut off goes on where it was: the gate replays the answers that were paid for,
    and a step that was lost stays lost (L2).

    Guarantee: one record, added, removed or changed, at the price of the gate's block.
    Assumes: `records` has the features the weights will be used with; the gate's answers were not
    walked through before, so a continued run opens its block again.

    Args:
        gate: an open gate for `plan.mechanism(...)`.
        records: the sensitive records.
        plan: the numbers.
        declared_size: the declared number of records; only the length of a step depends on it.
        on_step: told after each step, for progress.
        public: labelled public records that help.

    >>> from stillroom.data import digits
    >>> from stillroom.features import pixels
    >>> from stillroom.gate import Budget, Gate, Ledger
    >>> data = digits()
    >>> records = LinearRecords(pixels(data.x), data.y, classes=10)
    >>> plan = TrainingSection.of(steps=20, rate="1/2", clip="1/2")
    >>> ledger = Ledger.in_memory(ids=data.ids, purpose="benchmark")
    >>> ledger.set_budget(Budget(epsilon=2, delta=1e-5), reason="an example")
    >>> gate = Gate(ledger, ids=data.ids).reserve(plan.mechanism(records.width, Fraction(6)), 20)
    >>> weights = train_linear(gate, records, plan, declared_size=1800).result()
    >>> bool(((pixels(data.x) @ weights.T).argmax(axis=1) == data.y).mean() > 0.7)
    True
    """
    clip = plan.clipping
    assert isinstance(clip, Clip)
    layer = linear_layer(
        plan, declared_size, records.classes, records.width // records.classes, public
    )

    def clipped_sum(secret: SecretSample | None, step: int) -> Bounded:
        return records.clipped_sum(layer.weights, clip, secret)

    descend(gate, layer, clipped_sum, plan, on_step)
    return layer


def linear_layer(
    plan: TrainingSection,
    declared_size: int,
    classes: int,
    features: int,
    public: PublicHelp | None,
) -> Descent:
    """The layer before its first private step; nothing sensitive is looked at."""
    layer = Descent(
        np.zeros((classes, features), np.float32),
        unit=plan.clipping.unit,
        divisor=plan.divisor(declared_size),
        learning_rate=plan.learning_rate,
        momentum=plan.momentum,
        average_from=plan.average_from,
        public_gradient=None if public is None else public.gradient,
        public_share=0.0 if public is None else public.share,
    )
    if public is not None:
        layer.start_publicly(public.steps)
    return layer


class Layer(Protocol):
    """What moves along noisy sums."""

    weights: npt.NDArray[Any]

    def step(self, noisy: Sanitised[Integers]) -> None:
        """One step against a noisy gradient sum."""


def descend(
    gate: OpenGate,
    layer: Layer,
    clipped_sum: Callable[[SecretSample | None, int], Bounded],
    plan: TrainingSection,
    on_step: Callable[[int], None],
) -> None:
    """Algorithm 1: sample, clip and sum, add noise, step; `on_step` is told of new steps only."""
    start = hashlib.sha256(np.ascontiguousarray(layer.weights).tobytes()).digest()
    number = 0
    while gate.ahead(1):
        number += 1
        replayed = gate.replaying

        def bounded() -> Bounded:
            step = gate.count - gate.left + 1  # counted before a sample uses it up
            return clipped_sum(gate.poisson() if plan.rate < 1 else None, step)

        layer.step(gate.answer(b"gradient sum %d from " % number + start, bounded))
        if not replayed:
            on_step(gate.count - gate.left)
