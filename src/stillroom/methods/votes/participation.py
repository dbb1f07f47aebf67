"""Who answers which question: a public lottery, and what each entity's own budget allows."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from stillroom.gate.accounting import ROUNDING_VARIANCE
from stillroom.gate.calibration import smallest_sigma
from stillroom.gate.events import GaussianEvent, Line
from stillroom.randomness import uniforms
from stillroom.recipe.entities import EntitiesSection
from stillroom.vocabulary import Integers, Norm, Pair, Sensitivity

WHOLE_WEIGHT = 64
"""Units of the heaviest vote: fine enough for shares of little noise, and for weights by budget."""
_FINE = 10_000
_SAFE = Fraction(199, 200)
"""Votes that a small budget pays for: prices of few and of many are not proportional to a hair."""


def drawn_for(entities: EntitiesSection, name: str, questions: int, kind: str) -> Integers:
    """The questions that an entity is drawn for; public, and decided before anything is asked.

    Args:
        entities: the section.
        name: of the entity.
        questions: how many there are.
        kind: of them: what is decided for tests is decided anew for votes.
    """
    if entities.participation == 1:
        return np.arange(questions, dtype=np.int64)
    places = uniforms(entities.deal_seed, "participation", kind, name, size=questions)
    return np.flatnonzero(places < float(entities.participation)).astype(np.int64)


def most_drawn(entities: EntitiesSection, questions: int, kind: str) -> int:
    """Of the entity that is drawn most often."""
    if entities.participation == 1:
        return questions
    return max(1, *(len(drawn_for(entities, n, questions, kind)) for n in entities.names))


@cache
def multiplier(epsilon: float, delta: float, pair: Pair) -> Fraction:
    """Noise over distance of one Gaussian release that costs so much, rounded up."""
    moved = Sensitivity(Norm.L2_SQUARED, {pair: Fraction(_FINE**2)})

    def lines(scale: Fraction) -> list[Line]:
        return [(GaussianEvent((scale * _FINE) ** 2 + ROUNDING_VARIANCE, 1, moved), 1)]

    return smallest_sigma(lines, epsilon, delta, pair)


def relative(own: float, largest: float, delta: float, pair: Pair) -> Fraction:
    """How much of the largest budget's distance an own epsilon allows, rounded down."""
    if own == largest:
        return Fraction(1)
    return _SAFE * multiplier(largest, delta, pair) / multiplier(own, delta, pair)


def weight_of(own: float, largest: float, delta: float, pair: Pair) -> int:
    """How much a vote weighs where nobody stops early, in units, rounded down.

    >>> from stillroom.vocabulary import RECORD
    >>> [weight_of(own, 8.0, 1e-5, RECORD) for own in (1.0, 3.0, 8.0)]
    [10, 27, 64]
    """
    return int(WHOLE_WEIGHT * relative(own, largest, delta, pair))


def votes_of(own: float, largest: float, delta: float, pair: Pair, queries: int) -> int:
    """How many votes of weight one an own epsilon pays for; what is told grows with their root.

    >>> from stillroom.vocabulary import RECORD
    >>> [votes_of(own, 8.0, 1e-5, RECORD, 1000) for own in (1.0, 3.0, 8.0)]
    [25, 184, 1000]
    """
    return int(queries * relative(own, largest, delta, pair) ** 2)
