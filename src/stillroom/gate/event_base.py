"""The root of all events: a small record that goes to JSON and knows its price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from stillroom.gate import renyi
from stillroom.vocabulary import Norm, Pair, Sensitivity

if TYPE_CHECKING:
    from stillroom.gate.loss_distributions import Composer

_COUNTED = (Norm.UNIT_STEPS, Norm.CHOICES)

ROUNDING_VARIANCE = 4
"""E3: a discrete Gaussian is a rounding of width 2 of the Gaussian of variance sigma^2 - 4."""


@dataclass(frozen=True)
class Event:
    """The root of all events."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    norms: ClassVar[tuple[Norm, ...]] = ()
    samples_each: ClassVar[int] = 1
    """Table samples per coordinate, where an event has coordinates."""

    def __post_init__(self) -> None:
        """A parameter out of range could make a price too small, negative, or take for ever."""
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Sensitivity) and value.norm not in self.norms:
                raise ValueError(f"a {self.kind} event has no sensitivity in {value.norm}")
            # The number of coordinates, or of answers, that change.
            counted = isinstance(value, Sensitivity) and value.norm in _COUNTED
            if counted and any(bound.denominator != 1 for bound in value.bounds.values()):
                raise ValueError(f"{value.norm} is a whole number")
            if isinstance(value, (int, Fraction)) and value <= 0:
                raise ValueError(f"{part.name} of a {self.kind} event must be positive")

    def to_json(self) -> dict[str, Any]:
        """A JSON object with exact numbers as text."""
        body: dict[str, Any] = {"kind": self.kind, "version": self.version}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Sensitivity):
                body["norm"] = str(value.norm)
                body["sensitivity"] = {str(p): str(b) for p, b in value.bounds.items()}
            else:
                body[part.name] = str(value) if isinstance(value, Fraction) else value
        return body

    @property
    def bounds(self) -> Mapping[Pair, Fraction]:
        """How far each pair can move the value; empty where nothing is proven."""
        proven: Sensitivity | None = getattr(self, "sensitivity", None)
        return {} if proven is None else proven.bounds

    @property
    def noise_samples(self) -> int:
        """How many table samples one such event draws, each within 2^-128 of its law (E2)."""
        return self.samples_each * getattr(self, "coordinates", 0)

    def curve(self, pair: Pair) -> renyi.Curve:
        """The Renyi losses of one such event; infinite where nothing is proven for the pair."""
        return renyi.INFINITE

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        """Add the loss distributions of `count` such events; their curve is finite.

        Raises:
            Unaffordable: there is no single pair of laws that is worst; the Renyi curve has to do.
        """
        composer.refuse()


Line = tuple[Event, int]
"""An event and how often it happens."""
