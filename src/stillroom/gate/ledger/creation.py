"""How a ledger comes to be: its key, its file and its place in the register, in one turn.

Whoever makes a ledger at a place makes it alone. The key is on disk before the file, the file
is complete before it gets its name, and it gets its name while the register is held. A crash
leaves a key without a ledger, which the next creation uses, or a ledger that the register does
not know yet, which enters itself when it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from enum import StrEnum
from pathlib import Path

from stillroom.durable import sweep, taking_turns
from stillroom.errors import BadInput
from stillroom.gate.ledger import members
from stillroom.gate.ledger.database import already_there
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import MemoryStore, Store
from stillroom.vocabulary import Identities, Unit

GIVEN, FROM_CONTENT = "given", "from content"
"""Where the ids of a ledger's records come from."""


class Purpose(StrEnum):
    """What a ledger is for; every certificate prints it (L5)."""

    RELEASE = "release"
    BENCHMARK = "benchmark"
    AUDIT = "audit"

    @classmethod
    def named(cls, name: str) -> Purpose:
        """The purpose of that name.

        Raises:
            BadInput: there is none.
        """
        try:
            return cls(name)
        except ValueError:
            raise BadInput(
                f"unknown purpose {name!r}",
                where="purpose",
                why="a certificate must say what its ledger is for",
                remedy="use release, benchmark or audit",
            ) from None


def checked_id(name: str) -> str:
    """A ledger's random id; it also names a file.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch("[0-9a-f]{32}", name):
        raise ValueError("not a ledger's id")
    return name


def create(path: Path, whose: Identities, purpose: Purpose, unit: Unit) -> None:
    """Make a ledger with its key at `path`, or leave nothing.

    Raises:
        WrongData: some records already belong to a known release ledger.
        BadInput: there is already a file, or the place cannot be written to.
    """
    opening = _opening(whose, purpose, unit)
    try:
        with taking_turns(path):
            sweep_leftovers(path)
            if os.path.lexists(path):
                raise already_there(path)
            with _key_at(members.key_path(path), path) as key:
                registering: AbstractContextManager[None] = nullcontext()
                if purpose is Purpose.RELEASE:
                    registering = Register().entering(opening["ledger"], path, whose)
                Store.create(path, lambda store: _fill(store, opening, key, whose), registering)
    except OSError as error:
        raise BadInput(
            f"the ledger cannot be made ({error.strerror})",
            where=str(path),
            why="without a ledger nothing may be drawn",
            remedy="choose a folder that exists, can be written to and has room",
        ) from None


def create_in_memory(whose: Identities, purpose: Purpose, unit: Unit) -> tuple[Store, bytes]:
    """A ledger without a file, and its key.

    Raises:
        BadInput: it is for release.
    """
    if purpose is Purpose.RELEASE:
        raise BadInput(
            "a ledger for release cannot be kept in memory",
            where="purpose",
            why="what it has spent would be forgotten with the process",
            remedy='use purpose = "benchmark" or "audit", or a ledger with a file',
        )
    store, key = MemoryStore(), os.urandom(32)
    _fill(store, _opening(whose, purpose, unit), key, whose)
    return store, key


def _opening(whose: Identities, purpose: Purpose, unit: Unit) -> dict[str, str]:
    return {
        "ledger": os.urandom(16).hex(),
        "purpose": str(purpose),
        "ids": FROM_CONTENT if whose.from_content else GIVEN,
        "unit": str(unit),
    }


def _fill(store: Store, opening: dict[str, str], key: bytes, whose: Identities) -> None:
    with store.transaction():
        store.append("open", opening)
        members.enter(store, key, members.fingerprints(key, whose.ids, whose.persons))


@contextmanager
def _key_at(file: Path, ledger: Path) -> Iterator[bytes]:
    """The new ledger's key; taken away again if it was made here and no ledger came of it."""
    left_over = file.exists()
    try:
        yield members.key_for_new(file)
    except BaseException:
        if not left_over and not ledger.exists():
            with suppress(OSError):
                file.unlink()
        raise


def sweep_leftovers(path: Path) -> None:
    """Remove what creations at `path` left that were cut off; never a living one's."""
    sweep(path)
    sweep(members.key_path(path))
