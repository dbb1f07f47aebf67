"""A run: one folder that lets the same command go on where it was cut off.

The ledger holds everything that was drawn; the folder holds only the run's name, under which its
block is found again, and the last head of the ledger it saw (L8).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stillroom.documents import file_content, json_object
from stillroom.errors import BadInput, StillroomError
from stillroom.gate import Head

LARGEST_STATE = 64 << 10


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

    def remember(self, head: Head) -> None:
        """Keep the ledger's head outside the ledger."""
        self.head = head
        self._write()

    @contextmanager
    def paying(self) -> Iterator[None]:
        """Around the payment: until it is made, the run may be begun again with another recipe."""
        before, self.paid = self.paid, True
        self._write()
        try:
            yield
        except StillroomError:  # refused, so nothing was reserved
            self.paid = before
            self._write()
            raise

    def _write(self) -> None:
        state = {
            "run": self.name,
            "recipe": self.recipe_hash,
            "head": str(self.head or ""),
            "paid": self.paid,
        }
        draft = self.folder / "run.json.draft"
        with draft.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.folder / "run.json")


@contextmanager
def begin_or_continue(folder: Path, recipe: str) -> Iterator[Run]:
    """Hold the run in `folder`: begun now, or continued.

    Raises:
        BadInput: another process holds it, it belongs to another recipe, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise BadInput(
            f"the run folder cannot be made ({error.strerror})",
            where=str(folder),
            why="without it a run that is cut off could not go on",
            remedy="choose an output folder that can be written to",
        ) from None
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


def _read(folder: Path, recipe: str) -> Run:
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    file = folder / "run.json"
    if not file.exists():
        run = Run(folder, name=uuid.uuid4().hex, recipe_hash=digest)
        run._write()
        return run
    try:
        state = json_object(file_content(file, LARGEST_STATE))
        if not all(isinstance(state[name], str) for name in ("run", "recipe", "head")):
            raise TypeError
        head = Head.parse(state["head"]) if state["head"] else None
        run = Run(folder, state["run"], state["recipe"], head, state["paid"] is not False)
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(
            "the run's state is damaged",
            where=str(file),
            why="it is not known which block of the ledger belongs to it",
            remedy="choose another output folder; what was reserved stays charged",
        ) from None
    if run.recipe_hash != digest and not run.paid:
        # What was kept for the other recipe is not used: its names and digests hold the recipe.
        run = Run(folder, name=uuid.uuid4().hex, recipe_hash=digest)
        run._write()
    if run.recipe_hash != digest:
        raise BadInput(
            "the run was begun with another recipe",
            where=str(folder),
            why="its block was paid for what that recipe said",
            remedy="restore the recipe, or choose another output folder",
        )
    return run
