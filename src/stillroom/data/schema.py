"""What is public about a table: its columns, their ranges and lists, and what a missing cell means.

A schema is written down, never measured: a range or a list that was read off the records tells of
them. With it, each row of a table becomes a row of numbers that depends on that row alone.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from stillroom.data.columns import Category, Label, Number
from stillroom.data.schema_words import FILL_IN, Faulty, check_keys, exact_text, texts
from stillroom.documents import file_content, has_long_keys
from stillroom.errors import BadInput

MOST_COLUMNS = 10_000
MOST_FAULTS = 20
LARGEST_FILE = 1 << 20
Column = Number | Category
_KEYS = ("label", "id", "person", "ignored", "missing", "missing_cells", "numbers", "categories")


@dataclass(frozen=True)
class Schema:
    """The columns of a table: numbers with public ranges, categories with public lists.

    A record is stored as one number per column, numbers first: a number clamped to its range; of a
    category its place in the list, with one place more for "other". A missing cell that counts as
    one of its own is stored as a number below the range, or as a last place in the list.

    Args:
        numbers: columns of numbers.
        categories: columns of categories.
        label: the column of classes, and what they are.
        id: the column of record ids, if there is one.
        person: the column that names the person of a record, if there is one.
        ignored: columns that are there and are not used.
        missing_cells: what a cell holds where its value is missing.

    >>> schema = Schema.of({
    ...     "label": {"column": "state", "classes": ["well", "ill"]},
    ...     "numbers": {"age": {"low": 0, "high": 100, "bins": 4}},
    ...     "categories": {"ward": ["north", "south"]},
    ... })
    >>> schema.columns, schema.classes
    (('age', 'ward'), ('well', 'ill'))
    >>> [column.stored(["55", "", "140"]).tolist() for column in schema.numbers]
    [[55.0, -100.0, 100.0]]
    >>> schema.categories[0].stored(["south", "east", ""]).tolist()
    [1.0, 2.0, 3.0]
    """

    numbers: tuple[Number, ...]
    categories: tuple[Category, ...]
    label: Label
    id: str | None = None
    person: str | None = None
    ignored: tuple[str, ...] = ()
    missing_cells: tuple[str, ...] = field(default=("",))

    @classmethod
    def of(cls, table: Any, where: str = "schema") -> Schema:
        """The schema that a table of TOML, or a JSON object, describes.

        Raises:
            BadInput: something in it does not fit, or is not filled in; all faults are named.
        """
        faults: list[str] = []
        parts = _parts(table, faults)
        if not faults:
            return cls(**parts)
        left = len(faults) - MOST_FAULTS
        faults[MOST_FAULTS:] = [f"and {left} more"] if left > 0 else []
        if any(FILL_IN in fault for fault in faults):
            why = "measured on the records, a range or a list would tell of them"
            remedy = "write what is public: what the form, the law or the handbook allows"
        else:
            why = "every cell must become a number by rules that are fixed beforehand"
            remedy = "mend these columns; docs/tables.md shows a whole schema"
        raise BadInput("; ".join(faults), where=where, why=why, remedy=remedy)

    @classmethod
    def read(cls, path: Path) -> Schema:
        """The schema in a file of its own.

        Raises:
            BadInput: the file cannot be read, or something in it does not fit.
        """
        try:
            text = file_content(path, LARGEST_FILE).decode("utf-8")
            if has_long_keys(text):
                raise ValueError
            table = tomllib.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            told = isinstance(error, tomllib.TOMLDecodeError)
            raise BadInput(
                f"the schema cannot be read ({error if told else 'it is no plain TOML file'})",
                where=str(path),
                why="without it no cell of the table has a meaning",
                remedy="check the path and the line; `stillroom data schema FILE` drafts one",
            ) from None
        return cls.of(table, str(path))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that a record is made of, in the order they are stored in."""
        return tuple(column.name for column in self.of_records)

    @property
    def of_records(self) -> tuple[Column, ...]:
        """The columns that a record is made of."""
        return (*self.numbers, *self.categories)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.label.classes

    @property
    def roles(self) -> dict[str, str | None]:
        """The columns beside the records: of labels, ids and persons."""
        return {"label": self.label.column, "id": self.id, "person": self.person}

    @cached_property
    def document(self) -> dict[str, Any]:
        """The same as plain values, in one spelling: what `of` reads.

        Columns are a list: the order of a table's keys is lost where documents are sorted.
        """
        told = {
            "label": self.label.document,
            "id": self.id,
            "person": self.person,
            "ignored": list(self.ignored) or None,
            "missing_cells": list(self.missing_cells),
            "numbers": [{"name": c.name, **c.document} for c in self.numbers] or None,
            "categories": [{"name": c.name, **c.document} for c in self.categories] or None,
        }
        return {name: value for name, value in told.items() if value is not None}

    def toml(self, under: str = "data.schema") -> str:
        """The same as tables of a recipe.

        >>> told = {"label": {"column": "state", "classes": ["well", "ill"]},
        ...         "numbers": {"age": {"low": 0, "high": 100}}}
        >>> print(Schema.of(told).toml())
        [data.schema]
        missing_cells = [""]
        <BLANKLINE>
        [data.schema.label]
        column = "state"
        classes = ["well", "ill"]
        <BLANKLINE>
        [data.schema.numbers]
        age = {low = 0, high = 100}
        <BLANKLINE>
        """
        tables = {
            "label": self.label.document,
            "numbers": {column.name: column.document for column in self.numbers},
            "categories": {column.name: column.document for column in self.categories},
        }
        plain = {name: told for name, told in self.document.items() if name not in tables}
        blocks = [_block(under, plain)]
        blocks += [
            _block(f"{under}.{name}".lstrip("."), told) for name, told in tables.items() if told
        ]
        return "\n".join(blocks)

    def __str__(self) -> str:
        return f"{len(self.numbers)} numbers, {len(self.categories)} categories"


