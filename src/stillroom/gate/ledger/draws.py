"""Draws of a block: the row first, then the noise, then the answer (L2)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

import numpy as np

from stillroom.errors import BudgetExhausted
from stillroom.gate.ledger.blocks import Wish
from stillroom.gate.ledger.store import Row, Store
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
    capacity = mechanism.capacity(reserved)
    promised = _promised(store, block, last)
    allowance = count
    if capacity < reserved:
        allowance = min(count, capacity - promised.total(place))
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


def commit(
    store: Store, block: int, draw: int, answers: Integers, answered: int, key: str | None
) -> None:
    """Store the noisy answers and close the draw; only inside a transaction."""
    content = np.ascontiguousarray(answers, dtype="<i8").tobytes()
    digest = hashlib.sha256(content).hexdigest()
    shape = ",".join(map(str, answers.shape))
    store.append("commit", {"draw": draw, "answered": answered, "answers": digest}, block)
    store.insert_answers(draw, key, shape, content)


def recall(store: Store, key: str) -> tuple[int, int, Integers] | None:
    """The block, draw and answers stored under a cache key, if any (L7)."""
    found = store.query(
        "SELECT rows.block, draw, shape, content FROM answers JOIN rows ON rows.seq = draw "
        "WHERE key = ? ORDER BY draw LIMIT 1",
        (key,),
    )
    if not found:
        return None
    block, draw, shape, content = found[0]
    return block, draw, _array(shape, content)


def answers(store: Store, block: int, place: int) -> list[tuple[int, Integers]]:
    """The committed answers of one wish of a block, in order."""
    found = store.query(
        "SELECT draw, shape, content FROM answers JOIN rows ON rows.seq = draw "
        "WHERE block = ? AND json_extract(body, '$.wish') = ? ORDER BY draw",
        (block, place),
    )
    return [(draw, _array(shape, content)) for draw, shape, content in found]


def _array(shape: str, content: bytes) -> Integers:
    values = np.frombuffer(content, dtype="<i8").astype(np.int64)
    return values.reshape([int(n) for n in shape.split(",")])
