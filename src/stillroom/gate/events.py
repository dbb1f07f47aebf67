"""What happened, in stable words: small records that any accountant, now or later, can price.

Kinds and versions never change their meaning; a new parameter is a new version; an unknown kind
is refused. Records go to and from JSON by name, and no name is ever imported from data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stillroom.documents import LARGEST_COUNT, exact
from stillroom.documents import count as whole
from stillroom.errors import BadInput, UnsupportedEvent
from stillroom.gate import renyi
from stillroom.gate.entity_events import FiniteEvent
from stillroom.gate.event_base import ROUNDING_VARIANCE as ROUNDING_VARIANCE
from stillroom.gate.event_base import Event as Event
from stillroom.gate.event_base import Line as Line
from stillroom.gate.rounding import down, root_down, up
from stillroom.vocabulary import Norm, Pair, Relation, Sensitivity

if TYPE_CHECKING:
    from stillroom.gate.loss_distributions import Composer

GEOMETRIC, LOGARITHMIC = "geometric", "logarithmic"
"""How the number of tries of a selection is spread (Papernot, Steinke 2022)."""


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Discrete Gaussian noise on every coordinate of an integer vector."""

    kind = "discrete-gaussian"
    norms = (Norm.UNIT_STEPS, Norm.L2_SQUARED, Norm.CONTRIBUTION_SQUARED)
    sigma_squared: Fraction
    coordinates: int
    sensitivity: Sensitivity

    def distance_squared(self, pair: Pair) -> Fraction | None:
        """How far the pair can move the vector; None where nothing is proven."""
        bound = self.bounds.get(pair)
        if bound is None:
            return None
        # A term that changes can swing from one end of its ball to the other (theory.md#diameter).
        swings = (
            self.sensitivity.norm is Norm.CONTRIBUTION_SQUARED and pair.relation is Relation.CHANGE
        )
        return 4 * bound if swings else bound

    @property
    def _exact(self) -> bool:
        """Whether the exact discrete law applies; else the Gaussian of E3 does."""
        return self.sensitivity.norm is Norm.UNIT_STEPS

    def curve(self, pair: Pair) -> renyi.Curve:
        distance = self.distance_squared(pair)
        # The same law as the PLD prices, so that the two figures can be compared.
        variance = self.sigma_squared - (0 if self._exact else ROUNDING_VARIANCE)
        if distance is None or variance <= 0:
            return renyi.INFINITE
        return renyi.gaussian(distance, variance)

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        distance = self.distance_squared(pair)
        assert distance is not None  # the curve is finite
        if self._exact:
            composer.unit_steps(self.sigma_squared, distance, count)
        else:
            composer.gaussian(self.sigma_squared - ROUNDING_VARIANCE, distance, count)


@dataclass(frozen=True)
class SampledGaussianEvent(Event):
    """Discrete Gaussian noise on a sum over a Poisson sample of the units."""

    kind = "poisson-sampled-discrete-gaussian"
    norms = (Norm.CONTRIBUTION_SQUARED,)
    rate: Fraction
    sigma_squared: Fraction
    coordinates: int
    sensitivity: Sensitivity

    def _multiplier(self, pair: Pair) -> float:
        """Noise over sensitivity for the Gaussian of E3, rounded down."""
        norm_squared = self.bounds[pair]
        if norm_squared == 0:
            return math.inf
        return root_down((self.sigma_squared - ROUNDING_VARIANCE) / norm_squared)

    def curve(self, pair: Pair) -> renyi.Curve:
        covered = self.sigma_squared > ROUNDING_VARIANCE and up(self.rate) < 1
        if pair not in self.bounds or not covered:
            return renyi.INFINITE
        change = pair.relation is Relation.CHANGE
        return renyi.sampled_gaussian(up(self.rate), self._multiplier(pair), change=change)

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        composer.sampled(up(self.rate), self._multiplier(pair), pair.relation, count)


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """Discrete Laplace noise on every coordinate of an integer vector."""

    kind = "discrete-laplace"
    norms = (Norm.L1,)
    samples_each = 8  # up to eight base-256 digits, counted as samples of their own
    scale: Fraction
    coordinates: int
    sensitivity: Sensitivity

    def curve(self, pair: Pair) -> renyi.Curve:
        distance = self.bounds.get(pair)
        return renyi.INFINITE if distance is None else renyi.pure(up(distance / self.scale))

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        composer.laplace(self.scale, self.coordinates, self.bounds[pair], count)


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

    @property
    def _other(self) -> Fraction:
        """The probability of each answer that is not the truth."""
        return (1 - self.keep) / (self.classes - 1)

    def curve(self, pair: Pair) -> renyi.Curve:
        if pair not in self.bounds:
            return renyi.INFINITE
        response = renyi.response(up(self.keep), down(self._other), self.classes)
        return renyi.times(response, math.ceil(self.bounds[pair]))

    def compose(self, composer: Composer, pair: Pair, count: int) -> None:
        # dp_accounting's own noise parameter is k (1 - keep) / (k - 1).
        noise = down(self.classes * self._other)
        composer.response(noise, self.classes, math.ceil(self.bounds[pair]) * count)


