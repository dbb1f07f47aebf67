"""Section `evaluation`: an accuracy that follows from a table of counts, or none at all (K1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from stillroom.errors import BadInput
from stillroom.gate import NoisyCounts, mechanism_from_json
from stillroom.randomness import uniforms
from stillroom.release.measures import SURELY, Table, measures_of
from stillroom.release.sections.base import Body, Core, Section, classifier_in

RECORDS = {
    True: "test part, sensitive: noisy counts",
    False: "test part, declared public: exact",
}
"""Which records were counted, by whether they are protected."""

GUESSING = 0.01
"""How often a model that learnt from noise alone may pass for one that is better than guessing."""
ORDERS = 10_000
"""Orders of the classes that are tried where there are too many to try all."""


def accuracy_of(table: Table, sigma: Fraction | None) -> float | None:
    """The share of the counts on the diagonal; None where there is too little to divide by.

    A noisy total has a standard deviation of classes times sigma. Divided by a total that is mostly
    noise, an accuracy would be a random number that looks like a figure.

    Args:
        table: counts, one row per true class.
        sigma: noise on each count; None where the counts are exact.

    >>> accuracy_of([[9, 1], [0, 10]], None), accuracy_of([[9, 1], [0, 10]], Fraction(6))
    (0.95, None)
    """
    total = sum(sum(row) for row in table)
    least = 0 if sigma is None else SURELY * len(table) * sigma
    if not total > least:
        return None
    return min(1.0, max(0.0, sum(row[place] for place, row in enumerate(table)) / total))


def noise_in(table: Table, sigma: Fraction | None) -> float | None:
    """The standard deviation that noise alone gives to the accuracy; 0 where counts are exact.

    To first order: a count on the diagonal moves the accuracy p by (1 - p) / total, any other by
    p / total.

    >>> counts = [[50, 0], [0, 50]]
    >>> noise_in(counts, None), round(noise_in(counts, Fraction(2)), 4)
    (0.0, 0.0283)
    """
    accuracy = accuracy_of(table, sigma)
    if accuracy is None:
        return None
    if sigma is None:
        return 0.0
    classes, total = len(table), sum(sum(row) for row in table)
    squares = classes * (1 - accuracy) ** 2 + classes * (classes - 1) * accuracy**2
    return float(sigma) * math.sqrt(squares) / total


def better_than_guessing(table: Table) -> bool:
    """Whether so many right answers are unlikely for a model that learnt from noise alone.

    To such a model all classes are alike, whatever the records are: had they stood in another order
    when its noise was drawn, its answers would stand in that order. So the right answers are
    compared with those under other orders of the columns; noise on the counts has no order either.
    With fewer than five classes no table is that unlikely, and the best one is enough: a model that
    learnt from noise alone then passes once in two (2 classes), 6 (3) or 24 (4).

    >>> better_than_guessing([[9, 1], [0, 10]]), better_than_guessing([[1, 9], [10, 0]])
    (True, False)
    """
    counts, classes = np.array(table), len(table)
    if math.factorial(classes) <= ORDERS:
        orders = np.array(list(itertools.permutations(range(classes))))
    else:
        drawn = uniforms(0, "orders of classes", size=(ORDERS, classes)).argsort(axis=1)
        orders = np.concatenate([np.arange(classes)[None], drawn])
    right = counts[np.arange(classes), orders].sum(axis=1)
    return bool((right >= right[0]).mean() <= max(GUESSING, 1 / len(orders)))


@dataclass(frozen=True)
class Evaluation:
    """What a test counted.

    Args:
        confusion: counts, one row per true class.
        protected: whether they came through the gate; else they are exact, on records that were
            declared public.
        positive: of two classes, the one that the test is said to find.
    """

    confusion: tuple[tuple[int, ...], ...]
    protected: bool
    positive: str | None = None

    def to_json(self) -> Body:
        """What the releaser states; the checker makes the rest of it."""
        return {
            "confusion": [[int(count) for count in row] for row in self.confusion],
            "protected": self.protected,
            "positive": self.positive,
        }


def _completed(stated: Body | None, core: Core) -> Body | None:
    """The accuracy that follows from the counts, which must be what was drawn.

    None where nothing was tested, or every table was lost.
    """
    sigma, drawn = tables_in(core.blocks)
    if stated is None:
        if drawn:
            raise _odd("a table was drawn and is not told")
        return None
    table, protected = stated["confusion"], stated["protected"]
    if type(protected) is not bool or protected != bool(drawn):
        raise _odd("noisy counts were drawn and none are told, or the other way round")
    square = all(len(row) == len(table) for row in table)
    if not square or not all(type(count) is int for row in table for count in row):
        raise _odd("the confusion counts are no square of whole numbers")
    if not protected and any(count < 0 for row in table for count in row):
        raise _odd("an exact count is below zero")
    classes, positive = classifier_in(core.artefacts)["classes"], stated["positive"]
    if len(table) != len(classes):
        raise _odd("the counts are those of other classes")
    if not (positive is None if len(classes) != 2 else positive in classes):
        raise _odd("of two classes one is positive, of more none is")
    noise = sigma if protected else None
    alike = records_alike(core.blocks) if protected else 1
    return {
        "accuracy": accuracy_of(table, noise),
        "accuracy_noise": noise_in(table, noise),
        "confusion": [list(row) for row in table],
        "records": RECORDS[protected],
        "protected": protected,
        "positive": positive,
        "measures": measures_of(table, classes, noise, alike, positive),
    }


def _unprotected(core: Core) -> list[str]:
    told = core.sections.get("evaluation")
    if told is None or told["protected"]:
        return []
    return [f"accuracy and confusion counts, exact, on: {told['records']}"]


def _shown(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Counts are shaded by their share of the row; noisy ones may be negative."""
    told = certificate["sections"].get("evaluation")
    if told is None:
        return {"told": None}
    classes = classifier_in(certificate["artefacts"])["classes"]
    rows = []
    for name, row in zip(classes, told["confusion"], strict=True):
        whole = max(1, sum(max(0, count) for count in row))
        rows.append((name, [(count, 0.6 * max(0, count) / whole) for count in row]))
    unclear = _persons_unclear(certificate, told)
    return {"told": told, "rows": rows, "persons": unclear}


