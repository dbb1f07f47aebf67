"""Only the newest copy of a ledger may be changed (L8).

A copy is old if it lacks a row that was seen before: by the register in the user's home, by the
run or certificate that kept a head, or by this very process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from stillroom.errors import DoesNotVerify
from stillroom.gate.ledger.chain import Head
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import Store


@dataclass(eq=False, repr=False)
class NewestCopy:
    """Changes of one copy of a ledger, each compared with what was seen of the ledger before.

    Args:
        store: the copy.
        ledger: the ledger's id.
        known: the register, for ledgers that it keeps.
    """

    _store: Store
    _ledger: str
    _known: Register | None

    def __post_init__(self) -> None:
        self._seen: Head | None = None
        self._keep: Callable[[Head], None] = lambda head: None

    def expect(self, head: Head | None) -> None:
        """Refuse a copy without the row that was seen before, now and whenever it is changed.

        Raises:
            DoesNotVerify: the copy lacks it, or one that the register has seen.
        """
        self._seen = head
        self._refuse_if_rolled_back()

    def tell(self, keep: Callable[[Head], None]) -> None:
        """Hand every new head to `keep`, which brings it to a place of its own."""
        self._keep = keep

    def _refuse_if_rolled_back(self) -> None:
        known = self._known.head(self._ledger) if self._known else None
        for head in (self._seen, known):
            if head is not None and not self._store.contains(head):
                raise rolled_back(self._store.path, head)

    @contextmanager
    def change(self) -> Iterator[None]:
        """All or nothing, on disk when it ends; on an old copy, nothing.

        Copies of one ledger in one home share a lock. Under it the copy is compared with the
        register, changed, and the register moved on, so that of two copies only one can go on. A
        crash between the last two leaves a ledger that is ahead of the register and of whoever
        keeps heads, which is fine: noise is drawn only after all three.
        """
        with self._known.locked(self._ledger) if self._known else nullcontext():
            with self._store.transaction():
                self._refuse_if_rolled_back()
                yield
                head = self._store.head()
            self._seen = head
            if self._known is not None:
                self._known.advance(self._ledger, self._store.path, head)
            self._keep(head)


def rolled_back(path: Path, head: Head) -> DoesNotVerify:
    """The error for a ledger that went back in time."""
    return DoesNotVerify(
        f"the ledger does not contain row {head.seq}, which was seen before",
        where=str(path),
        why="it is an older copy or another history; what was spent since would be forgotten",
        remedy="restore the newest copy of the ledger",
    )
