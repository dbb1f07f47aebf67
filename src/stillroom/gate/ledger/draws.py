"""Draws of a block: the row first, then the noise, then the answer (L2)."""

from __future__ import annotations

import hashlib

import numpy as np

from stillroom.errors import BudgetExhausted
from stillroom.gate.ledger.blocks import Wish
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import Integers


def begin(store: Store, block: int, place: int, wish: Wish, count: int) -> tuple[int, int]:
    """Write a draw's row; return its number and how many of its rows may be answered."""
    mechanism, reserved = wish
    with store.transaction():
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
        allowance = count
        if capacity < reserved:
            allowance = min(count, capacity - _promised(store, block, place))
        body = {"wish": place, "count": count, "allowance": allowance, "drawn": drawn}
        row = store.append("draw", body, block)
    return row.seq, allowance


def _promised(store: Store, block: int, place: int) -> int:
    """Answers given, plus those a draw without a commit may have given before it was lost."""
    promised: dict[int, int] = {}
    for row in store.rows("block = ? AND kind IN ('draw', 'commit')", (block,)):
        if row.kind == "draw" and row.body["wish"] == place:
            promised[row.seq] = row.body["allowance"]
        elif row.kind == "commit" and row.body["draw"] in promised:
            promised[row.body["draw"]] = row.body["answered"]
    return sum(promised.values())


def commit(
    store: Store, block: int, draw: int, answers: Integers, answered: int, key: str | None
) -> None:
    """Store the noisy answers and close the draw, in one transaction."""
    content = np.ascontiguousarray(answers, dtype="<i8").tobytes()
    digest = hashlib.sha256(content).hexdigest()
    shape = ",".join(map(str, answers.shape))
    with store.transaction() as connection:
        store.append("commit", {"draw": draw, "answered": answered, "answers": digest}, block)
        connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (draw, key, shape, content))


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
    answers = np.frombuffer(content, dtype="<i8").astype(np.int64)
    return block, draw, answers.reshape([int(n) for n in shape.split(",")])
