"""The release ledgers this user knows: whose data they hold and how far they had come (L1, L8).

Kept in the user's own home, outside every ledger, so that an old copy of a ledger is recognised as
old, and so that a second ledger on the same records cannot start from zero. Copies used under
another home are a known weakness.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stillroom.data.store import home
from stillroom.errors import BadInput, DoesNotVerify, WrongData
from stillroom.gate.ledger.members import fingerprints, make_key, read_key
from stillroom.gate.ledger.store import Head

_SCHEMA = """
CREATE TABLE IF NOT EXISTS ledgers (id TEXT PRIMARY KEY, path TEXT, seq INTEGER, hash TEXT);
CREATE TABLE IF NOT EXISTS members (hmac BLOB, ledger TEXT, PRIMARY KEY (hmac, ledger));
"""


class KnownLedgers:
    """The register in the user's home."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or home()
        self._file = self._folder / "known-ledgers.sqlite"

    @contextmanager
    def locked(self, ledger: str) -> Iterator[None]:
        """Nobody else in this home changes a copy of this ledger meanwhile.

        The register is compared and advanced under it, so that of two copies only one goes on.
        """
        with self._explained():
            folder = self._folder / "locks"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(folder / f"{ledger}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)  # which also gives the lock back

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            raise BadInput(
                f"the register of known ledgers cannot be opened ({error})",
                where=str(self._folder),
                why="without it a ledger that went back in time is not noticed",
                remedy="make the folder writable, or name another in STILLROOM_HOME",
            ) from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))
            connection = sqlite3.connect(self._file, isolation_level=None, timeout=120.0)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.strip().splitlines():
                connection.execute(statement)
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _key(self, connection: sqlite3.Connection) -> bytes:
        path = self._folder / "known-ledgers.key"
        empty = connection.execute("SELECT 1 FROM members LIMIT 1").fetchone() is None
        # A new key would not recognise the records that were entered under the old one.
        return make_key(path) if empty and not path.exists() else read_key(path)

    def enter(self, ledger: str, path: Path, ids: list[str], persons: list[str] | None) -> None:
        """Note that these records belong to this ledger.

        Raises:
            WrongData: some of them belong to another ledger.
        """
        with self._transaction() as connection:
            prints = fingerprints(self._key(connection), ids, persons)
            for print_ in prints:
                other = connection.execute(
                    "SELECT ledgers.path FROM members JOIN ledgers ON ledgers.id = ledger "
                    "WHERE hmac = ? AND ledger != ?",
                    (print_, ledger),
                ).fetchone()
                if other:
                    raise WrongData(
                        "some of these records already belong to another ledger",
                        where=str(path),
                        why=f"two budgets for one record add up; theirs is {other[0]}",
                        remedy="use that ledger; if it is lost, restore it from a backup",
                    )
            connection.execute(
                "INSERT INTO ledgers VALUES (?, ?, 0, '') "
                "ON CONFLICT (id) DO UPDATE SET path = excluded.path",
                (ledger, str(path.resolve())),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO members VALUES (?, ?)", [(p, ledger) for p in prints]
            )

    def holds(self, ids: Iterable[str]) -> bool:
        """Whether at least one of these records belongs to a known ledger; changes nothing."""
        if not self._file.exists():
            return False
        with self._transaction() as connection:
            return any(
                connection.execute("SELECT 1 FROM members WHERE hmac = ?", (print_,)).fetchone()
                for print_ in fingerprints(self._key(connection), ids)
            )

    def advance(self, ledger: str, head: Head) -> None:
        """Remember the newest head; never an older one."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE ledgers SET seq = ?, hash = ? WHERE id = ? AND seq < ?",
                (head.seq, head.hash, ledger, head.seq),
            )

    def head(self, ledger: str) -> Head | None:
        """The newest head seen, if this ledger is known."""
        if not self._file.exists():
            return None
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT seq, hash FROM ledgers WHERE id = ?", (ledger,)
            ).fetchone()
        return Head(*row) if row and row[0] else None


def rolled_back(path: Path, head: Head) -> DoesNotVerify:
    """The error for a ledger that went back in time."""
    return DoesNotVerify(
        f"the ledger does not contain row {head.seq}, which was seen before",
        where=str(path),
        why="it is an older copy or another history; what was spent since would be forgotten",
        remedy="restore the newest copy of the ledger",
    )
