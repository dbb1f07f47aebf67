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
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from stillroom.data.store import home
from stillroom.errors import BadInput, DoesNotVerify, WrongData
from stillroom.gate.ledger.chain import Head
from stillroom.gate.ledger.database import connect
from stillroom.gate.ledger.members import fingerprints, key_for_new, read_key
from stillroom.vocabulary import Identities

_SCHEMA = (
    "CREATE TABLE ledgers (id TEXT PRIMARY KEY, path TEXT, seq INTEGER, hash TEXT)",
    "CREATE TABLE members (hmac BLOB, ledger TEXT, PRIMARY KEY (hmac, ledger))",
)


class Register:
    """The register in the user's home."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or home()
        self._file = self._folder / "known-ledgers.sqlite"
        self._key_file = self._folder / "known-ledgers.key"

    @contextmanager
    def locked(self, ledger: str) -> Iterator[None]:
        """Nobody else in this home changes a copy of this ledger meanwhile.

        The register is compared and advanced under it, so that of two copies only one goes on.
        """
        folder = self._folder / "locks"
        with self._explained():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(folder / f"{ledger}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            with self._explained():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            with suppress(OSError):  # nothing was written to it
                os.close(descriptor)  # which also gives the lock back

    def _damaged(self, told: object) -> DoesNotVerify:
        return DoesNotVerify(
            f"the register of known ledgers is damaged ({told})",
            where=str(self._file),
            why="it cannot say how far the ledgers had come, nor which records they hold",
            remedy=f"restore it and {self._key_file.name} from a copy of the folder; if there is "
            "none, move both away, and compare every ledger with a head kept elsewhere "
            "(stillroom ledger verify --head) before it is used again",
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            raise BadInput(
                f"the register of known ledgers cannot be read or written ({told})",
                where=str(self._file),
                why="without it a ledger that went back in time is not noticed",
                remedy="make room, make the folder writable, or name another in STILLROOM_HOME",
            ) from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _connect(self, *, make: bool = False) -> sqlite3.Connection:
        if make:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))
        return connect(self._file, "mode=rw")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained(), closing(self._connect(make=True)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            if not _any_row(connection, "sqlite_master"):
                if self._has_key():
                    raise self._damaged("it is empty, and was not")
                for statement in _SCHEMA:
                    connection.execute(statement)
                # On disk before there is a key: that is how a register that was lost is noticed.
                connection.execute("COMMIT")
                connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """The register, to look at and not to change; None where nothing was ever entered."""
        with self._explained():
            had_key = self._has_key()  # first: whoever makes the key has made the tables before
            missing = not self._file.exists()
        if missing:
            if had_key:
                raise self._damaged("it is gone, and its key is there")
            yield None
            return
        with self._explained(), closing(self._connect()) as connection:
            empty = not _any_row(connection, "sqlite_master")
            if empty and had_key:
                raise self._damaged("it is empty, and was not")
            yield None if empty else connection

    def _has_key(self) -> bool:
        return self._key_file.exists() and self._key_file.stat().st_size > 0

    def enter(self, ledger: str, path: Path, whose: Identities) -> None:
        """Note that these records belong to this ledger.

        Raises:
            WrongData: some of them belong to another ledger.
        """
        with self.entering(ledger, path, whose):
            pass

    @contextmanager
    def entering(self, ledger: str, path: Path, whose: Identities) -> Iterator[None]:
        """Enter a ledger if what is done meanwhile succeeds; nobody else enters one meanwhile.

        Raises:
            WrongData: some of the records belong to another ledger.
        """
        with self._transaction() as connection:
            new = not _any_row(connection, "members")
            # A new key would not recognise the records that were entered under the old one.
            key = key_for_new(self._key_file) if new else read_key(self._key_file)
            prints = fingerprints(key, whose.ids, whose.persons)
            _refuse_members_of_others(connection, prints, ledger, path)
            connection.execute(
                "INSERT INTO ledgers VALUES (?, ?, 0, '') "
                "ON CONFLICT (id) DO UPDATE SET path = excluded.path",
                (ledger, str(path.resolve())),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO members VALUES (?, ?)", [(p, ledger) for p in prints]
            )
            yield

    def refuse_others(self, ledger: str, path: Path, whose: Identities) -> None:
        """Refuse records that `entering` would refuse, and change nothing.

        Args:
            ledger: the ledger they may belong to; none where it is not made yet.
            path: where it is, or will be.
            whose: the records.

        Raises:
            WrongData: some of them belong to another ledger.
        """
        with self._reading() as connection:
            if connection is None or not _any_row(connection, "members"):
                return
            prints = fingerprints(read_key(self._key_file), whose.ids, whose.persons)
            _refuse_members_of_others(connection, prints, ledger, path)

    def holds(self, ids: Iterable[str]) -> bool:
        """Whether at least one of these records belongs to a known ledger; changes nothing."""
        with self._reading() as connection:
            if connection is None or not _any_row(connection, "members"):
                return False
            return any(
                connection.execute("SELECT 1 FROM members WHERE hmac = ?", (print_,)).fetchone()
                for print_ in fingerprints(read_key(self._key_file), ids)
            )

    def advance(self, ledger: str, path: Path, head: Head) -> None:
        """Remember the newest head; never an older one."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO ledgers VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET seq = excluded.seq, hash = excluded.hash WHERE excluded.seq > seq",
                (ledger, str(path.resolve()), head.seq, head.hash),
            )

    def head(self, ledger: str) -> Head | None:
        """The newest head seen, if this ledger is known."""
        with self._reading() as connection:
            if connection is None:
                return None
            row = connection.execute(
                "SELECT seq, hash FROM ledgers WHERE id = ?", (ledger,)
            ).fetchone()
        return Head(*row) if row and row[0] else None


def _refuse_members_of_others(
    connection: sqlite3.Connection, prints: Iterable[bytes], ledger: str, path: Path
) -> None:
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


def _any_row(connection: sqlite3.Connection, table: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
