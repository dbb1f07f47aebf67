"""Files that are complete or absent, however their writer ends.

A file is written as a draft in the same folder, whose name holds the writer's process number. It is
brought to disk and only then given its name. The next writer removes the draft of a killed one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Where this process drafts a file.

    >>> draft_of(Path("ledger.sqlite")).name == f".ledger.sqlite.{os.getpid()}.draft"
    True
    """
    return path.with_name(f".{path.name}.{os.getpid()}.draft")


def write_whole(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file, or replace it, on disk when this ends; whole or not at all.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    draft = draft_of(path)
    with suppress(FileNotFoundError):  # of an earlier process with the same number
        os.unlink(draft)
    try:
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    sync_folder(path.parent)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """The draft of a file that is not there yet; it gets its name when the block ends.

    Further files of the draft, whose names begin with its own, are gone then, as all are after a
    failure.

    Raises:
        FileExistsError: there is already a file of that name; it stays as it is.
        OSError: it cannot be written.
    """
    sweep(path)
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    draft = draft_of(path)
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.link(draft, path)  # fails where a file already is, unlike a rename
    finally:
        for name in os.listdir(path.parent):
            if name.startswith(draft.name):
                with suppress(OSError):
                    os.unlink(path.with_name(name))
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk: without it a new file may be gone after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


@contextmanager
def taking_turns(path: Path) -> Iterator[None]:
    """Of all processes that make the file at `path`, one at a time.

    Raises:
        OSError: the folder cannot be written to.
    """
    lock = _lock_of(path)
    while True:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever had it before has removed it: a lock on a file without a name excludes nobody.
            held = _is_named(descriptor, lock)
        except BaseException:
            os.close(descriptor)
            raise
        if held:
            break
        os.close(descriptor)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)
        with suppress(OSError):  # nothing was written to it
            os.close(descriptor)


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def sweep(path: Path) -> None:
    """Remove the drafts and the lock that killed writers of `path` left, and no running one's."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9]+)\.draft.*", re.DOTALL)
    with suppress(OSError):
        for name in os.listdir(path.parent):
            draft = pattern.fullmatch(name)
            if draft and not alive(int(draft[1])):
                with suppress(OSError):
                    os.unlink(path.with_name(name))
    with suppress(OSError):
        descriptor = os.open(_lock_of(path), os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(descriptor, _lock_of(path)):
                os.unlink(_lock_of(path))
        finally:
            os.close(descriptor)


def alive(process: int) -> bool:
    """Whether a process of that number is running, possibly another user's.

    >>> alive(os.getpid())
    True
    """
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
