"""Tables with a schema: a CSV file's rows as rows of numbers, some at a time."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stillroom.data.columns import Unusable
from stillroom.data.dataset import Dataset, ids_of
from stillroom.data.files import Content, opened
from stillroom.data.readers import CsvLines, column_named, short_name
from stillroom.data.schema import Schema
from stillroom.errors import BadInput

TOGETHER = 4096
"""Rows that are turned into numbers at once, column by column."""
MOST_NAMED = 12


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, one after the other.

    Args:
        x: one number per column of the schema.
        texts: of the other columns that are there, by their role: label, id and person.
        lines: where each row ends in the file.
        cells: each row's cells by the names of their columns, where it has no id and needs one.
    """

    x: npt.NDArray[np.float64]
    texts: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    cells: Sequence[Mapping[str, str]]


def read_table(path: str | Path, schema: Schema) -> Dataset:
    """Read a CSV file with a header line by its schema; columns may stand in any order.

    What is out of its range is clamped and what is not on its list is "other", without a word: a
    count of them would tell of the records (K10).

    Args:
        path: the file, UTF-8, plain or gzipped.
        schema: its columns.

    Raises:
        BadInput: a column is missing or unknown, a cell is no number, a label is no class, or a
            line has too few or too many cells. The line is named, the cell's content is not.

    >>> from tempfile import TemporaryDirectory
    >>> schema = Schema.of({
    ...     "label": {"column": "state", "classes": ["well", "ill"]},
    ...     "numbers": {"age": {"low": 0, "high": 100}},
    ...     "categories": {"ward": ["north", "south"]},
    ... })
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "visits.csv"
    ...     _ = file.write_text("state,ward,age\\nill,south,52\\nwell,west,140\\n")
    ...     read_table(file, schema).x.tolist()
    [[52.0, 1.0], [100.0, 2.0]]
    """
    parts, labels = [], []
    contents: list[str] = []
    texts: dict[str, list[str]] = {role: [] for role in ("id", "person")}
    number_of = schema.label.number_of
    with opened(Path(path)) as content:
        held = 0
        for rows in table_rows(content, schema, str(path)):
            parts.append(rows.x)
            held += rows.x.nbytes
            contents += map(_content, rows.cells)
            for cell, line in zip(rows.texts["label"], rows.lines, strict=True):
                if cell not in number_of:
                    raise BadInput(
                        "a label is not among the classes of the schema",
                        where=f"{path}, line {line}",
                        why="the schema's classes decide what may be counted, not the data",
                        remedy="list all classes, or the other spellings under label.aliases",
                    )
                labels.append(number_of[cell])
            for role, kept in texts.items():
                for name, line in zip(rows.texts.get(role, ()), rows.lines, strict=False):
                    kept.append(short_name(name, f"the column of {role}s", f"{path}, line {line}"))
            content.refuse_more(held, len(labels))
    x = np.concatenate(parts) if parts else np.zeros((0, len(schema.columns)))
    persons = tuple(texts["person"]) if schema.person is not None else None
    y = np.array(labels, dtype=np.int64)
    # Of the cells as they stand in the file: a ledger knows them again under any schema.
    ids = tuple(texts["id"]) or ids_of(contents)
    return Dataset(x, y, schema.classes, ids, persons, str(path), schema.columns)


def table_rows(
    content: Content,
    schema: Schema,
    where: str,
    *,
    together: int = TOGETHER,
    whole: bool = True,
) -> Iterator[Rows]:
    """The rows of an open table, some at a time: memory does not grow with their number.

    Args:
        content: the file.
        schema: its columns.
        where: what messages call the file.
        together: how many rows at a time.
        whole: whether each column of the schema must be there and no other; else labels, ids and
            persons may be missing, and other columns are not looked at.

    Raises:
        BadInput: as `read_table`, but for labels.
    """
    text = CsvLines(content)
    lines = csv.reader(text, strict=True, skipinitialspace=True)
    header = [name.strip() for name in next(lines, [])]
    places = _places(header, schema, where, whole=whole)

    def cells() -> Iterator[tuple[int, list[str]]]:
        for row in lines:
            text.taken = 0
            if not row:
                continue
            if len(row) != len(header):
                raise BadInput(
                    "a line has not as many cells as the header has columns",
                    where=f"{where}, line {lines.line_num}",
                    why="its cells would stand under the names of others",
                    remedy="repair the line; text with commas needs quotes",
                )
            yield lines.line_num, row

    left = cells()
    while some := list(islice(left, together)):
        numbers = [line for line, _ in some]
        columns = list(zip(*(row for _, row in some), strict=True))
        x = np.empty((len(some), len(schema.columns)))
        for place, column in enumerate(schema.of_records):
            at = places[column.name]
            with _told(f"column {column_named(header, at)}", where, numbers):
                x[:, place] = column.stored([cell.strip() for cell in columns[at]])
        texts = {
            role: [cell.strip() for cell in columns[places[name]]]
            for role, name in schema.roles.items()
            if name in places
        }
        without_ids = some if whole and schema.id is None else ()
        named = [{name: row[at].strip() for name, at in places.items()} for _, row in without_ids]
        yield Rows(x, texts, numbers, named)


def _content(cells: Mapping[str, str]) -> str:
    """The digest that the id of a row is made of; the order of columns does not matter."""
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


@contextmanager
def _told(column: str, where: str, lines: Sequence[int]) -> Iterator[None]:
    try:
        yield
    except Unusable as fault:
        raise BadInput(
            str(fault),
            where=f"{where}, line {lines[fault.position]}, {column}",
            why="only what is missing by the schema's own words has a meaning without a number",
            remedy="repair the cell, list what it holds under missing_cells, or say what a "
            "missing cell means: missing or fill",
        ) from None


def _places(header: list[str], schema: Schema, where: str, *, whole: bool) -> dict[str, int]:
    """Where the columns stand, by their names.

    The header is not quoted where it is not known: without a header line it would be a record.
    """
    roles = [name for name in schema.roles.values() if name is not None]
    wanted = [*schema.columns, *(roles if whole else ())]
    known = {*schema.columns, *roles, *schema.ignored}
    faults = {
        "has no column called": [name for name in wanted if name not in header],
        "has more than one column called": [name for name in known if header.count(name) > 1],
    }
    odd = [place for place, name in enumerate(header) if name not in known] if whole else []
    for what, names in faults.items():
        if names:
            raise BadInput(
                f"the first line {what} {_listed(names)}",
                where=f"{where}, line 1",
                why="every record would rest on cells that are not there or not the right ones",
                remedy="put the names of the schema in the first line, in any order",
            )
    if odd:
        told = ", ".join(column_named(header, place) for place in odd[:MOST_NAMED])
        raise BadInput(
            f"the schema does not name column {told}",
            where=f"{where}, line 1",
            why="what is not named has no public range or list, and must not slip in or out",
            remedy="name it under numbers or categories, or under ignored",
        )
    return {name: place for place, name in enumerate(header) if name in known}


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more
