"""A block: mechanisms and counts fixed before the first draw, priced once (L3)."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from stillroom.documents import count as whole
from stillroom.errors import BadInput, BudgetExhausted
from stillroom.gate import renyi
from stillroom.gate.accounting import DELTAS, Price, pairs_of, price
from stillroom.gate.events import REPEATABLE, Line, lines_from_json, lines_to_json
from stillroom.gate.ledger.budget import Totals, fits, share_spent, totals_to_json
from stillroom.gate.ledger.chain import Row
from stillroom.gate.mechanisms import mechanism_from_json
from stillroom.gate.mechanisms.base import Mechanism
from stillroom.vocabulary import Budget, Guarantee, Pair, Relation, Unit

ALL_PAIRS = tuple(Pair(unit, relation) for unit in Unit for relation in Relation)

Wish = tuple[Mechanism, int]
"""A mechanism and the most answers it may give."""

LONGEST_NAME = 64


def name_of(place: int) -> str:
    """What the wish at a place is called if nobody named it.

    >>> name_of(0)
    'wish 1'
    """
    return f"wish {place + 1}"


def wishes_to_json(wishes: Mapping[str, Wish]) -> list[dict[str, Any]]:
    """Wishes as they stand in a block's row; whoever has no name of its own gets none.

    Raises:
        BadInput: a name or a count cannot stand there.
    """
    bodies = []
    for place, (name, (mechanism, count)) in enumerate(wishes.items()):
        if not isinstance(count, int) or count < 1:
            raise BadInput(
                f"{mechanism.name} was asked for {count!r} answers",
                where="reserve",
                why="a block must say beforehand how much it draws",
                remedy="reserve at least one answer",
            )
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise BadInput(
                f"a wish at the gate cannot be called {str(name)[:LONGEST_NAME]!r}",
                where="reserve",
                why="its name stands in the ledger, and a continued run finds it by its name",
                remedy=f"give it a name of at most {LONGEST_NAME} printable characters",
            )
        own = {} if name == name_of(place) else {"name": name}
        bodies.append({"count": count, **own, **mechanism.describe()})
    return bodies


def wishes_from_json(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Wish]:
    """The wishes of a block's row by their names.

    Raises:
        ValueError: two have one name, or a name or a count cannot be.
        UnsupportedEvent: a mechanism is not known here.
    """
    named = {
        body.get("name", name_of(place)): (mechanism_from_json(body), whole(body["count"], 1))
        for place, body in enumerate(bodies)
    }
    if len(named) != len(bodies) or wishes_to_json(named) != list(bodies):
        raise ValueError("these are not the wishes of a block")
    return named


def lines_of(rows: Iterable[Row]) -> list[Line]:
    """All that the blocks among these rows charged; no finite price where noise is repeatable."""
    lines: list[Line] = []
    for row in rows:
        if row.kind == "block":
            repeatable = row.body["noise"] != "os"
            lines += [(REPEATABLE, 1)] if repeatable else lines_from_json(row.body["events"])
    return lines


class PricedBlock:
    """Wishes and what they cost every pair.

    Args:
        wishes: mechanisms and counts, by name.
        noise: "os"; anything else is repeatable and has no finite price (K6).
        deltas: where the price is wanted, beside the certificate's own.
        unproven: pairs that nothing can be promised for, whatever is drawn.
    """

    def __init__(
        self,
        wishes: Mapping[str, Wish],
        noise: str,
        deltas: Iterable[float],
        unproven: Collection[Pair] = (),
    ) -> None:
        self._wishes = wishes_to_json(wishes)
        self._noise = noise
        self._deltas = sorted({*DELTAS, *deltas})
        self._lines: list[Line] = [
            line for mechanism, count in wishes.values() for line in mechanism.lines(count)
        ]
        proven = pairs_of(self._lines, unproven) if noise == "os" else []
        self._prices: dict[Pair, Price] = {pair: price(self._lines, pair) for pair in proven}
        self._samples = sum(event.noise_samples * count for event, count in self._lines)
        self._epsilons = {
            str(pair): {str(d): _figures(cost.guarantee(d)) for d in self._deltas}
            for pair, cost in self._prices.items()
        }

    def _total(self, pair: Pair, before: Totals) -> renyi.Curve:
        if pair not in before or pair not in self._prices:
            return renyi.INFINITE
        return renyi.total([before[pair], self._prices[pair].curve])

    def refuse_unless_it_fits(
        self,
        budget: Budget,
        before: Totals,
        samples: int,
        *,
        first: bool,
        accept_infinite: bool,
        where: str,
    ) -> None:
        """Raise BudgetExhausted where the block would break the budget.

        `accept_infinite` lets a block pass that has no finite price, and no other.
        """
        alone = (
            self._prices[budget.pair].epsilon(budget.delta)
            if budget.pair in self._prices
            else math.inf
        )
        if (first and alone <= budget.epsilon) or (accept_infinite and math.isinf(alone)):
            return
        if fits(self._total(budget.pair, before), samples + self._samples, budget):
            return
        raise BudgetExhausted(
            f"the block (epsilon {alone:.4g} by itself) does not fit the budget of epsilon "
            f"{budget.epsilon:g} at delta {budget.delta:g}: {self._short(budget, before, first)}",
            where=where,
            why=f"the promise for {budget.pair} would be broken; nothing was drawn",
            remedy=f"raise the budget with a reason, `stillroom ledger budget set {where} "
            f"--epsilon MORE --for {budget.pair} --reason '...'`; or ask for less: a smaller "
            "epsilon in the recipe, fewer answers, more noise",
        )

    def _short(self, budget: Budget, before: Totals, first: bool) -> str:
        """Which figure is too small, in words."""
        if budget.pair not in self._prices:
            return f"what it draws proves nothing for {budget.pair}"
        if first:
            return "it costs more than that"
        used = share_spent(before.get(budget.pair, renyi.INFINITE), budget)
        needed = share_spent(self._prices[budget.pair].curve, budget)
        if used + needed <= 1:
            return "it draws more noise samples than delta has room for"
        return (
            f"blocks are added up by their Renyi losses, of which {min(1.0, used):.1%} are spent, "
            f"and this block needs {needed:.1%}"
        )

    def body(self, before: Totals, samples: int) -> dict[str, Any]:
        """The block's row: what was promised, what it costs, and the totals with it."""
        totals = {pair: self._total(pair, before) for pair in self._prices}
        return {
            # Equal blocks of two copies of one ledger must not look like one block.
            "nonce": os.urandom(8).hex(),
            "noise": self._noise,
            "wishes": self._wishes,
            "events": lines_to_json(self._lines),
            "epsilon": self._epsilons,
            "totals": totals_to_json(
                {pair: curve for pair, curve in totals.items() if math.isfinite(max(curve))}
            ),
            "samples": samples + self._samples,
        }


def _figures(guarantee: Guarantee) -> dict[str, float]:
    """A guarantee as JSON; an infinite figure is left out."""
    figures = {"certified": guarantee.epsilon, **guarantee.by_accountant}
    return {who: e for who, e in figures.items() if e is not None and math.isfinite(e)}
