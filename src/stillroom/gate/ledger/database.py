"""SQLite files as this package opens them, and what their errors mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stillroom.errors import BadInput, DoesNotVerify

_WAIT_SECONDS = 120.0


def connect(file: Path, options: str) -> sqlite3.Connection:
    """A connection to a file that exists; it waits for other writers."""
    return sqlite3.connect(
        f"{file.resolve().as_uri()}?{options}",
        uri=True,
        isolation_level=None,
        timeout=_WAIT_SECONDS,
        check_same_thread=False,
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What the file system and SQLite say of a ledger's file, as errors of this package."""
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
            remedy="check the path; if that is your ledger, restore the newest backup: a head kept "
            "elsewhere tells whether it is",
        ) from None


def already_there(path: Path) -> BadInput:
    """The error for a place that is taken."""
    return BadInput(
        "there is already a file at that place",
        where=str(path),
        why="overwriting a ledger would forget what was spent",
        remedy="open the existing ledger, or choose another place",
    )


def remove(draft: Path) -> None:
    """A draft and what SQLite keeps beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):
            os.unlink(f"{draft}{suffix}")
