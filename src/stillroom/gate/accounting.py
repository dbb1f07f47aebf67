"""Events to guarantees: PLD by dp_accounting, RDP beside it, the tightest sound one certified.

Every rounding is pessimistic: parameters before pricing, delta for what sampling tables and
Fourier transforms may hide, epsilon after. A loss that is not a number is an error.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from stillroom.errors import NumericalDoubt
from stillroom.gate import renyi
from stillroom.gate.events import ROUNDING_VARIANCE as ROUNDING_VARIANCE
from stillroom.gate.events import Event, Line
from stillroom.gate.rounding import down, up
from stillroom.gate.sampling import TABLE_ERROR
from stillroom.vocabulary import Guarantee, Pair, check_delta

if TYPE_CHECKING:
    from stillroom.gate.loss_distributions import Composed

DELTAS = (1e-5, 1e-6, 1e-8, 1e-10)
"""The deltas on every certificate (E5)."""

ROUNDING_SLACK = 2e-33
"""E3: what that rounding adds to epsilon per coordinate; 4 exp(-8 pi^2) is below 3e-34."""

ROUNDING = 1e-9
"""How far, as a share, two processors may differ in a Renyi figure: some hundred roundings."""

TOLERANCE = 0.01
"""How far discretisation may lift the PLD figure above RDP's before the two contradict."""


@dataclass(frozen=True)
class Price:
    """What a list of events costs one pair, as a function of delta.

    Args:
        pair: the unit and the relation.
        curve: the Renyi losses on `renyi.ORDERS`; infinity where nothing is proven.
        lines: the events, equal ones folded.
    """

    pair: Pair
    curve: renyi.Curve
    lines: tuple[Line, ...]

    def guarantee(self, delta: float) -> Guarantee:
        """The tightest sound epsilon at `delta`, with both accountants' figures.

        Raises:
            NumericalDoubt: the accountants contradict each other, or a figure is not a number.
        """
        return _guarantee(self, check_delta(delta))

    def epsilon(self, delta: float) -> float:
        """The certified figure alone."""
        return self.guarantee(delta).epsilon

    def range(self, delta: float) -> tuple[Guarantee, Guarantee]:
        """The smallest and the largest figures that another processor may have found at `delta`.

        Each processor is wrong by at most the delta that is set aside for its Fourier transforms.
        It states what it finds at `delta` less that much, so its figure is never below the true one
        at `delta`, and neither is ours at `delta` more than that much; the other way alike.
        """
        composed = _composed(self.lines, _twin(self.lines, self.pair))
        apart = 0.0 if composed is None else 2 * composed.hidden_delta
        low = _guarantee(self, min(check_delta(delta) + apart, math.nextafter(1.0, 0.0)))
        high = _guarantee(self, delta - apart) if delta > apart else None
        return _scaled(low, 1 - ROUNDING), _scaled(high or _nothing(self.pair, delta), 1 + ROUNDING)

    def rdp(self, delta: float) -> float:
        """The Renyi figure alone: looser, and computed at once."""
        return self._sound(lambda d: renyi.epsilon(self.curve, d), delta)

    def pld(self, delta: float) -> float | None:
        """The loss distribution's figure; None where there is none."""
        composed = _composed(self.lines, _twin(self.lines, self.pair))
        if composed is None:
            return None
        usable = delta - composed.hidden_delta
        if usable <= 0:
            return None
        pld = self._sound(composed.epsilon, usable)
        if math.isfinite(pld) and pld > (1 + TOLERANCE) * self.rdp(usable) + TOLERANCE:
            raise _doubt(f"PLD gives {pld:.6g}, more than RDP's {self.rdp(usable):.6g}")
        return pld

    def ideal(self, delta: float) -> float:
        """Epsilon for noise of the ideal law, to be told beside a certified figure; never one.

        What sampling tables may hide makes every certified figure beyond some 70 infinite (E2), and
        beyond some hundreds the Renyi orders, which begin at 2, are loose. What a paper's algorithm
        or a broken secure sum comes to is told by this figure.
        """
        figures = [renyi.epsilon(self.curve, check_delta(delta))]
        composed = _composed(self.lines, _twin(self.lines, self.pair), told=True)
        if composed is not None and delta > composed.hidden_delta:
            figures.append(composed.epsilon(delta - composed.hidden_delta))
        return min(figures)

    def _sound(self, epsilon_at: Callable[[float], float], delta: float) -> float:
        """Epsilon at `delta` for the laws really sampled, which differ a little from the ideal.

        Tables within t of their law cost delta (1 + e^epsilon) t (E2).
        """
        samples = sum(event.noise_samples * count for event, count in self.lines)
        if not samples:
            return math.nextafter(epsilon_at(delta), math.inf)
        largest = math.exp(min(700.0, epsilon_at(delta / 2)))
        tail = up(samples * TABLE_ERROR * (1 + Fraction(up(largest))))
        if tail > delta / 2:
            return math.inf
        ideal = epsilon_at(down(Fraction(delta) - Fraction(tail)))
        return math.nextafter(ideal + ROUNDING_SLACK * samples, math.inf)