@dataclass(frozen=True)
class ExponentialEvent(Event):
    """One candidate of a public list, chosen by the exponential mechanism.

    Each entry of the value that changes to any other moves the log-ratios of the candidates within
    a range of `epsilon`; the sensitivity says how many change.
    """

    kind = "exponential-choice"
    norms = (Norm.CHOICES,)
    epsilon: Fraction
    sensitivity: Sensitivity

    def curve(self, pair: Pair) -> renyi.Curve:
        changed = self.bounds.get(pair)
        return renyi.INFINITE if changed is None else renyi.bounded_range(self.epsilon * changed)


@dataclass(frozen=True)
class SelectionEvent(Event):
    """The best of a secret number of runs of the same events, by a public score."""

    kind = "private-selection"
    stop: Fraction
    tries: str
    base: tuple[tuple[Event, int], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop >= 1 or self.tries not in (GEOMETRIC, LOGARITHMIC) or not self.base:
            raise ValueError("there is no such number of tries, or nothing to select from")

    @property
    def bounds(self) -> Mapping[Pair, Fraction]:
        """Those of the first event, for the pairs that all of them bound."""
        first, *others = (event.bounds for event, _ in self.base)
        return {p: bound for p, bound in first.items() if all(p in other for other in others)}

    @property
    def noise_samples(self) -> int:
        """In the mean: what tables add to delta is an expectation over the tries as well."""
        once = sum(event.noise_samples * count for event, count in self.base)
        return math.ceil(self._mean) * once

    @property
    def _mean(self) -> float:
        return renyi.mean_runs(self.stop, logarithmic=self.tries == LOGARITHMIC)

    def curve(self, pair: Pair) -> renyi.Curve:
        base = renyi.total([renyi.times(event.curve(pair), count) for event, count in self.base])
        return renyi.best_of(base, self.stop, logarithmic=self.tries == LOGARITHMIC)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "base": lines_to_json(self.base)}


@dataclass(frozen=True)
class NonPrivateEvent(Event):
    """Something left without protection; every epsilon that includes it is infinite."""

    kind = "non-private"
    reason: str


REPEATABLE = NonPrivateEvent("noise from a repeatable stream, which can be subtracted")
"""What a block of seeded noise comes to, whatever it drew (K6)."""

MOST_LINES = 1000
"""Different events of one data set; pricing takes up to some milliseconds for each."""

_KINDS: dict[tuple[str, int], type[Event]] = {
    (cls.kind, cls.version): cls
    for cls in (*Event.__subclasses__(), *FiniteEvent.__subclasses__())
    if cls is not FiniteEvent
}
"""The events above and of entities, no other: one defined elsewhere comes after this line."""


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
        what = f"an event is incomplete or malformed ({type(error).__name__})"
        raise _unreadable(what, "a guessed parameter gives a false epsilon") from None
    raise UnsupportedEvent(
        f"unknown event {str(body['kind'])[:60]!r} version {str(body['version'])[:20]!r}",
        why="an event that cannot be priced could cost anything",
        remedy="read it with the version of stillroom that wrote it, or a newer one",
    )


def _unreadable(what: str, why: str) -> UnsupportedEvent:
    return UnsupportedEvent(what, why=why, remedy="restore the original record")


def _field(name: str, body: Mapping[str, Any]) -> Any:
    if name == "sensitivity":
        bounds = {Pair.parse(p): exact(b) for p, b in body["sensitivity"].items()}
        return Sensitivity(Norm(body["norm"]), bounds)
    if name in ("coordinates", "classes", "honest"):
        return whole(body[name])
    if name in ("reason", "tries"):
        return str(body[name])
    if name == "base":
        # Looked at before it is followed: a stranger's file could nest them without end.
        if any(part["kind"] == SelectionEvent.kind for part in body[name]):
            raise ValueError("a selection among selections is not priced")
        return tuple(lines_from_json(body[name]))
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
        what = f"the events are no list, or a list of more than {MOST_LINES}"
        raise _unreadable(what, "each of them has to be priced")
    lines = [(event_from_json(body), body.get("count")) for body in bodies]
    for event, count in lines:
        if type(count) is not int or not 1 <= count <= LARGEST_COUNT:
            raise _unreadable(
                f"a {event.kind} event has no count of at least 1",
                "a missing or negative count would lower the price of the others",
            )
    return lines
