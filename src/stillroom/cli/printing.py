"""Tables and JSON on the terminal."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_NUMBER = re.compile(r"[-+.,%e\d]+|infinite")


def print_json(document: Any) -> None:
    """Print a JSON document; infinity is spelled out, since JSON has no number for it."""
    typer.echo(json.dumps(_spelled(document), indent=2, allow_nan=False))


def _spelled(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _spelled(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(v) for v in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def printable(text: str) -> str:
    """A text that gives a terminal no orders, such as the name of somebody's file.

    >>> printable("a\\x1b[2Jb.png")
    'a\\\\x1b[2Jb.png'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Lines of a CSV file.

    >>> csv_lines([("a, b", "c"), ("d", "e")])
    '"a, b",c\\nd,e\\n'
    """
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue()


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; columns of numbers to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[str(cell) for cell in row] for row in rows]
    drawn = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        numbers = all(_NUMBER.fullmatch(row[place]) for row in cells)
        drawn.add_column(column, justify="right" if place and numbers else "left")
    for row in cells:
        # Plain text: a class called [red] must not be read as markup.
        drawn.add_row(*map(Text, row))
    Console(soft_wrap=True).print(drawn)


def write_new(path: Path, what: str, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        BadInput: it is there, or cannot be written.
    """
    from stillroom.errors import BadInput

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BadInput(
            f"the {what} cannot be written ({error.strerror})",
            where=str(path),
            why="an existing file is never overwritten",
            remedy="name a new file in a folder that can be written to",
        ) from None
