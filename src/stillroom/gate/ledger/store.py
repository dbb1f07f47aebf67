"""The file behind a ledger: append-only, hash-chained rows in SQLite (WAL, synchronous=FULL).

Row n carries the SHA-256 of row n-1 and of itself, so a changed, removed or reordered row breaks
the chain. This finds accidents and clumsy edits, not a forger who rewrites the whole file: heads
kept elsewhere (register.py, run folders, certificates) find that.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stillroom.durable import draft_of, sync_folder
from stillroom.errors import BadInput, DoesNotVerify, StillroomError

SCHEMA_VERSION = 2
_APPLICATION_ID = 0x5711100D
_WAIT_SECONDS = 120.0

_SCHEMA = """
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    block INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX rows_by_block ON rows (block, kind, seq);
CREATE INDEX rows_by_kind ON rows (kind, seq);
CREATE TABLE members (hmac BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
    draw INTEGER PRIMARY KEY,
    key TEXT,
    shape TEXT NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX answers_by_key ON answers (key);
"""

_GUARDS = "".join(
    f"CREATE TRIGGER {table}_never_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;\n"
    for table in ("rows", "members", "answers")
    for verb in ("UPDATE", "DELETE")
)

_EMPTY = (
    f"BEGIN; PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; "
    f"{_SCHEMA} {_GUARDS} COMMIT;"
)

DATED = ("open", "unit", "budget", "unset", "block")
"""Rows that tell their day. No other row tells a time: a step takes as long as its batch (K10)."""


@dataclass(frozen=True)
class Row:
    """One line of the ledger; `at` is a day, or empty."""

    seq: int
    at: str
    kind: str
    block: int | None
    body: dict[str, Any]
    hash: str


@dataclass(frozen=True)
class Head:
    """The last row's number and hash: enough to notice a ledger that went back in time."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        seq, _, digest = text.partition(":")
        if not re.fullmatch("[0-9]{1,18}", seq) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise BadInput(
                f"{text!r} is not a ledger head",
                where="head",
                why="a head is how a rolled-back ledger is noticed",
                remedy="copy it from `stillroom ledger show`: NUMBER:HASH",
            )
        return cls(int(seq), digest)


def canonical(body: Any) -> str:
    """One spelling for one JSON value, so that a hash is a hash of the meaning."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def row_hash(previous: str, seq: int, at: str, kind: str, block: int | None, body: str) -> str:
    """The link of one row to all before it."""
    return hashlib.sha256(canonical([previous, seq, at, kind, block, body]).encode()).hexdigest()


def check_links(
    rows: Iterable[tuple[int, str, str, int | None, str, str]], where: Path | str
) -> None:
    """Recompute every link of rows as they are stored, from the first on.

    Raises:
        DoesNotVerify: a row was changed, removed, added or reordered.
    """
    previous = ""
    for expected, (seq, at, kind, block, body, digest) in enumerate(rows, 1):
        texts = all(isinstance(text, str) for text in (at, kind, body))
        linked = texts and row_hash(previous, seq, at, kind, block, body) == digest
        if seq != expected or not linked:
            raise broken(where, expected, "the chain of hashes breaks")
        previous = digest


class Store:
    """Rows on disk; many processes may share one file."""

    def __init__(self, path: Path, *, read_only: bool = False, journal: str = "WAL") -> None:
        self.path = path
        self._journal = journal
        self.read_only = read_only
        self._file = Path(os.path.abspath(path))
        self._pid = -1
        self._connection: sqlite3.Connection | None = None
        with _explained(path):
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
            _remove(draft)  # of an earlier process with the same number
            with _explained(path):
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                with closing(sqlite3.connect(draft, isolation_level=None)) as made:
                    made.executescript(_EMPTY)
            # Not WAL: what could not be moved over from there would be left behind.
            with closing(cls(draft, journal="DELETE")) as store:
                fill(store)
            with registering, _explained(path):
                os.link(draft, path)  # fails where a file already is, unlike a rename
                sync_folder(path.parent)
        finally:
            _remove(draft)

    def _connect(self) -> sqlite3.Connection:
        """The connection of this process."""
        # A connection must not be carried over a fork.
        if self._connection is None or self._pid != os.getpid():
            if self.read_only:
                connection = self._connect_to_read()
            else:
                connection = self._connect_to("mode=rw")
                connection.execute(f"PRAGMA journal_mode = {self._journal}")
                connection.execute("PRAGMA synchronous = FULL")
            self._connection, self._pid = connection, os.getpid()
            self._opened = os.stat(self._file)
        return self._connection

    def _connect_to(self, options: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._file.resolve().as_uri()}?{options}",
            uri=True,
            isolation_level=None,
            timeout=_WAIT_SECONDS,
            check_same_thread=False,
        )

    def _connect_to_read(self) -> sqlite3.Connection:
        connection = self._connect_to("mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
                raise
            # Not even a reader can open it where the folder cannot be written to, unless it is
            # told that nobody writes. Then it looks at this one file alone.
            wal = self._file.with_name(self._file.name + "-wal")
            if wal.exists() and wal.stat().st_size > 0:
                raise BadInput(
                    "the ledger's newest rows are in its -wal file, which cannot be read here",
                    where=str(wal),
                    why="without them the ledger would seem to have spent less",
                    remedy=f"copy {self.path.name}, its -wal and its .key to a folder that can be "
                    "written to, and look at the copy",
                ) from None
            connection = self._connect_to("mode=ro&immutable=1")
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
                remedy="check the path, or make one with stillroom.Ledger.create",
            )
        connection = self._connect()
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
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
        with _explained(self.path):
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

    def append(self, kind: str, body: dict[str, Any], block: int | None = None) -> Row:
        """Add a row; only inside a transaction."""
        connection = self._connect()
        assert connection.in_transaction
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
        connection = self._connect()
        assert connection.in_transaction
        connection.executemany("INSERT INTO members VALUES (?, ?)", members)

    def insert_answers(self, draw: int, key: str, shape: str, content: bytes) -> None:
        """Keep the noisy answers of a draw; only inside a transaction."""
        connection = self._connect()
        assert connection.in_transaction
        connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (draw, key, shape, content))

    def rows(self, where: str = "1", values: tuple[Any, ...] = ()) -> Iterator[Row]:
        """Rows in order; `where` is a condition of this package, never of a user."""
        with _explained(self.path):
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
        with _explained(self.path):
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
        with _explained(self.path):
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
        self._connection.executescript(_EMPTY)

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


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise already_there(path) from None
    except (OSError, sqlite3.OperationalError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise BadInput(
            f"the ledger cannot be read or written ({told})",
            where=str(path),
            why="without a ledger nothing may be drawn",
            remedy="check the path, the permissions and the free disk space",
        ) from None
    except sqlite3.DatabaseError as error:
        raise DoesNotVerify(
            f"the ledger is damaged or is not a ledger ({error})",
            where=str(path),
            why="a damaged ledger cannot say what was spent",
            remedy="restore the newest backup; a head kept elsewhere tells whether it is",
        ) from None


def already_there(path: Path) -> BadInput:
    """The error for a place that is taken."""
    return BadInput(
        "there is already a file at that place",
        where=str(path),
        why="overwriting a ledger would forget what was spent",
        remedy="open the existing ledger, or choose another place",
    )


def _remove(draft: Path) -> None:
    """A draft and what SQLite keeps beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):
            os.unlink(f"{draft}{suffix}")


def broken(path: Path | str, seq: int, what: str) -> StillroomError:
    """The error for a ledger that was tampered with."""
    return DoesNotVerify(
        f"the ledger does not verify at row {seq}: {what}",
        where=str(path),
        why="an altered ledger may hide what was spent, so no epsilon can be vouched for",
        remedy="restore the newest backup; do not release anything from this ledger",
    )
