"""Which methods there are: one line each, and those that other packages bring."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from stillroom.errors import BadInput
from stillroom.methods.base import Method
from stillroom.nearest import near_name
from stillroom.recipe import Recipe, reading
from stillroom.recipe.schema_file import with_schema
from stillroom.recipe.section import shown_key

GROUP = "stillroom.methods"
"""The entry-point group of methods that live outside this package."""
METHODS = {
    "direct": "stillroom.methods.direct:DIRECT",
    "rona": "stillroom.methods.rona:RONA",
    "dpdfd": "stillroom.methods.dpdfd:DPDFD",
    "pg": "stillroom.methods.pg:PG",
    "votes": "stillroom.methods.votes:VOTES",
}


@cache
def method_named(name: str) -> Method:
    """A method by its name in a recipe.

    Raises:
        BadInput: there is none, or its package cannot be loaded.
    """
    outside = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in METHODS:
        module, _, thing = METHODS[name].partition(":")
        return getattr(import_module(module), thing)  # type: ignore[no-any-return]
    if name not in outside:
        raise BadInput(
            f"there is no method {shown_key(name)!r}",
            where="method",
            why="a recipe is read by its method",
            remedy=near_name(name, [*METHODS, *outside])
            + f"use one of: {', '.join([*METHODS, *sorted(outside)])}",
        )
    try:
        return outside[name].load()  # type: ignore[no-any-return]
    except Exception as error:
        raise BadInput(
            f"the method {name!r} of another package cannot be loaded ({type(error).__name__})",
            where="method",
            why=f"its entry point names {outside[name].value}",
            remedy="install the package again, or ask its authors",
        ) from error


def package_of(name: str) -> tuple[str, str]:
    """The package a method comes from, and its version."""
    if name in METHODS:
        import stillroom

        return "stillroom", stillroom.__version__
    for entry in entry_points(group=GROUP):
        if entry.name == name and entry.dist is not None:
            return entry.dist.name, entry.dist.version
    return "unknown", "unknown"


def method_names() -> list[str]:
    """All methods, those of this package first."""
    return [*METHODS, *sorted(entry.name for entry in entry_points(group=GROUP))]


def parse(text: str, where: str = "recipe") -> Recipe:
    """A recipe from its text.

    Raises:
        BadInput: something in it does not fit; all faults are named.

    >>> text = '[data]\\nsource = "digits"\\ndeclared_size = 1440\\n[privacy]\\nepsilon = 2'
    >>> parse(text).section("training").steps
    60
    """
    return reading.parse(text, _kind, where)


def read(path: Path) -> tuple[Recipe, str]:
    """The recipe in a file, and its text; a schema in a file beside it stands in the text.

    Raises:
        BadInput: the file cannot be read, or something in it does not fit; all faults are named.
    """
    text = with_schema(reading.read_text(path), path)
    return parse(text, str(path)), text


def _kind(method: Any) -> type[Recipe]:
    return method_named(method if isinstance(method, str) else "").recipe
