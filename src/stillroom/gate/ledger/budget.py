"""The filter: whether one more block fits a budget, whatever the earlier answers were.

A budget (epsilon, delta) fixes one Renyi order; blocks fit while their losses of that order stay
within what the order converts to epsilon. At a fixed order this holds even when each block is
chosen after seeing the answers of the ones before (Feldman, Zrnic 2021, Theorem 3.1). The very
first block is fixed before anything is drawn, so for it alone the tighter certified epsilon
decides; if it fits by that only, the sum of losses lets no second block in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stillroom.gate import renyi
from stillroom.gate.sampling import TABLE_ERROR
from stillroom.vocabulary import Budget, Pair

Totals = Mapping[Pair, renyi.Curve]

_TABLE_SHARE = 1e-3
"""The share of delta set aside for the sampling tables (E2)."""


@dataclass(frozen=True)
class Spent:
    """What one budget has seen.

    Args:
        budget: the promise.
        epsilon: all blocks so far at the budget's delta, had they been fixed beforehand.
        share: how much of the budget's allowance is used, whatever the order of choices.
    """

    budget: Budget
    epsilon: float
    share: float


def filter_order(budget: Budget) -> tuple[int, int, float]:
    """The order that allows the most Gaussian noise, its place in the grid, and its allowance.

    >>> filter_order(Budget(epsilon=1.0, delta=1e-5))[0]
    18
    """
    delta = budget.delta * (1 - _TABLE_SHARE)
    allowances = [budget.epsilon - renyi.conversion(order, delta) for order in renyi.ORDERS]
    best = max(range(len(allowances)), key=lambda i: allowances[i] / renyi.ORDERS[i])
    return renyi.ORDERS[best], best, allowances[best]


def share_spent(total: Sequence[float], budget: Budget) -> float:
    """How much of the budget's allowance is used; above 1 nothing more fits."""
    _, place, allowance = filter_order(budget)
    if total[place] == 0:
        return 0.0
    return total[place] / allowance if allowance > 0 else math.inf


def fits(total: Sequence[float], samples: int, budget: Budget) -> bool:
    """Whether blocks with these total losses and noise samples stay within the budget."""
    if not budget.epsilon < 80:  # e^epsilon times the table error would not be negligible
        return False
    hidden = samples * TABLE_ERROR * (1 + Fraction(math.exp(budget.epsilon)))
    return hidden <= _TABLE_SHARE * budget.delta and share_spent(total, budget) <= 1


def totals_to_json(totals: Totals) -> list[dict[str, Any]]:
    """Equal curves written once."""
    grouped: dict[renyi.Curve, list[str]] = {}
    for pair, curve in sorted(totals.items()):
        grouped.setdefault(curve, []).append(str(pair))
    return [{"pairs": pairs, "curve": list(curve)} for curve, pairs in grouped.items()]


def totals_from_json(body: Sequence[Mapping[str, Any]]) -> dict[Pair, renyi.Curve]:
    """The curves back; a pair that is missing is infinite."""
    return {Pair.parse(pair): tuple(part["curve"]) for part in body for pair in part["pairs"]}
