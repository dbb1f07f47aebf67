"""What happened, in stable words: small records that any accountant, now or later, can price.

Kinds and versions never change their meaning; a new parameter is a new version; an unknown kind
is refused. Records go to and from JSON by name, and no name is ever imported from data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from stillroom.documents import LARGEST_COUNT, exact
from stillroom.documents import count as whole
from stillroom.errors import BadInput, UnsupportedEvent
from stillroom.vocabulary import Norm, Pair, Relation, Sensitivity

_COUNTED = (Norm.UNIT_STEPS, Norm.CHOICES)


@dataclass(frozen=True)
class Event:
    """The root of all events."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    norms: ClassVar[tuple[Norm, ...]] = ()

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
        return 0


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Discrete Gaussian noise on every coordinate of an integer vector."""

    kind = "discrete-gaussian"
    norms = (Norm.UNIT_STEPS, Norm.L2_SQUARED, Norm.CONTRIBUTION_SQUARED)
    sigma_squared: Fraction
    coordinates: int
    sensitivity: Sensitivity

    @property
    def noise_samples(self) -> int:
        return self.coordinates

    def distance_squared(self, pair: Pair) -> Fraction | None:
        """How far the pair can move the vector; None where nothing is proven."""
        bound = self.bounds.get(pair)
        if bound is None:
            return None
        # A term that changes can swing from one end of its ball to the other (privacy.md 0.1).
        swings = (
            self.sensitivity.norm is Norm.CONTRIBUTION_SQUARED and pair.relation is Relation.CHANGE
        )
        return 4 * bound if swings else bound


@dataclass(frozen=True)
class SampledGaussianEvent(Event):
    """Discrete Gaussian noise on a sum over a Poisson sample of the units."""

    kind = "poisson-sampled-discrete-gaussian"
    norms = (Norm.CONTRIBUTION_SQUARED,)
    rate: Fraction
    sigma_squared: Fraction
    coordinates: int
    sensitivity: Sensitivity

    @property
    def noise_samples(self) -> int:
        return self.coordinates


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """Discrete Laplace noise on every coordinate of an integer vector."""

    kind = "discrete-laplace"
    norms = (Norm.L1,)
    scale: Fraction
    coordinates: int
    sensitivity: Sensitivity

    @property
    def noise_samples(self) -> int:
        # Up to eight base-256 digits each; counted as samples of their own.
        return 8 * self.coordinates


@dataclass(frozen=True)
class RandomisedResponseEvent(Event):
    """A nominal answer kept with probability `keep`, else replaced by a uniform other one."""

    kind = "randomised-response"
    norms = (Norm.CHOICES,)
    classes: int
    keep: Fraction
    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        super().__post_init__()
        # Below chance the truth is told by denial, and the loss formula would turn negative.
        if self.classes < 2 or not Fraction(1, self.classes) <= self.keep < 1:
            raise ValueError("keep must lie between chance and certainty")


@dataclass(frozen=True)
class NonPrivateEvent(Event):
    """Something left without protection; every epsilon that includes it is infinite."""

    kind = "non-private"
    reason: str


REPEATABLE = NonPrivateEvent("noise from a repeatable stream, which can be subtracted")
"""What a block of seeded noise comes to, whatever it drew (K6)."""

Line = tuple[Event, int]
"""An event and how often it happens."""

MOST_LINES = 1000
"""Different events of one data set; pricing takes up to some milliseconds for each."""

_KINDS: dict[tuple[str, int], type[Event]] = {
    (cls.kind, cls.version): cls
    for cls in (
        GaussianEvent,
        SampledGaussianEvent,
        LaplaceEvent,
        RandomisedResponseEvent,
        NonPrivateEvent,
    )
}


def event_from_json(body: Mapping[str, Any]) -> Event:
    """The event a JSON object describes.

    Raises:
        UnsupportedEvent: an unknown kind or version, a missing or unreadable field.

    >>> event_from_json({"kind": "non-private", "version": 1, "reason": "raw mean"})
    NonPrivateEvent(reason='raw mean')
    """
    try:
        cls = _KINDS.get((body["kind"], body["version"]))
        if cls is not None:
            return cls(**{part.name: _field(part.name, body) for part in fields(cls)})
    except (AttributeError, BadInput, LookupError, TypeError, ValueError) as error:
        raise UnsupportedEvent(
            f"an event is incomplete or malformed ({type(error).__name__})",
            why="a guessed parameter gives a false epsilon",
            remedy="restore the original record",
        ) from None
    raise UnsupportedEvent(
        f"unknown event {str(body['kind'])[:60]!r} version {str(body['version'])[:20]!r}",
        why="an event that cannot be priced could cost anything",
        remedy="read it with the version of stillroom that wrote it, or a newer one",
    )


def _field(name: str, body: Mapping[str, Any]) -> Any:
    if name == "sensitivity":
        bounds = {Pair.parse(p): exact(b) for p, b in body["sensitivity"].items()}
        return Sensitivity(Norm(body["norm"]), bounds)
    if name in ("coordinates", "classes"):
        return whole(body[name])
    if name == "reason":
        return str(body[name])
    return exact(body[name])


def lines_to_json(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Lines as JSON objects with a `count`."""
    return [{**event.to_json(), "count": count} for event, count in lines]


def lines_from_json(bodies: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Lines back from JSON objects.

    Raises:
        UnsupportedEvent: as `event_from_json`; or a line has no count, or there are too many.
    """
    if not isinstance(bodies, list) or len(bodies) > MOST_LINES:
        raise UnsupportedEvent(
            f"the events are no list, or a list of more than {MOST_LINES}",
            why="each of them has to be priced",
            remedy="restore the original record",
        )
    lines = [(event_from_json(body), body.get("count")) for body in bodies]
    for event, count in lines:
        if type(count) is not int or not 1 <= count <= LARGEST_COUNT:
            raise UnsupportedEvent(
                f"a {event.kind} event has no count of at least 1",
                why="a missing or negative count would lower the price of the others",
                remedy="restore the original record",
            )
    return lines
