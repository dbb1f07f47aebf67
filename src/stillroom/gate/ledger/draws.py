"""Draws of a block: the row first, then the noise, then the answer (L2)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillroom.errors import BudgetExhausted
from stillroom.gate.ledger.blocks import Wish
from stillroom.gate.ledger.chain import Row
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import Integers


def begin(store: Store, block: int, place: int, wish: Wish, count: int) -> tuple[int, int]:
    """Write a draw's row; return its number and how many of its rows may be answered.

    Only inside a transaction.
    """
    mechanism, reserved = wish
    last = store.last("block = ? AND kind = 'draw'", (block,))
    drawn: dict[str, int] = dict(last.body["drawn"]) if last else {}
    taken = drawn.get(str(place), 0)
    if count < 1 or taken + count > reserved:
        raise BudgetExhausted(
            f"the block has {reserved - taken} answers left, {count} were asked",
            where=f"{store.path}, block {block}",
            why="every draw was paid for when the block was reserved; nothing was drawn",
            remedy="ask fewer, or reserve another block",
        )
    drawn[str(place)] = taken + count
    promised = _promised(store, block, last)
    allowance = min(count, mechanism.capacity(reserved) - promised.total(place))
    body = {
        # Equal draws of two copies of one ledger must not look like one draw.
        "nonce": os.urandom(8).hex(),
        "wish": place,
        "count": count,
        "allowance": allowance,
        "drawn": drawn,
        "settled": promised.settled,
        "open": promised.open,
    }
    return store.append("draw", body, block).seq, allowance


@dataclass
class _Promised:
    """Answers given by committed draws, and draws that may have given theirs before they were lost.

    Carried from draw to draw, so that the next one need not read them all.
    """

    settled: dict[str, int]
    open: list[list[int]]

    def total(self, place: int) -> int:
        unknown = sum(allowance for _, wish, allowance in self.open if wish == place)
        return self.settled.get(str(place), 0) + unknown


def _promised(store: Store, block: int, last: Row | None) -> _Promised:
    if last is None:
        return _Promised({}, [])
    waiting = [*last.body["open"], [last.seq, last.body["wish"], last.body["allowance"]]]
    oldest = waiting[0][0]
    commits = store.rows("block = ? AND kind = 'commit' AND seq > ?", (block, oldest))
    answered = {row.body["draw"]: row.body["answered"] for row in commits}
    settled = dict(last.body["settled"])
    for draw, wish, _ in waiting:
        if draw in answered:
            settled[str(wish)] = settled.get(str(wish), 0) + answered[draw]
    return _Promised(settled, [draw for draw in waiting if draw[0] not in answered])


def answerable(store: Store, block: int, place: int, wish: Wish) -> int:
    """How many more rows may be answered, where lost draws may have answered all of theirs."""
    mechanism, reserved = wish
    last = store.last("block = ? AND kind = 'draw'", (block,))
    return mechanism.capacity(reserved) - _promised(store, block, last).total(place)


def commit(store: Store, block: int, draw: int, answers: Integers, answered: int, key: str) -> None:
    """Store the noisy answers and close the draw; only inside a transaction."""
    content = np.ascontiguousarray(answers, dtype="<i8").tobytes()
    told = hashlib.sha256(content).hexdigest()
    body = {"draw": draw, "answered": answered, "answers": told, "question": key}
    shape = ",".join(map(str, answers.shape))
    store.append("commit", body, block)
    store.insert_answers(draw, key, shape, content)


@dataclass(frozen=True)
class Stored:
    """A committed answer: where it was drawn, the hash of its question, and how many rows it has.

    Older ledgers keep no question with a sum.
    """

    block: int
    draw: int
    key: str | None
    rows: int


def committed(store: Store, block: int, place: int) -> list[Stored]:
    """The committed answers of one wish of a block, in order."""
    return _stored(store, "block = ? AND json_extract(body, '$.wish') = ?", (block, place))


def known(store: Store, key: str) -> Stored | None:
    """The first answer under this key, if any (L7)."""
    return next(iter(_stored(store, "key = ?", (key,))), None)


def _stored(store: Store, where: str, values: tuple[Any, ...]) -> list[Stored]:
    found = store.query(
        "SELECT rows.block, draw, key, shape FROM answers JOIN rows ON rows.seq = draw "
        f"WHERE {where} ORDER BY draw",
        values,
    )
    return [Stored(block, draw, key, _shape(shape)[0]) for block, draw, key, shape in found]


def answers(store: Store, draw: int) -> Integers:
    """The noisy answers of a committed draw."""
    ((shape, content),) = store.query("SELECT shape, content FROM answers WHERE draw = ?", (draw,))
    return np.frombuffer(content, dtype="<i8").astype(np.int64).reshape(_shape(shape))


def _shape(told: str) -> list[int]:
    return [int(n) for n in told.split(",")]
