"""Broken twins: each looks like its real mechanism and breaks the promise in one way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privacy.conformance import Case, check_grid, check_law, check_price, check_rows
from stillroom.gate import (
    ExponentialChoice,
    Mechanism,
    NoisyCounts,
    PrivateSelection,
    RandomisedResponse,
    ResponseShare,
    UnaryEncoding,
)
from stillroom.gate.entity_events import TruncatedGeometricEvent, UnaryEncodingEvent
from stillroom.gate.events import ExponentialEvent, SelectionEvent
from stillroom.gate.passage import Passage
from stillroom.vocabulary import Norm, Sensitivity


@dataclass(frozen=True)
class Twin(Mechanism):
    """Does what the real mechanism does, until a subclass breaks it."""

    real: Mechanism

    def __getattr__(self, name):
        return getattr(self.real, name)

    @property
    def sensitivity(self):
        return self.real.sensitivity

    @property
    def coordinates(self):
        return self.real.coordinates

    @property
    def rate(self):
        return self.real.rate

    @property
    def one_row(self):  # type: ignore[override]
        return self.real.one_row

    def lines(self, count):
        return self.real.lines(count)

    def draw(self, entropy, value, allowance):
        return self.real.draw(entropy, value, allowance)

    def check(self, value):
        self.real.check(value)

    def answered(self, answers):
        return self.real.answered(answers)

    def describe(self):
        return self.real.describe()

    @property
    def name(self):  # type: ignore[override]
        return self.real.name


class HalfNoise(Twin):
    """Draws half the noise it charges for."""

    def draw(self, entropy, value, allowance):
        return self._weaker(self.real).draw(entropy, value, allowance)

    def _weaker(self, real):
        if isinstance(real, PrivateSelection):
            return dataclasses.replace(real, base=self._weaker(real.base))
        if isinstance(real, UnaryEncoding):
            return dataclasses.replace(real, flip=real.flip / 2)
        if isinstance(real, (RandomisedResponse, ResponseShare)):
            return dataclasses.replace(real, keep=(1 + real.keep) / 2)
        if isinstance(real, ExponentialChoice):
            return dataclasses.replace(real, steepness=2 * real.steepness)
        noise = next(name for name in ("scale", "share", "sigma") if hasattr(real, name))
        return dataclasses.replace(real, **{noise: getattr(real, noise) / 2})


class HalvedSensitivity(Twin):
    """Charges as if one unit could move the value half as far."""

    def lines(self, count):
        return [(self._cheaper(event), n) for event, n in self.real.lines(count)]

    def _cheaper(self, event):
        if hasattr(event, "keep"):
            # A nominal answer has no half move: the same lie is a smaller truth probability.
            return dataclasses.replace(event, keep=(event.keep + Fraction(1, event.classes)) / 2)
        if isinstance(event, UnaryEncodingEvent):
            return dataclasses.replace(event, flip=(event.flip + Fraction(1, 2)) / 2)
        if isinstance(event, TruncatedGeometricEvent):
            return dataclasses.replace(event, scale=2 * event.scale)
        if isinstance(event, ExponentialEvent):
            return dataclasses.replace(event, epsilon=event.epsilon / 2)
        if isinstance(event, SelectionEvent):
            cheaper = tuple((self._cheaper(part), n) for part, n in event.base)
            return dataclasses.replace(event, base=cheaper)
        proven = event.sensitivity
        squared = proven.norm in (Norm.L2_SQUARED, Norm.CONTRIBUTION_SQUARED)
        bounds = {pair: bound / (4 if squared else 2) for pair, bound in proven.bounds.items()}
        if proven.norm is Norm.UNIT_STEPS:
            bounds = {pair: Fraction(int(bound)) for pair, bound in bounds.items()}
        return dataclasses.replace(event, sensitivity=Sensitivity(proven.norm, bounds))


class RecordsInCellsOfTheirOwn(Twin):
    """Charges a unit's m records as m counts that move by one each; they can share one (K1b)."""

    def lines(self, count):
        (event, n), *rest = self.real.lines(count)
        if not isinstance(self.real, NoisyCounts) or self.real.records == 1:
            return HalvedSensitivity(self.real).lines(count)  # nothing to share
        bounds = {pair: b / self.real.records for pair, b in event.sensitivity.bounds.items()}
        cheaper = Sensitivity(Norm.UNIT_STEPS, bounds)
        return [(dataclasses.replace(event, sensitivity=cheaper), n), *rest]


class DataDependentGrid(Twin):
    """Rounds its answers to a grid whose step is the largest count."""

    def draw(self, entropy, value, allowance):
        step = max(2, int(value.max()))
        return step * (self.real.draw(entropy, value, allowance) // step)


class FloatNoise(Twin):
    """Adds floating-point noise."""

    def draw(self, entropy, value, allowance):
        drawn = self.real.draw(entropy, value, allowance)
        return drawn + np.random.default_rng().normal(0, 1e-3, drawn.shape)


class DrawsWithoutRow(Passage):
    """Draws noise first and writes the draw's row afterwards."""

    def _begin(self, count):
        self.mechanism.draw(
            self._entropy, np.zeros((count, self.mechanism.coordinates), int), count
        )
        return super()._begin(count)


def _with(twin: type[Twin]) -> Callable[[Case], Case]:
    return lambda case: dataclasses.replace(case, mechanism=twin(case.mechanism))


TWINS = {
    "half noise": (_with(HalfNoise), check_law),
    "sensitivity halved": (_with(HalvedSensitivity), check_price),
    "records in cells of their own": (_with(RecordsInCellsOfTheirOwn), check_price),
    "data-dependent grid": (_with(DataDependentGrid), check_grid),
    "float noise": (_with(FloatNoise), check_grid),
    "a draw without its row": (
        lambda case: dataclasses.replace(case, passage=DrawsWithoutRow),
        check_rows,
    ),
}