def _persons_unclear(certificate: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether persons are known of, and nothing bounds how many records of one were tested."""
    charged_by_person = told["protected"] and certificate["unit"] == "person"
    return bool(certificate["facts"].get("persons")) and not charged_by_person


def tables_in(blocks: Sequence[Mapping[str, Any]]) -> tuple[Fraction | None, int]:
    """The noise of the tables of counts that came through the gate, and how many were not lost."""
    own = _wishes_in(blocks)
    sigmas = {counts.sigma for counts, _ in own}
    return max(sigmas, default=None), sum(wish["drawn"] - wish["lost"] for _, wish in own)


def records_alike(blocks: Sequence[Mapping[str, Any]]) -> int:
    """How many records of one person were counted at most; 1 where records are protected."""
    return max((counts.records for counts, _ in _wishes_in(blocks)), default=1)


def _wishes_in(
    blocks: Sequence[Mapping[str, Any]],
) -> list[tuple[NoisyCounts, Mapping[str, Any]]]:
    wishes = [wish for block in blocks for wish in block["wishes"]]
    described = [(mechanism_from_json(w["mechanism"]), w) for w in wishes if _counts(w)]
    return [(counts, wish) for counts, wish in described if isinstance(counts, NoisyCounts)]


def _counts(wish: Mapping[str, Any]) -> bool:
    return bool(wish["mechanism"]["mechanism"] == NoisyCounts.name)


def _odd(what: str) -> BadInput:
    return BadInput(
        what,
        where="evaluation",
        why="an accuracy follows from its counts, and from nothing else",
        remedy="hand over the table as it was counted, or as it came through the gate",
    )


SECTION = Section(
    "evaluation",
    Evaluation.to_json,
    _completed,
    _shown,
    word="what the test counted",
    unprotected=_unprotected,
)
