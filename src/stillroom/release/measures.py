"""What a table of counts says of a model: shares of right answers, class by class, and how sure.

Everything here follows from counts that were already told, so it costs nothing. Nothing but sums,
quotients and square roots is computed: the verifier gets the same bits on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

SURELY = 5
"""Standard deviations of its noise that a noisy total must exceed before a share of it is told."""
CONFIDENCE = 0.95
QUANTILE = 1.959964
"""Of the normal law, for 95 % between its two sides."""

Table = Sequence[Sequence[int]]
Told = dict[str, float]


@dataclass(frozen=True)
class Count:
    """A sum of cells of the table.

    Args:
        value: the sum, noise included.
        cells: how many cells it has; each has noise of its own.
    """

    value: int
    cells: int


def share(right: Count, wrong: Count, sigma: Fraction | None, alike: int = 1) -> Told | None:
    """The share of right answers, and its 95 % interval; None where the total is mostly noise.

    The interval is Wilson's (1927) with a correction for continuity. It holds every share p with
    |right - p (right + wrong)| - alike / 2 <= 1.96 sqrt(V(p)). V is the variance of the left side:
    `alike` times n p (1 - p) from the choice of the records, and sigma^2 ((1 - p)^2 cells of
    `right` + p^2 cells of `wrong`) from the noise. That is a quadratic inequality in p.

    Assumes: the test records, or groups of at most `alike` of them, were drawn independently. No
    group of m is worse than m records that are all the same.

    Args:
        right: the right answers.
        wrong: the other answers to the same records.
        sigma: noise on each cell; None where the counts are exact.
        alike: how many records of one person may be among them.

    >>> share(Count(90, 1), Count(10, 1), None)
    {'value': 0.9, 'low': 0.8196, 'high': 0.9484}
    >>> share(Count(90, 1), Count(10, 1), Fraction(6))
    {'value': 0.9, 'low': 0.7695, 'high': 1.0}
    >>> share(Count(20, 1), Count(10, 1), Fraction(6)) is None
    True
    """
    total, cells = right.value + wrong.value, right.cells + wrong.cells
    square = 0.0 if sigma is None else float(sigma * sigma)
    if not total > 0 or (sigma is not None and not total * total > SURELY**2 * cells * sigma**2):
        return None
    hits = min(max(right.value, 0), total)
    sides = []
    for sign in (-1, 1):
        moved = min(max(hits + sign * alike / 2, 0.0), float(total))
        # a p^2 - b p + c <= 0
        a = total * total + QUANTILE**2 * (alike * total - square * cells)
        b = 2 * moved * total + QUANTILE**2 * (alike * total - 2 * square * right.cells)
        c = moved * moved - QUANTILE**2 * square * right.cells
        root = math.sqrt(max(0.0, b * b - 4 * a * c))
        sides.append(min(1.0, max(0.0, (b + sign * root) / (2 * a))))
    # Nothing wrong, or nothing right, is the end of the scale, whatever rounding says.
    low, high = 0.0 if hits == 0 else sides[0], 1.0 if hits == total else sides[1]
    return _rounded(hits / total, low, high)


def mean(shares: Sequence[Told | None]) -> Told | None:
    """The mean of independent shares, with its interval; None where one of them is not told.

    Each side is as far off as the squares of the shares' own distances add up to (Zou and Donner
    2008), divided by how many there are.

    >>> one = share(Count(90, 1), Count(10, 1), None)
    >>> mean([one, one])
    {'value': 0.9, 'low': 0.8431, 'high': 0.9343}
    """
    told = [one for one in shares if one is not None]
    if not told or len(told) < len(shares):
        return None
    value = sum(one["value"] for one in told) / len(told)
    below = math.sqrt(sum((one["value"] - one["low"]) ** 2 for one in told)) / len(told)
    above = math.sqrt(sum((one["high"] - one["value"]) ** 2 for one in told)) / len(told)
    return _rounded(value, max(0.0, value - below), min(1.0, value + above))


def measures_of(
    table: Table,
    classes: Sequence[str],
    sigma: Fraction | None,
    alike: int = 1,
    positive: str | None = None,
) -> dict[str, Any]:
    """Accuracy, balanced accuracy, and of each class sensitivity and specificity.

    Sensitivity is the share of the class's own records that are taken for it, specificity the
    share of all others that are not. Of two classes the first stands for the sick: `positive`.

    Args:
        table: counts, one row per true class.
        classes: their names.
        sigma: noise on each count; None where the counts are exact.
        alike: how many records of one person may be among them.
        positive: of two classes, the one that a test is said to find.

    >>> told = measures_of([[90, 10], [40, 160]], ["well", "ill"], None, positive="ill")
    >>> told["sensitivity"]["value"], told["specificity"]["value"]
    (0.8, 0.9)
    >>> told["balanced_accuracy"]
    {'value': 0.85, 'low': 0.7987, 'high': 0.8855}
    """
    size = len(table)
    total, right = sum(map(sum, table)), sum(row[place] for place, row in enumerate(table))
    by_class: list[dict[str, Any]] = []
    for place, (name, row) in enumerate(zip(classes, table, strict=True)):
        own, hits = sum(row), row[place]
        false = sum(other[place] for other in table) - hits
        left_alone = total - own - false
        by_class.append(
            {
                "class": name,
                "sensitivity": share(Count(hits, 1), Count(own - hits, size - 1), sigma, alike),
                "specificity": share(
                    Count(left_alone, (size - 1) ** 2), Count(false, size - 1), sigma, alike
                ),
            }
        )
    found = next((one for one in by_class if one["class"] == positive), None)
    return {
        "confidence": CONFIDENCE,
        "alike": alike,
        "accuracy": share(
            Count(right, size), Count(total - right, size * (size - 1)), sigma, alike
        ),
        "balanced_accuracy": mean([one["sensitivity"] for one in by_class]),
        "positive": positive,
        "sensitivity": None if found is None else found["sensitivity"],
        "specificity": None if found is None else found["specificity"],
        "classes": by_class,
    }


def _rounded(value: float, low: float, high: float) -> Told:
    """Four digits, the interval outwards."""
    return {
        "value": round(value, 4),
        "low": min(math.floor(low * 1e4) / 1e4, round(value, 4)),
        "high": max(math.ceil(high * 1e4) / 1e4, round(value, 4)),
    }
