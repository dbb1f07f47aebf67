"""What a misspelt name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MOST_NAMES = 10_000


def near_name(name: str, known: Iterable[str]) -> str:
    """A question for the nearest known name; nothing where none is near.

    >>> near_name("digit", ["digits", "mnist"])
    "did you mean 'digits'? "
    """
    near = difflib.get_close_matches(name, [one for one in known if one != name], n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def near_file(path: Path) -> str:
    """The same for a file that is not there, by the names beside its place."""
    names: list[str] = []
    with suppress(OSError, ValueError):
        for count, beside in enumerate(path.absolute().parent.iterdir()):
            if count == MOST_NAMES:
                break
            if not beside.name.startswith(".") and beside.name != path.name:
                names.append(beside.name)
    near = difflib.get_close_matches(path.name, sorted(names), n=1)
    return f"did you mean {str(path.with_name(near[0]))!r}? " if near else ""
