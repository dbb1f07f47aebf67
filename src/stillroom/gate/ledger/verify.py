"""Check a ledger, or an export of one, and price it again by today's accountants."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stillroom.data.store import load_parts
from stillroom.documents import count
from stillroom.errors import BadInput, DoesNotVerify, NumericalDoubt, UnsupportedEvent, WrongData
from stillroom.gate import renyi
from stillroom.gate.accounting import price
from stillroom.gate.events import lines_from_json
from stillroom.gate.ledger import members
from stillroom.gate.ledger.blocks import ALL_PAIRS, lines_of, wishes_from_json
from stillroom.gate.ledger.budget import fits, totals_from_json
from stillroom.gate.ledger.chain import Head, Row, broken
from stillroom.gate.ledger.creation import GIVEN
from stillroom.gate.ledger.exports import read_export, rows_of_export
from stillroom.gate.ledger.ledger import Ledger
from stillroom.gate.ledger.newest import rolled_back
from stillroom.gate.ledger.promises import Promises
from stillroom.vocabulary import CHANGED_RECORD, RECORD, Budget, Guarantee, Pair

_MOST_DELTAS = 16
"""Deltas that a block states its price at; each takes a moment."""
_CLOSE = 1e-9
_ODD = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
"""What reading a malformed row can end in."""


def verify(ledger: Ledger) -> None:
    """Check everything a ledger says of itself: chain, members, answers, draws and prices.

    Raises:
        DoesNotVerify: something does not fit; the message names the row.
    """
    store = ledger.store
    store.check_chain()
    verify_rows(store.rows(), str(ledger.path))
    key = ledger.key()
    for row in store.rows("kind = 'members'"):
        stored = [m for (m,) in store.query("SELECT hmac FROM members WHERE seq = ?", (row.seq,))]
        if members.digest(key, row.body["nonce"], stored) != row.body["digest"]:
            raise broken(ledger.path, row.seq, "the register of records was changed")
    strays = "SELECT 1 FROM members WHERE seq NOT IN (SELECT seq FROM rows WHERE kind = 'members')"
    unasked = "SELECT 1 FROM answers WHERE draw NOT IN (SELECT seq FROM rows WHERE kind = 'draw')"
    if store.query(strays) or store.query(unasked):
        raise broken(ledger.path, store.head().seq, "records or answers were added beside the rows")
    for row in store.rows("kind = 'commit'"):
        told, asked = row.body["answers"], row.body.get("question")
        found = store.query("SELECT content, key FROM answers WHERE draw = ?", (row.body["draw"],))
        same = [hashlib.sha256(c).hexdigest() == told and asked in (key, None) for c, key in found]
        if same != [True]:
            raise broken(ledger.path, row.seq, "the stored answers were changed")


def verify_rows(rows: Iterable[Row], where: str) -> None:
    """Draws have paid blocks, commits have draws, and prices are what the events cost.

    Raises:
        DoesNotVerify: something does not fit, or a row cannot be read.
    """
    with _readable(where):
        _verify_rows(rows, where)


@contextmanager
def _readable(where: str) -> Iterator[None]:
    try:
        yield
    except (BadInput, NumericalDoubt, UnsupportedEvent, *_ODD) as error:
        raise DoesNotVerify(
            f"a row of the ledger cannot be read ({type(error).__name__})",
            where=where,
            why="a row that cannot be read may hide a draw",
            remedy="use the version of stillroom that wrote it, or restore a backup",
        ) from None


def _verify_rows(rows: Iterable[Row], where: str) -> None:
    blocks: dict[int, Row] = {}
    unproven: set[str] = set()
    drawn: dict[tuple[int, int], int] = {}
    open_draws: dict[int, Row] = {}
    totals = dict.fromkeys(ALL_PAIRS, renyi.NOTHING)
    promises = Promises()
    for row in rows:
        if row.kind == "open" and row.body["ids"] != GIVEN:
            unproven = {str(CHANGED_RECORD)}
            promises = Promises(unproven={CHANGED_RECORD})
        promises.follow(row)
        if row.kind == "block":
            if promises.own_budget is None:
                raise broken(where, row.seq, "a block was paid for without a budget")
            if unproven & {*row.body["epsilon"], *map(str, totals_from_json(row.body["totals"]))}:
                raise broken(where, row.seq, "a price is stated for what cannot be promised")
            totals = _check_block(row, totals, where)
            _check_budgets(row, totals, promises.budgets, first=not blocks, where=where)
            blocks[row.seq] = row
        elif row.kind == "draw":
            wish = count(row.body["wish"])
            if row.block not in blocks:
                raise broken(where, row.seq, "a draw has no block")
            taken = drawn.get((row.block, wish), 0) + count(row.body["count"], 1)
            if taken > blocks[row.block].body["wishes"][wish]["count"]:
                raise broken(where, row.seq, "more was drawn than the block paid for")
            drawn[row.block, wish] = taken
            open_draws[row.seq] = row
        elif row.kind == "commit":
            draw = open_draws.pop(row.body["draw"], None)
            if draw is None or draw.block != row.block:
                raise broken(where, row.seq, "a commit has no draw")
            if count(row.body["answered"]) > count(draw.body["allowance"]):
                raise broken(where, row.seq, "more was answered than the draw allowed")


def _check_block(
    row: Row, before: Mapping[Pair, renyi.Curve], where: str
) -> dict[Pair, renyi.Curve]:
    events = lines_from_json(row.body["events"])
    if not 0 < len(row.body["wishes"]) <= len(events):
        raise ValueError("more wishes than events")
    wishes = wishes_from_json(row.body["wishes"])
    count(row.body["samples"])
    if events != [line for mechanism, n in wishes.values() for line in mechanism.lines(n)]:
        raise broken(where, row.seq, "the events are not those of what was reserved")
    lines = events if row.body["noise"] == "os" else []
    stated = totals_from_json(row.body["totals"])
    for pair, curve in stated.items():
        if pair not in before:
            raise broken(where, row.seq, f"the total for {pair} forgets an infinite block")
        true = renyi.total([before[pair], price(lines, pair).curve])
        if any(s < t * (1 - _CLOSE) for s, t in zip(curve, true, strict=True)):
            raise broken(where, row.seq, f"the total for {pair} is less than the events cost")
        if row.body["noise"] != "os":
            raise broken(where, row.seq, "a block of repeatable noise has a finite price")
    for pair_text, by_delta in row.body["epsilon"].items():
        cost = price(lines, Pair.parse(pair_text))
        if len(by_delta) > _MOST_DELTAS:
            raise ValueError("too many deltas")
        for delta, figures in by_delta.items():
            least, _ = cost.range(float(delta))
            if figures.get("certified", math.inf) < least.epsilon:
                raise broken(where, row.seq, f"epsilon at delta {delta} is less than it costs")
    return stated


def _check_budgets(
    row: Row,
    totals: Mapping[Pair, renyi.Curve],
    budgets: Iterable[Budget],
    *,
    first: bool,
    where: str,
) -> None:
    """A block fits every budget of its time, unless it has no finite price and was let in so."""
    lines = lines_from_json(row.body["events"]) if row.body["noise"] == "os" else []
    for budget in budgets:
        alone = math.inf
        if lines:
            alone = price(lines, budget.pair).range(budget.delta)[0].epsilon
        fitted = first and alone <= budget.epsilon
        fitted = fitted or fits(
            totals.get(budget.pair, renyi.INFINITE), row.body["samples"], budget
        )
        if not fitted and math.isfinite(alone):
            raise broken(where, row.seq, f"the block breaks the budget for {budget.pair}")


def reprice(rows: Iterable[Row], pair: Pair, delta: float) -> Guarantee:
    """All blocks together by today's accountants, as if they had been fixed beforehand.

    Raises:
        UnsupportedEvent: an event no accountant here knows.
    """
    return price(lines_of(rows), pair).guarantee(delta)


def check(
    path: Path,
    *,
    head: str | None = None,
    data: str | None = None,
    ids: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Verify a ledger or an export at `path` and price it again.

    Args:
        path: the file.
        head: a head kept elsewhere that must still be in there.
        data: a data set, by name or file, that must be the ledger's.
        ids: or the ids of records, some of which must be the ledger's.

    Raises:
        DoesNotVerify: it is not whole, or it went back in time.
        WrongData: the data belong to another ledger.
    """
    known = Head.parse(head) if head is not None else None
    exported = read_export(path)
    if exported is not None:
        rows = rows_of_export(exported, str(path))
        verify_rows(rows, str(path))
        if known is not None and known not in [Head(row.seq, row.hash) for row in rows]:
            raise rolled_back(path, known)
        if data is not None or ids is not None:
            raise BadInput(
                "an export holds no fingerprints of records",
                where=str(path),
                why="so it cannot tell whether the data are its own",
                remedy="verify the ledger itself",
            )
    else:
        ledger = Ledger.open(path, head=known, read_only=True)
        verify(ledger)
        rows = list(ledger.store.rows())
        told = ids if data is None else _all_ids(data)
        if told is not None and not ledger.recognises(told):
            raise WrongData(
                "not one of these records belongs to the ledger",
                where=str(path),
                why="the budget of one data set must not pay for another",
                remedy="verify with the data set the ledger was made for",
            )
    with _readable(str(path)):
        return _report(rows)


def _all_ids(data: str) -> list[str]:
    return [identity for part in load_parts(data).values() for identity in part.ids]


def _report(rows: Sequence[Row]) -> dict[str, Any]:
    budgets = {(row.body["pair"], row.body["delta"]) for row in rows if row.kind == "budget"}
    prices = []
    for pair, delta in sorted(budgets) or [(str(RECORD), 1e-5)]:
        again = reprice(rows, Pair.parse(pair), delta)
        figures = {"certified": again.epsilon, **again.by_accountant}
        prices.append({"for": pair, "delta": delta, **figures})
    return {
        "rows": len(rows),
        "blocks": sum(row.kind == "block" for row in rows),
        "lost_answers": lost_draws(rows),
        "head": str(Head(rows[-1].seq, rows[-1].hash)),
        "prices": prices,
    }


def lost_draws(rows: Sequence[Row]) -> int:
    """Answers whose draw was never committed: charged, and never drawn again (L2)."""
    committed = {row.body["draw"] for row in rows if row.kind == "commit"}
    return sum(row.body["count"] for row in rows if row.kind == "draw" and row.seq not in committed)
