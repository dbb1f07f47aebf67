"""What a ledger tells without being changed: whose it is, what it promised, what was spent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stillroom.gate import renyi
from stillroom.gate.accounting import price
from stillroom.gate.events import Line
from stillroom.gate.ledger import members
from stillroom.gate.ledger.blocks import ALL_PAIRS, Wish, lines_of, wishes_from_json
from stillroom.gate.ledger.budget import Spent, Totals, share_spent, totals_from_json
from stillroom.gate.ledger.chain import Head, broken
from stillroom.gate.ledger.creation import FROM_CONTENT, Purpose, checked_id
from stillroom.gate.ledger.promises import KINDS, Promises
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import CHANGED_RECORD, Budget, Pair, Sealed, check_delta


class Books:
    """The rows of a ledger, its chain checked, to read.

    Args:
        store: the rows.
        key: what its records are recognised by, where it does not lie beside the file.
    """

    def __init__(self, store: Store, key: bytes | None = None) -> None:
        self._store = store
        self._own_key = key
        store.check_chain()
        first = next(store.rows("seq = 1"), None)
        if first is None or first.kind != "open":
            raise broken(store.path, 1, "it does not begin with its opening row")
        try:
            self.id = checked_id(first.body["ledger"])
            self.purpose = Purpose(first.body["purpose"])
            self.ids_from_content: bool = first.body["ids"] == FROM_CONTENT
        except (KeyError, TypeError, ValueError):
            raise broken(store.path, 1, "its opening row cannot be read") from None

    @property
    def path(self) -> Path:
        return self._store.path

    @property
    def store(self) -> Store:
        """The rows, for readers."""
        return self._store

    def head(self) -> Head:
        """The newest row; keep it where the ledger cannot be, to notice a rollback."""
        return self._store.head()

    def key(self) -> bytes:
        """What its records are recognised by; never in the ledger itself."""
        return self._own_key or members.read_key(members.key_path(self.path))

    @property
    def unproven(self) -> frozenset[Pair]:
        """What cannot be promised for these records, whatever is drawn.

        A record whose id is made from its content gets another id with its content, and with it
        perhaps another part or shard: it is not the same record changed.
        """
        return frozenset({CHANGED_RECORD} if self.ids_from_content else ())

    def recognises(self, ids: Iterable[str], own: Sealed[Any] | None = None) -> bool:
        """Whether at least one of these records has been seen before; changes nothing.

        Args:
            ids: of the records.
            own: what the ledger answers for now. Where it has never seen anything else, ids are
                compared as they are: hundreds of ledgers are asked about the same many ids.
        """
        key, seen = self.key(), members.seen(self._store)
        if own is not None:
            whose = own.sealed_ids()
            if seen == set(members.fingerprints(key, whose.ids, whose.persons)):
                return not set(map(str, whose.ids)).isdisjoint(map(str, ids))
        return not seen.isdisjoint(members.fingerprints(key, ids))

    def protects(self, *parts: Iterable[str] | Sealed[Any]) -> bool:
        """Whether this ledger, or another for release, answers for one of these records.

        Args:
            parts: ids of records, or sealed records.
        """
        told = [p.sealed_ids().ids if isinstance(p, Sealed) else p for p in parts]
        records = [str(i) for ids in told for i in ids]
        # Also for a benchmark: what a release promised to protect is public nowhere in this home.
        return self.recognises(records) or Register().holds(records)

    @property
    def promises(self) -> Promises:
        """Whom this ledger protects, and its budgets in force."""
        paid = self._store.last("kind = 'block'") is not None
        return Promises(self._store.rows(f"kind IN {KINDS}"), self.unproven, paid=paid)

    def budgets(self) -> list[Budget]:
        """The budgets in force, one per pair."""
        return self.promises.budgets

    def totals(self) -> Totals:
        """The Renyi losses of all blocks so far, for each pair they are finite for."""
        row = self._store.last("kind = 'block'")
        if row is None:
            return dict.fromkeys(ALL_PAIRS, renyi.NOTHING)
        return totals_from_json(row.body["totals"])

    def spent(self, pair: Pair, delta: float) -> float:
        """All blocks so far at `delta`, had they been fixed beforehand."""
        check_delta(delta)
        rows = list(self._store.rows("kind = 'block'"))
        if pair in self.unproven or any(row.body["noise"] != "os" for row in rows):
            return math.inf
        if len(rows) == 1:
            # A single block was priced whole, and the tightest accountant's figure holds.
            stored = rows[0].body["epsilon"].get(str(pair), {}).get(str(delta))
            if stored is not None:
                return float(stored.get("certified", math.inf))
        return price(self.events(), pair).rdp(delta)

    def events(self) -> list[Line]:
        """Everything that was charged so far; nothing of it is finite where noise is repeatable."""
        return lines_of(self._store.rows("kind = 'block'"))

    def standing(self) -> list[Spent]:
        """Every budget and what it has seen."""
        totals = self.totals()
        return [
            Spent(
                b, self.spent(b.pair, b.delta), share_spent(totals.get(b.pair, renyi.INFINITE), b)
            )
            for b in self.budgets()
        ]

    def reserved(self, recipe_hash: str, noise: str) -> tuple[int, dict[str, Wish]] | None:
        """The newest block under this recipe and its wishes, to go on with."""
        for row in reversed(list(self._store.rows("kind = 'block'"))):
            if row.body["recipe"] == recipe_hash and row.body["noise"] == noise:
                return row.seq, wishes_from_json(row.body["wishes"])
        return None

    def drawn(self, block: int, place: int) -> int:
        """How many answers of a wish were begun, lost ones included."""
        last = self._store.last("block = ? AND kind = 'draw'", (block,))
        return int(last.body["drawn"].get(str(place), 0)) if last else 0
