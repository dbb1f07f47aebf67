"""A small table of visits, its schema, and hostile cells for it."""

from __future__ import annotations

import random

SCHEMA = """
missing_cells = ["", "?"]
id = "visit"
{person}
[label]
column = "state"
classes = ["well", "ill"]
aliases = {{"ill." = "ill"}}
[numbers]
age = {{low = 0, high = 100, bins = 4}}
"blood pressure" = {{low = 60, high = 220, fill = 120}}
[categories]
ward = ["north", "south wing"]
smoker = {{values = ["yes", "no"], missing = "refuse"}}
"""
HEADER = ("visit", "patient", "ward", "age", "smoker", "blood pressure", "state")
Row = tuple[str, ...]


def schema_text(*, persons: bool = False) -> str:
    """The schema as a file."""
    return SCHEMA.format(person='person = "patient"' if persons else 'ignored = ["patient"]')


def visits(count: int = 60, seed: int = 1) -> list[Row]:
    """Rows in which the ill are older, and smoke."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        age, smoker = draw.randint(0, 100), draw.choice(["yes", "no"])
        state = "ill" if age + 40 * (smoker == "yes") > 70 else "well"
        ward = draw.choice(["north", "south wing", "east", "?"])
        pressure = f"{draw.gauss(120, 20):.1f}"
        own = (f"v{number}", f"p{number // 2}", ward, str(age), smoker, pressure, state)
        found.append(own)
    return found


STRANGE = {
    "beyond all ranges": ("mars", "1e400", "yes", "-1e300"),
    "infinite": ("north", "-inf", "no", "inf"),
    "missing": ("?", "", "yes", "?"),
    "unknown": ("\N{SNOWMAN}" * 900, "50", "perhaps", "120"),
    "at every edge": ("south wing", "25", "no", "220"),
}
"""Cells of ward, age, smoker and blood pressure that are read all the same."""


def strange(kind: str, name: str, person: str = "p0", state: str = "ill") -> Row:
    """A row with such cells."""
    return (name, person, *STRANGE[kind], state)


def csv_text(rows: list[Row], header: Row = HEADER) -> str:
    """The rows as a file."""
    return "".join(",".join(row) + "\n" for row in (header, *rows))
