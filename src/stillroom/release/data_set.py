"""What everything so far has cost the data set, rebuilt from the events of all its blocks (L6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Ledger, mechanism_from_json
from stillroom.gate.accounting import fold, price
from stillroom.gate.events import REPEATABLE, Event, Line, lines_from_json, lines_to_json
from stillroom.gate.ledger import Head
from stillroom.gate.ledger.budget import share_spent
from stillroom.gate.ledger.chain import canonical
from stillroom.gate.ledger.creation import FROM_CONTENT, GIVEN
from stillroom.gate.ledger.promises import Promises, check_reason
from stillroom.release.figures import Figures
from stillroom.release.files import spelled
from stillroom.vocabulary import CHANGED_RECORD, Budget, Pair, Unit


def stated(ledger: Ledger) -> dict[str, Any]:
    """What only the ledger knows: its name, its head, its budgets and all its events."""
    fixed = ledger.store.last("kind = 'unit'")
    # Budgets that lapsed with another unit, before anything was paid, promise nothing.
    since = 0 if fixed is None else fixed.seq
    return {
        "ledger": ledger.id,
        "ids": FROM_CONTENT if ledger.ids_from_content else GIVEN,
        "head": str(ledger.head()),
        "blocks": sum(1 for _ in ledger.store.rows("kind = 'block'")),
        "events": lines_to_json(fold(ledger.events())),
        "budgets": [
            {
                "for": row.body["pair"],
                # One that was taken back has neither.
                **{key: row.body.get(key) for key in ("epsilon", "delta", "reason")},
            }
            for row in ledger.store.rows("kind IN ('budget', 'unset') AND seq > ?", (since,))
        ],
    }


def completed(
    body: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], figures: Figures, unit: Unit
) -> dict[str, Any]:
    """The whole of `data_set`, its totals priced.

    Args:
        body: what `stated` says.
        blocks: the release's own blocks, as the certificate says them.
        figures: how prices are found.
        unit: whom the ledger protects.

    Raises:
        DoesNotVerify: the release is not part of what the data set has paid for.
    """
    kept = {key: body[key] for key in ("ledger", "ids", "head", "blocks", "events", "budgets")}
    if kept["ids"] not in (GIVEN, FROM_CONTENT) or type(kept["blocks"]) is not int:
        raise _unfit("it does not say where ids come from, or how many blocks there are")
    if len(bytes.fromhex(kept["ledger"])) != 16:
        raise _unfit("it does not name its ledger")
    numbers = [block["block"] for block in blocks]
    head = Head.parse(kept["head"])
    proper = all(type(n) is int and 0 < n <= head.seq for n in numbers)
    if not proper or len(set(numbers)) != len(numbers) or len(numbers) > kept["blocks"]:
        raise _unfit("a block of the release is not among the ledger's rows")
    lines = fold(lines_from_json(kept["events"]))
    if canonical(kept["events"]) != canonical(lines_to_json(lines)):
        raise _unfit("equal events are not counted together, or are spelled in another way")
    own = Counter(dict(fold(line for block in blocks for line in events_of(block))))
    every: Counter[Event] = Counter(dict(lines))
    if not own <= every or (len(numbers) == kept["blocks"] and own != every):
        raise _unfit("its events do not contain those of the release")
    return {**kept, "totals": _totals(kept, lines, figures, unit)}


def events_of(block: Mapping[str, Any]) -> list[Line]:
    """The events that a block was charged for."""
    return reserved(block) if block["noise"] == "os" else [(REPEATABLE, 1)]


def reserved(block: Mapping[str, Any]) -> list[Line]:
    """The events of what a block reserved."""
    return [
        line
        for wish in block["wishes"]
        for line in mechanism_from_json(wish["mechanism"]).lines(wish["reserved"])
    ]


def unproven(body: Mapping[str, Any]) -> set[Pair]:
    """What the data set's ids do not support."""
    return {CHANGED_RECORD} if body["ids"] == FROM_CONTENT else set()


def _totals(
    body: Mapping[str, Any], lines: Sequence[Line], figures: Figures, unit: Unit
) -> list[dict[str, Any]]:
    """One total for each budget in force; earlier budgets and reasons stay in `budgets` (L9)."""
    promises = Promises(unproven=unproven(body))
    promises.set_unit(unit)
    for entry in body["budgets"]:
        if set(entry) != {"for", "epsilon", "delta", "reason"}:
            raise _unfit("a budget is no budget")
        try:
            check_reason(entry["reason"])
            pair = Pair.parse(entry["for"])
            if entry["epsilon"] is None and entry["delta"] is None:
                promises.unset(pair)
            else:
                promises.set(Budget(entry["epsilon"], entry["delta"], pair))
        except BadInput as error:
            raise _unfit(error.what) from None
    if promises.own_budget is None:
        raise _unfit("it has no budget of its own")
    return [
        {
            "for": str(budget.pair),
            "delta": budget.delta,
            "budget": budget.epsilon,
            "spent": spelled(figures.total(cost, budget.delta, single=body["blocks"] == 1)),
            "share": spelled(figures.share(budget.pair, share_spent(cost.curve, budget))),
        }
        for budget in promises.budgets
        for cost in [price(lines, budget.pair)]
    ]


def _unfit(what: str) -> DoesNotVerify:
    return DoesNotVerify(
        f"the data set's total in certificate.json does not fit: {what}",
        where="data_set",
        why="a release is part of what its data have paid for",
        remedy="ask whoever released it for an unchanged copy; do not use this one",
    )
