"""Plan before spending: price or calibrate noisy votes without touching any data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtr

from stillroom.errors import BadInput
from stillroom.gate import NoisyVotes, check_count
from stillroom.gate.accounting import DELTAS, price
from stillroom.gate.calibration import most_answers, smallest_sigma
from stillroom.vocabulary import RECORD, Guarantee, check_delta, check_epsilon

CONSENSUS = (0.9, 0.6)


@dataclass(frozen=True)
class Plan:
    """A priced plan for noisy votes.

    Args:
        solved: the name of the number that was found.
        target: the epsilon asked for, if any.
        guarantees: the certificate's deltas and the plan's own, the plan's own first.
        label_accuracy: consensus -> expected accuracy of one noisy label.
    """

    teachers: int | None
    classes: int
    queries: int
    sigma: Fraction
    delta: float
    solved: str
    target: float | None
    guarantees: tuple[Guarantee, ...]
    label_accuracy: dict[float, float]

    @property
    def epsilon(self) -> float:
        """The certified epsilon at the plan's delta."""
        return self.guarantees[0].epsilon

    @property
    def fits(self) -> bool:
        """Whether the certified epsilon stays within the target."""
        return self.target is None or self.epsilon <= self.target

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs; an infinite epsilon is the text "infinite"."""
        first = self.guarantees[0]
        return {
            "teachers": self.teachers,
            "classes": self.classes,
            "queries": self.queries,
            "sigma": float(self.sigma),
            "delta": self.delta,
            "solved_for": self.solved,
            "target_epsilon": self.target,
            "fits": self.fits,
            "unit": str(first.pair.unit),
            "relation": str(first.pair.relation),
            "epsilon": {
                "certified": _number(first.epsilon),
                "accountant": first.accountant,
                **{who.lower(): _number(e) for who, e in first.by_accountant.items()},
            },
            "epsilon_at_delta": {str(g.delta): _number(g.epsilon) for g in self.guarantees},
            "label_accuracy": {f"{c:g}": a for c, a in self.label_accuracy.items()},
        }


def _number(epsilon: float | None) -> float | str | None:
    return "infinite" if epsilon == math.inf else epsilon


def plan(
    *,
    teachers: int | None = None,
    classes: int = 10,
    queries: int | None = None,
    sigma: Fraction | float | str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    consensus: Sequence[float] = CONSENSUS,
) -> Plan:
    """Price or calibrate noisy votes; whichever of queries, sigma, epsilon is missing is found.

    Guarantee: one record (or one whole teacher) on disjoint shards; nothing is spent by planning.
    Assumes: each teacher has one vote per query.

    Args:
        teachers: how many; only the label accuracy needs it.
        classes: how many labels there are.
        queries: how many answers.
        sigma: noise on each count.
        epsilon: the budget.
        delta: 1e-5 unless given; found when queries, sigma and epsilon are given without it.
        consensus: shares of the teachers that agree on the right label.

    Raises:
        BadInput: a number is out of range, or too few are given.

    >>> round(plan(teachers=250, queries=2000, sigma=40).epsilon, 2)
    7.51
    >>> float(plan(queries=200, epsilon=1).sigma)
    74.613
    """

    def votes(noise: Any) -> NoisyVotes:
        return NoisyVotes(1 if teachers is None else teachers, classes, noise)

    checked = votes(1 if sigma is None else sigma).sigma
    exact = None if sigma is None else checked
    if queries is not None:
        check_count("queries", queries)
    if epsilon is not None:
        check_epsilon(epsilon)
    at = check_delta(delta if delta is not None else 1e-5)
    if queries is not None and exact is not None:
        count, solved = queries, "epsilon"
    elif queries is not None and epsilon is not None:
        count, solved = queries, "sigma"
        exact = smallest_sigma(lambda s: votes(s).lines(count), epsilon, at, RECORD)
    elif exact is not None and epsilon is not None:
        count, solved = _most_queries(votes(exact), epsilon, at), "queries"
    else:
        raise BadInput(
            "two of queries, sigma and epsilon are missing",
            where="plan",
            why="one number can be found from the others, not two",
            remedy="give two of queries, sigma and epsilon",
        )
    cost = price(votes(exact).lines(count), RECORD)
    if solved == "epsilon" and epsilon is not None:
        solved = "nothing: all were given" if delta is not None else "delta"
        at = at if delta is not None else _smallest_delta(cost.epsilon, epsilon)
    deltas = (at, *(d for d in DELTAS if d != at))
    return Plan(
        teachers=teachers,
        classes=classes,
        queries=count,
        sigma=exact,
        delta=at,
        solved=solved,
        target=epsilon,
        guarantees=tuple(cost.guarantee(d) for d in deltas),
        label_accuracy={}
        if teachers is None
        else {c: label_accuracy(teachers, classes, float(exact), c) for c in consensus},
    )


def _most_queries(votes: NoisyVotes, epsilon: float, delta: float) -> int:
    count = most_answers(votes.lines, epsilon, delta, RECORD)
    if count == 0:
        raise BadInput(
            f"not one answer at sigma {float(votes.sigma):g} fits epsilon {epsilon:g}",
            where="plan",
            why="the first answer alone costs more than the budget",
            remedy="give a larger sigma or epsilon",
        )
    return count


def _smallest_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """The smallest delta, to three digits, at which the certified epsilon is within the target."""
    grid = [
        float(f"{hundredths}e{power - 2}")
        for power in range(-12, 0)
        for hundredths in range(100, 1000)
    ]
    if epsilon_at(grid[-1]) > epsilon:
        raise BadInput(
            f"no delta below 1 brings these answers to epsilon {epsilon:g}",
            where="plan",
            why="they cost more than the budget at any delta",
            remedy="give more noise, fewer queries or a larger epsilon",
        )
    low, high = -1, len(grid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if epsilon_at(grid[middle]) <= epsilon else (middle, high)
    return float(grid[high])


def label_accuracy(teachers: int, classes: int, sigma: float, consensus: float) -> float:
    """How often one noisy argmax is right when a share of the teachers agrees, the rest spread.

    The continuous limit: the right class has a lead of `consensus` minus an even share of the rest.

    >>> round(label_accuracy(250, 10, 40, 0.6), 2)
    0.95
    """
    if not 0 <= consensus <= 1:
        raise BadInput(
            f"consensus must lie in [0, 1], got {consensus}",
            where="consensus",
            why="it is a share of the teachers",
            remedy="give a share such as 0.9",
        )
    lead = teachers * (consensus - (1 - consensus) / (classes - 1)) / sigma
    z = np.linspace(-12, 12, 4801)
    density = np.exp(-z * z / 2)
    return float((density * ndtr(z + lead) ** (classes - 1)).sum() / density.sum())
