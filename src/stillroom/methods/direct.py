"""Direct: a model trained on the sensitive records themselves, by DP-SGD.

Abadi et al. 2016, Algorithm 1, with the gate's exact noise: on a linear layer over fixed public
features, with the closed-form clipping of an outer product and integer sums; or on a whole network,
whose gradients Opacus clips. At rate 1 it is full-batch gradient descent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from stillroom.gate import GaussianSum
from stillroom.gate.calibration import smallest_sigma
from stillroom.methods.plan_numbers import check_plan
from stillroom.private import Clip, LinearRecords
from stillroom.private.network_clip import NetworkClip
from stillroom.public import Descent
from stillroom.public.descent import Gradient
from stillroom.vocabulary import (
    RECORD,
    Bounded,
    Integers,
    OpenGate,
    Pair,
    Sanitised,
    SecretSample,
    Unit,
)


@dataclass(frozen=True)
class Direct:
    """Everything the training needs to know beforehand; all of it public.

    Args:
        steps: how many noisy gradient sums are drawn.
        rate: the share of the records in a step, an exact fraction.
        clip: the largest norm of one record's gradient.
        public_size: the declared number of records; only the length of a step depends on it.
        learning_rate: the length of a step.
        momentum: how much of the last step goes on.
        average_from: from which step on weights are averaged; None for the last ones.
        unit: whose gradient is clipped as one.

    Raises:
        BadInput: a number is out of range.
    """

    steps: int
    rate: Fraction
    clip: Clip | NetworkClip
    public_size: int
    learning_rate: float = 8.0
    momentum: float = 0.9
    average_from: int | None = None
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", Fraction(self.rate))
        checks = {
            "steps": self.steps >= 1,
            "rate": 0 < self.rate <= 1,
            "public_size": self.public_size >= 1,
            "learning_rate": 0 < self.learning_rate < float("inf"),
            "momentum": 0 <= self.momentum < 1,
            "average_from": self.average_from is None or 0 <= self.average_from < self.steps,
        }
        check_plan(self, checks)

    @property
    def divisor(self) -> float:
        """The declared size of a batch, never the real one (E5)."""
        return float(self.rate * self.public_size)

    def mechanism(self, width: int, multiplier: Fraction) -> GaussianSum:
        """The way through the gate: noise of `multiplier` clips on a sum of that width."""
        sigma = multiplier * self.clip.steps
        return GaussianSum(sigma, width, self.clip.squared_norm, self.rate, self.unit)

    def smallest_multiplier(
        self, width: int, epsilon: float, delta: float, pair: Pair = RECORD
    ) -> Fraction:
        """The least noise, in thousandths of the clip, whose whole training fits epsilon."""
        return smallest_sigma(
            lambda multiplier: self.mechanism(width, multiplier).lines(self.steps),
            epsilon,
            delta,
            pair,
        )


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


def train(
    gate: OpenGate,
    records: LinearRecords,
    plan: Direct,
    on_step: Callable[[int], None] = lambda step: None,
    public: PublicHelp | None = None,
) -> Descent:
    """Train on the records through a gate that was paid for `plan.steps` sums.

    A run that was cut off goes on where it was: the answers it had paid for are replayed, and a
    step that was lost stays lost (L2).

    Guarantee: one record, added, removed or changed, at the price of the gate's block.
    Assumes: `records` has the features the weights will be used with.

    Args:
        gate: an open gate for `plan.mechanism(...)`.
        records: the sensitive records.
        plan: the numbers.
        on_step: told after each step, for progress.
        public: labelled public records that help.

    >>> import tempfile
    >>> from stillroom.data import digits
    >>> from stillroom.features import pixels
    >>> from stillroom.gate import Budget, Gate, Ledger
    >>> data = digits()
    >>> records = LinearRecords(pixels(data.x), data.y, classes=10)
    >>> plan = Direct(steps=20, rate="1/2", clip=Clip("1/2"), public_size=1800)
    >>> path = tempfile.mkdtemp() + "/ledger.sqlite"
    >>> ledger = Ledger.create(path, ids=data.ids, purpose="benchmark")
    >>> ledger.set_budget(Budget(epsilon=2, delta=1e-5), reason="an example")
    >>> noise = plan.smallest_multiplier(records.width, epsilon=2, delta=1e-5)
    >>> gate = Gate(ledger, ids=data.ids).reserve(plan.mechanism(records.width, noise), 20)
    >>> weights = train(gate, records, plan).result()
    >>> bool(((pixels(data.x) @ weights.T).argmax(axis=1) == data.y).mean() > 0.7)
    True
    """
    assert isinstance(plan.clip, Clip)
    clip = plan.clip
    layer = layer_of(plan, records.classes, records.width // records.classes, public)
    descend(
        gate,
        layer,
        lambda secret, step: records.clipped_sum(layer.weights, clip, secret),
        plan,
        on_step,
    )
    return layer


def layer_of(plan: Direct, classes: int, features: int, public: PublicHelp | None) -> Descent:
    """The layer before its first private step; nothing sensitive is looked at."""
    assert isinstance(plan.clip, Clip)
    layer = Descent(
        np.zeros((classes, features), np.float32),
        unit=plan.clip.unit,
        divisor=plan.divisor,
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

    def step(self, noisy: Sanitised[Integers]) -> None:
        """One step against a noisy gradient sum."""


def descend(
    gate: OpenGate,
    layer: Layer,
    clipped_sum: Callable[[SecretSample | None, int], Bounded],
    plan: Direct,
    on_step: Callable[[int], None],
) -> None:
    """Algorithm 1: sample, clip and sum, add noise, step; what was paid for before is replayed."""
    for noisy in gate.earlier():
        layer.step(noisy)
    planned = gate.count
    while gate.left:
        step = planned - gate.left + 1  # counted before a sample uses it up
        secret = gate.poisson() if plan.rate < 1 else None
        bounded = clipped_sum(secret, step)
        noisy = gate.release(bounded)
        layer.step(noisy)
        on_step(step)
