"""The file behind a ledger: append-only, hash-chained rows in SQLite (WAL, synchronous=FULL)."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stillroom.durable import draft_of, sync_folder
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate.ledger.chain import Head, Row, broken, canonical, check_links, row_hash
from stillroom.gate.ledger.database import connect, explained, remove
from stillroom.gate.ledger.schema import APPLICATION_ID, EMPTY, SCHEMA_VERSION
from stillroom.nearest import near_file

DATED = ("open", "unit", "budget", "unset", "block")
"""Rows that tell their day. No other row tells a time: a step takes as long as its batch (K10)."""


class Store:
    """Rows on disk; many processes may share one file."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        traceless: bool = False,
        journal: str = "WAL",
    ) -> None:
        self.path = path
        self._journal = journal
        self.read_only = read_only
        self._traceless = traceless
        self._file = Path(os.path.abspath(path))
        self._pid = -1
        self._connection: sqlite3.Connection | None = None
        with explained(path):
            self._check_header()

    @classmethod
    def create(
        cls,
        path: Path,
        fill: Callable[[Store], None],
        registering: AbstractContextManager[None],
    ) -> None:
        """A new file at `path`, complete or absent.

        Assumes: nobody else makes one there meanwhile.

        Args:
            path: where it will be.
            fill: writes its first rows.
            registering: held while the file gets its name.

        Raises:
            BadInput: there is something at that place, or it cannot be written to.
        """
        draft = draft_of(path)
        try:
            remove(draft)  # of an earlier process with the same number
            with explained(path):
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                with closing(sqlite3.connect(draft, isolation_level=None)) as made:
                    made.executescript(EMPTY)
            # Not WAL: what could not be moved over from there would be left behind.
            with closing(cls(draft, journal="DELETE")) as store:
                fill(store)
            with registering, explained(path):
                os.link(draft, path)  # fails where a file already is, unlike a rename
                sync_folder(path.parent)
        finally:
            remove(draft)

    def _connect(self) -> sqlite3.Connection:
        """The connection of this process."""
        # A connection must not be carried over a fork.
        if self._connection is None or self._pid != os.getpid():
            if self.read_only:
                connection = self._connect_to_read()
            else:
                connection = connect(self._file, "mode=rw")
                connection.execute(f"PRAGMA journal_mode = {self._journal}")
                connection.execute("PRAGMA synchronous = FULL")
            self._connection, self._pid = connection, os.getpid()
            self._opened = os.stat(self._file)
        return self._connection

    def _connect_to_read(self) -> sqlite3.Connection:
        wal = self._file.with_name(self._file.name + "-wal")
        newest_rows_in_wal = wal.exists() and wal.stat().st_size > 0
        if self._traceless and not newest_rows_in_wal:
            # An ordinary reader leaves files of SQLite's own beside the ledger.
            return connect(self._file, "mode=ro&immutable=1")
        connection = connect(self._file, "mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
                raise
            # Not even a reader can open it where the folder cannot be written to, unless it is
            # told that nobody writes. Then it looks at this one file alone.
            if newest_rows_in_wal:
                raise BadInput(
                    "the ledger's newest rows are in its -wal file, which cannot be read here",
                    where=str(wal),
                    why="without them the ledger would seem to have spent less",
                    remedy=f"copy {self.path.name}, its -wal and its .key to a folder that can be "
                    "written to, and look at the copy",
                ) from None
            connection = connect(self._file, "mode=ro&immutable=1")
        return connection

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = None

    def _check_header(self) -> None:
        if not self.path.is_file():
            raise BadInput(
                "there is no ledger at that place",
                where=str(self.path),
                why="without a ledger nothing may be drawn",
                remedy=f"{near_file(self.path)}check the path; the first `stillroom release` of "
                "a recipe makes its ledger",
            )
        connection = self._connect()
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise DoesNotVerify(
                "the file is a database, but not a ledger",
                where=str(self.path),
                why="its rows would mean nothing",
                remedy="check the path",
            )
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version == 1:
            raise BadInput(
                "the ledger was made by a version whose prices could be too small",
                where=str(self.path),
                why="its totals are not to be trusted; CHANGELOG lists the faults under Privacy",
                remedy="keep it as a record of what was told, and draw nothing more from it",
            )
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"the ledger has schema version {version}, this stillroom knows {SCHEMA_VERSION}",
                where=str(self.path),
                why="rows of an unknown version could be misread",
                remedy="upgrade stillroom",
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, one writer at a time, on disk when it ends."""
        with explained(self.path):
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._refuse_if_replaced()
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _refuse_if_replaced(self) -> None:
        """What is written to a file that has lost its name is forgotten with it."""
        try:
            same = os.path.samestat(os.stat(self._file), self._opened)
        except OSError:
            same = False
        if not same:
            raise DoesNotVerify(
                "the ledger's file was replaced or removed while it was in use",
                where=str(self.path),
                why="what is spent now would be missing in the file that lies there",
                remedy="restore the newest copy of the ledger and give the command again",
            )

    def _changing(self) -> sqlite3.Connection:
        connection = self._connect()
        assert connection.in_transaction
        return connection

    def append(self, kind: str, body: dict[str, Any], block: int | None = None) -> Row:
        """Add a row; only inside a transaction."""
        connection = self._changing()
        last = connection.execute("SELECT seq, hash FROM rows ORDER BY seq DESC LIMIT 1").fetchone()
        seq, previous = (last[0] + 1, last[1]) if last else (1, "")
        at = datetime.now(UTC).date().isoformat() if kind in DATED else ""
        text = canonical(body)
        digest = row_hash(previous, seq, at, kind, block, text)
        connection.execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", (seq, at, kind, block, text, digest)
        )
        return Row(seq, at, kind, block, body, digest)

    def insert_members(self, members: list[tuple[bytes, int]]) -> None:
        """Add fingerprints; only inside a transaction."""
        self._changing().executemany("INSERT INTO members VALUES (?, ?)", members)

    def insert_answers(self, draw: int, key: str, shape: str, content: bytes) -> None:
        """Keep the noisy answers of a draw; only inside a transaction."""
        row = (draw, key, shape, content)
        self._changing().execute("INSERT INTO answers VALUES (?, ?, ?, ?)", row)

    def rows(self, where: str = "1", values: tuple[Any, ...] = ()) -> Iterator[Row]:
        """Rows in order; `where` is a condition of this package, never of a user."""
        with explained(self.path):
            query = f"SELECT seq, at, kind, block, body, hash FROM rows WHERE {where} ORDER BY seq"
            for seq, at, kind, block, body, digest in self._connect().execute(query, values):
                try:
                    content = json.loads(body)
                except (TypeError, ValueError, RecursionError):
                    raise broken(self.path, seq, "it cannot be read") from None
                yield Row(seq, at, kind, block, content, digest)

    def last(self, where: str, values: tuple[Any, ...] = ()) -> Row | None:
        """The newest row that fulfils `where`."""
        order = f"seq = (SELECT MAX(seq) FROM rows WHERE {where})"
        return next(self.rows(order, values), None)

    def query(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """A read of the other tables."""
        with explained(self.path):
            return self._connect().execute(sql, values).fetchall()

    def has_members(self) -> bool:
        """Whether any record has been entered."""
        return bool(self.query("SELECT 1 FROM members LIMIT 1"))

    def head(self) -> Head:
        """The newest row."""
        row = self.last("1")
        if row is None:
            raise broken(self.path, 0, "it has no rows")
        return Head(row.seq, row.hash)

    def contains(self, head: Head) -> bool:
        """Whether the ledger still holds the row a head names."""
        return self.query("SELECT hash FROM rows WHERE seq = ?", (head.seq,)) == [(head.hash,)]

    def check_chain(self) -> None:
        """Recompute every link.

        Raises:
            DoesNotVerify: a row was changed, removed, added or reordered.
        """
        with explained(self.path):
            query = "SELECT seq, at, kind, block, body, hash FROM rows ORDER BY seq"
            check_links(self._connect().execute(query), self.path)


class MemoryStore(Store):
    """Rows in the memory of one process; closing it frees them."""

    def __init__(self) -> None:
        self.path = Path(":memory:")
        self.read_only = False
        self._pid = os.getpid()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.executescript(EMPTY)

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None or self._pid != os.getpid():
            raise BadInput(
                "a ledger in memory is used after it was closed, or in another process",
                where=str(self.path),
                why="what is spent there would be missing here",
                remedy="use it in the process that made it, or make a ledger with a file",
            )
        return self._connection

    def _refuse_if_replaced(self) -> None:
        """There is no file that could be."""
