"""A run: one folder that lets the same command go on where it was cut off.

The ledger holds everything that was drawn; the folder holds only the run's name, under which its
block is found again, and the heads of the ledger it saw (L8): one beside the name, on disk when the
block is paid for, and the newest in a file of its own, which every draw replaces.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stillroom.documents import file_content, json_object
from stillroom.errors import BadInput, StillroomError
from stillroom.gate import Head
from stillroom.release.files import RUN_STATE

LARGEST_STATE = 64 << 10
STATE, NEWEST, PARTIES = RUN_STATE, "head", "parties"


@dataclass
class Run:
    """The state of a run on disk.

    Args:
        folder: where it lives.
        name: a random name; with the recipe it identifies the run's block in the ledger.
        recipe_hash: of the recipe it was begun with.
        head: the last head of the ledger it saw.
        paid: whether its block is paid for, or may be: a run that died while paying cannot know.
    """

    folder: Path
    name: str
    recipe_hash: str
    head: Head | None = None
    paid: bool = False

    def block_recipe(self, recipe: str) -> str:
        """What the block is reserved under: this recipe in this run."""
        return f"{self.name}\n{recipe}"

    def of_party(self, party: str) -> Run:
        """The part of this run that belongs to one of several parties, with heads of its ledger.

        Raises:
            BadInput: its folder cannot be made, or what it holds is damaged.
        """
        folder = self.folder / PARTIES / party
        _make(folder)
        head = _head(folder, "")
        return Run(folder, self.name, self.recipe_hash, head, self.paid)

    def remember(self, head: Head | None) -> None:
        """Keep the ledger's head outside the ledger, on disk when this ends."""
        self.head = head
        self._write()

    @contextmanager
    def paying(self, head: Callable[[], Head | None]) -> Iterator[None]:
        """Around the payment: until it is made, the run may be begun again with another recipe.

        Args:
            head: the ledger's, which is on disk before anything is drawn; None where each of
                several parties keeps its own.
        """
        before, self.paid = self.paid, True
        self._write()
        try:
            yield
        except StillroomError:  # refused, so nothing was reserved
            self.paid = before
            self._write()
            raise
        self.remember(head())

    def keep(self, head: Head) -> None:
        """Keep the ledger's newest head outside the ledger, with every change.

        It is not waited for until it is on disk, since the row it names is by then: a power cut
        leaves an older head or none, which a healthy ledger holds as well, so that nobody is locked
        out. A killed process leaves it whole.
        """
        self.head = head
        self._replace(NEWEST, str(head), wait=False)

    def _write(self) -> None:
        state = {
            "run": self.name,
            "recipe": self.recipe_hash,
            "head": str(self.head or ""),
            "paid": self.paid,
        }
        self._replace(STATE, json.dumps(state), wait=True)

    def _replace(self, name: str, content: str, *, wait: bool) -> None:
        draft = self.folder / f"{name}.draft"
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(content)
                if wait:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(draft, self.folder / name)
        except OSError as error:
            raise BadInput(
                f"the run's state cannot be written ({error.strerror})",
                where=str(self.folder / name),
                why="without it a run that is cut off could not go on",
                remedy="make room, make the folder writable, and give the same command again; what "
                "was reserved stays charged",
            ) from None


@contextmanager
def begin_or_continue(folder: Path, recipe: str) -> Iterator[Run]:
    """Hold the run in `folder`: begun now, or continued.

    Raises:
        BadInput: another process holds it, it belongs to another recipe, or it cannot be written.
    """
    _make(folder)
    try:
        # Not waiting, should there be a pipe of that name.
        descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600)
        lock = os.fdopen(descriptor, "w")
    except OSError as error:
        raise _unusable(folder, error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(
                "another process is at work on this run",
                where=str(folder),
                why="two runs in one folder would draw each other's answers",
                remedy="wait for it, or choose another output folder",
            ) from None
        yield _read(folder, recipe)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: OSError) -> BadInput:
    return BadInput(
        f"the run folder cannot be made ({error.strerror})",
        where=str(folder),
        why="without it a run that is cut off could not go on",
        remedy="choose an output folder that can be written to",
    )


def _damaged(file: Path) -> BadInput:
    return BadInput(
        "the run's state is damaged",
        where=str(file),
        why="it is not known which block of the ledger belongs to it",
        remedy="choose another output folder; what was reserved stays charged",
    )


def _head(folder: Path, kept: str) -> Head | None:
    """The last head of a ledger that the run saw: the one kept with its state, or a newer one.

    Raises:
        BadInput: it is no head.
    """
    try:
        heads = [Head.parse(text) for text in (kept, _newest(folder)) if text]
    except (BadInput, OSError, ValueError):
        raise _damaged(folder / NEWEST) from None
    return max(heads, key=lambda head: head.seq, default=None)


def going_on(folder: Path, recipe: str) -> Run | None:
    """The run that this recipe would go on with, and None where it would begin; changes nothing.

    Raises:
        BadInput: its state is damaged, or its block was paid for another recipe.
    """
    file = folder / STATE
    if not file.exists():
        return None
    try:
        state = json_object(file_content(file, LARGEST_STATE))
        if not all(isinstance(state[name], str) for name in ("run", "recipe", "head")):
            raise TypeError
        head = _head(folder, state["head"])
        run = Run(folder, state["run"], state["recipe"], head, state["paid"] is not False)
    except (BadInput, OSError, LookupError, TypeError, ValueError):
        raise _damaged(file) from None
    if run.recipe_hash == _digest(recipe):
        return run
    if not run.paid:
        return None
    raise BadInput(
        "the run was begun with another recipe",
        where=str(folder),
        why="its block was paid for what that recipe said, or may have been",
        remedy="restore the recipe, or choose another output folder",
    )


def _read(folder: Path, recipe: str) -> Run:
    run = going_on(folder, recipe)
    if run is not None:
        return run
    if (folder / STATE).exists():
        # What was kept for the other recipe is not used: its names and digests hold the recipe.
        (folder / NEWEST).unlink(missing_ok=True)
        shutil.rmtree(folder / PARTIES, ignore_errors=True)
    run = Run(folder, name=uuid.uuid4().hex, recipe_hash=_digest(recipe))
    run._write()
    return run


def _digest(recipe: str) -> str:
    return hashlib.sha256(recipe.encode()).hexdigest()


def _newest(folder: Path) -> str:
    """The newest head as text; nothing where a power cut has emptied the file."""
    file = folder / NEWEST
    return file_content(file, LARGEST_STATE).decode().strip("\0") if file.exists() else ""
