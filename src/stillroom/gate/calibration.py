"""The smallest noise for a budget, and the most answers for a noise; always the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from stillroom.errors import BadInput
from stillroom.gate.accounting import Price, price
from stillroom.gate.events import Line
from stillroom.vocabulary import Pair, check_delta, check_epsilon

SIGMA_STEPS = 1000
"""Noise is searched on a grid of thousandths."""

_MOST = 2**62

_ENDLESS = 2**20 * SIGMA_STEPS
"""So much noise that what it is added to costs next to nothing."""


def smallest_sigma(
    lines_at: Callable[[Fraction], list[Line]], epsilon: float, delta: float, pair: Pair
) -> Fraction:
    """The smallest sigma, in thousandths, whose certified epsilon is at most `epsilon`.

    Raises:
        BadInput: not even the largest noise fits.

    >>> from stillroom.gate.mechanisms import NoisyVotes
    >>> from stillroom.vocabulary import RECORD
    >>> float(smallest_sigma(lambda s: NoisyVotes(250, 10, s).lines(200), 1.0, 1e-5, RECORD))
    74.613
    """
    check_epsilon(epsilon)
    check_delta(delta)

    def cost(step: int) -> Price:
        return price(lines_at(Fraction(step, SIGMA_STEPS)), pair)

    @cache
    def certified(step: int) -> float:
        return cost(step).epsilon(delta)

    def fits(step: int) -> bool:
        return certified(step) <= epsilon

    def fits_by_rdp(step: int) -> bool:
        return cost(step).rdp(delta) <= epsilon

    # What RDP alone allows is a quick upper bound; the certified minimum lies a little below. But
    # beside other events RDP may have no room left at any noise where the certified figure has.
    squeezed = not fits_by_rdp(_ENDLESS) and fits(_ENDLESS)
    high = _first(fits if squeezed else fits_by_rdp, low=0, high=SIGMA_STEPS)
    low = high * 3 // 4
    while low and fits(low):
        low, high = low * 3 // 4, low
    return Fraction(_narrowed(certified, epsilon, low, high), SIGMA_STEPS)


def most_answers(
    lines_at: Callable[[int], list[Line]], epsilon: float, delta: float, pair: Pair
) -> int:
    """The largest number of answers whose certified epsilon is at most `epsilon`; may be 0.

    >>> from stillroom.gate.mechanisms import NoisyVotes
    >>> from stillroom.vocabulary import RECORD
    >>> most_answers(NoisyVotes(250, 10, 40).lines, 1.0, 1e-5, RECORD)
    57
    """
    check_epsilon(epsilon)
    check_delta(delta)

    def exceeds(count: int) -> bool:
        return price(lines_at(count), pair).epsilon(delta) > epsilon

    return _first(exceeds, low=0, high=64) - 1


def _narrowed(figure: Callable[[int], float], target: float, low: int, high: int) -> int:
    """The smallest step above `low` whose figure is within the target; that of `high` is.

    A figure takes up to a second, and falls nearly like a power of the noise. So the next step is
    where a power through both ends meets the target, and its neighbour; where that does not halve
    the rest, the middle.
    """
    while high - low > 1:
        width, guess = high - low, (low + high) // 2
        ends = [math.log(figure(step) / target) for step in (low, high)] if low else [math.inf]
        if not math.isfinite(ends[0]):
            # Below some noise there is no figure at all, and beside the middle nothing to learn.
            low, high = (low, guess) if figure(guess) <= target else (guess, high)
            continue
        if ends[0] > ends[1]:
            share = ends[0] / (ends[0] - ends[1])
            guess = math.ceil(low * (high / low) ** share)
        guess = min(max(guess, low + 1), high - 1)
        beside = guess - 1 if figure(guess) <= target else guess + 1
        for step in (guess, beside, (low + high) // 2):
            if low < step < high and (step in (guess, beside) or 2 * (high - low) > width):
                low, high = (low, step) if figure(step) <= target else (step, high)
    return high


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest whole number above `low` from which on `holds`; `high` is a first guess."""
    while not holds(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise BadInput(
                "no amount of noise reaches this epsilon",
                where="epsilon",
                why="the sampling tables and the delta leave no room for so small an epsilon",
                remedy="ask for a larger epsilon or a larger delta",
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