@lru_cache(maxsize=4096)
def _guarantee(cost: Price, delta: float) -> Guarantee:
    rdp, pld = cost.rdp(delta), cost.pld(delta)
    if math.isnan(rdp) or (pld is not None and math.isnan(pld)):
        raise _doubt("an accountant returned NaN")
    if pld is None or rdp < pld:
        return Guarantee(cost.pair, rdp, delta, "RDP", {"PLD": pld, "RDP": rdp})
    return Guarantee(cost.pair, pld, delta, "PLD", {"PLD": pld, "RDP": rdp})


def _nothing(pair: Pair, delta: float) -> Guarantee:
    return Guarantee(pair, math.inf, delta, "none", {"PLD": math.inf, "RDP": math.inf})


def _scaled(guarantee: Guarantee, factor: float) -> Guarantee:
    figures = {who: e and e * factor for who, e in guarantee.by_accountant.items()}
    return replace(guarantee, epsilon=guarantee.epsilon * factor, by_accountant=figures)


def fold(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Equal events counted together, in a stable order."""
    counts: Counter[Event] = Counter()
    for event, count in lines:
        counts[event] += count
    return tuple(sorted(counts.items(), key=lambda line: repr(line[0])))


def price(lines: Iterable[Line], pair: Pair) -> Price:
    """What the lines cost one pair.

    >>> from stillroom.gate.mechanisms import NoisyVotes
    >>> from stillroom.vocabulary import RECORD
    >>> votes = NoisyVotes(teachers=250, classes=10, sigma=40)
    >>> round(price(votes.lines(2000), RECORD).epsilon(1e-5), 2)
    7.51
    """
    return _price(fold(lines), pair)


@lru_cache(maxsize=1024)
def _price(folded: tuple[Line, ...], pair: Pair) -> Price:
    curve = renyi.total([renyi.times(_curve(event, pair), count) for event, count in folded])
    return Price(pair, curve, folded)


def pairs_of(lines: Iterable[Line], unproven: Collection[Pair] = ()) -> list[Pair]:
    """The pairs for which every line has a proven sensitivity, without the `unproven` ones."""
    proven = [set(event.bounds) for event, _ in lines]
    return sorted(set.intersection(*proven) - set(unproven)) if proven else []


@lru_cache(maxsize=1024)
def _curve(event: Event, pair: Pair) -> renyi.Curve:
    return event.curve(pair)


def _twin(lines: tuple[Line, ...], pair: Pair) -> Pair:
    """A pair whose bounds are the same in every line: one distribution serves both."""

    def bounds(of: Pair) -> list[Fraction | None]:
        return [event.bounds.get(of) for event, _ in lines]

    alike = [
        p for p in pairs_of(lines) if p.relation is pair.relation and bounds(p) == bounds(pair)
    ]
    return min(alike, default=pair)


@lru_cache(maxsize=256)
def _composed(lines: tuple[Line, ...], pair: Pair, *, told: bool = False) -> Composed | None:
    """The composed privacy loss distribution; None where there is none to compute."""
    # Loading dp_accounting takes a second, which looking at a ledger need not wait for.
    from stillroom.gate import loss_distributions

    rough = renyi.epsilon(price(lines, pair).curve, 1e-10)
    largest = loss_distributions.LARGEST_TOLD if told else loss_distributions.LARGEST_EPSILON
    if not rough <= largest:
        return None
    composer = loss_distributions.Composer(rough, sum(count for _, count in lines))
    try:
        for event, count in lines:
            event.compose(composer, pair, count)
        return composer.composed()
    except loss_distributions.Unaffordable:
        return None


def _doubt(what: str) -> NumericalDoubt:
    return NumericalDoubt(
        what,
        where="accounting",
        why="two accountants of the same events must agree in order; one of them is wrong here",
        remedy="report the events; until then use a larger delta or more noise",
    )
