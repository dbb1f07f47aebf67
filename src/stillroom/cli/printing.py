"""Tables and JSON on the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import typer


def as_json(document: Any) -> None:
    """Print a JSON document; infinity is spelled out, since JSON has no number for it."""
    typer.echo(json.dumps(_spelled(document), indent=2, allow_nan=False))


def _spelled(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _spelled(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(v) for v in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    drawn = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        drawn.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        drawn.add_row(*map(str, row))
    Console(soft_wrap=True).print(drawn)