def _block(head: str, told: Mapping[str, Any]) -> str:
    lines = [f"[{head}]"] if head else []
    lines += [f"{_key(name)} = {_toml(value)}" for name, value in told.items()]
    return "".join(f"{line}\n" for line in lines)


def _key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else exact_text(name)


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return exact_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_toml(inside)}" for name, inside in value.items())
        return f"{{{inner}}}"
    return repr(value)


def _parts(table: Any, faults: list[str]) -> dict[str, Any]:
    """What `Schema` takes, and in `faults` everything that is wrong with the table."""

    def attempt(name: str, read: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            return read()
        except Faulty as fault:
            faults.append(f"{shown(name)}: {fault}")
            return otherwise

    if not isinstance(table, Mapping):
        faults.append("it is no table")
        return {}
    attempt("schema", lambda: check_keys(table, _KEYS))
    cells = attempt(
        "missing_cells", lambda: texts(table.get("missing_cells", [""]), empty=True), ()
    )

    def columns(kind: str, of: Callable[..., Column]) -> tuple[Column, ...]:
        usual = table.get("missing", "own")
        told = attempt(kind, lambda: _by_name(table.get(kind, {})), [])
        found = [
            attempt(f"{kind}.{name}", partial(of, name, one, usual, cells)) for name, one in told
        ]
        return tuple(column for column in found if column is not None)

    def name_of(role: str) -> str | None:
        return None if table.get(role) is None else texts([table[role]])[0]

    parts = {
        "numbers": columns("numbers", Number.of),
        "categories": columns("categories", Category.of),
        "label": attempt("label", lambda: Label.of(table.get("label"))),
        **{role: attempt(role, partial(name_of, role)) for role in ("id", "person")},
        "ignored": attempt("ignored", lambda: texts(table.get("ignored", [])), ()),
        "missing_cells": cells,
    }
    used = Counter(_all_columns(parts))
    twice = [shown(name) for name, times in used.items() if times > 1]
    if twice:
        faults.append(f"{', '.join(twice[:12])}: named twice; a column has one role")
    if not (faults or parts["numbers"] or parts["categories"]):
        faults.append("numbers, categories: there is no column to learn from")
    return parts


def _by_name(told: Any) -> list[tuple[str, Any]]:
    """Columns with their names: keys of a table, or `name` in a list of tables."""
    if isinstance(told, (Mapping, list)) and len(told) > MOST_COLUMNS:
        raise Faulty(f"more than {MOST_COLUMNS} columns")
    if isinstance(told, Mapping):
        return list(told.items())
    named = isinstance(told, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("name"), str) for one in told
    )
    if not named:
        raise Faulty("is no table of columns")
    return [(one["name"], {k: v for k, v in one.items() if k != "name"}) for one in told]


def _all_columns(parts: Mapping[str, Any]) -> Iterator[str]:
    """The name of every column, under each of its roles."""
    for column in (*parts["numbers"], *parts["categories"]):
        yield column.name
    if parts["label"] is not None:
        yield parts["label"].column
    yield from (parts[role] for role in ("id", "person") if parts[role] is not None)
    yield from parts["ignored"]


def shown(name: str) -> str:
    """A name for a message, which must not control a terminal."""
    return name[:60] if name.isprintable() else ascii(name[:60])
