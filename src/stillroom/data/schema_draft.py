"""The draft of a schema, from the names of a table's columns and whether their cells are numbers.

That is all that is looked at, in the first rows alone. Ranges and lists are left open: measured on
the records, they would tell of them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from stillroom.data.files import opened
from stillroom.data.readers import CsvLines, column_place
from stillroom.data.schema import MOST_COLUMNS
from stillroom.data.schema_words import FILL_IN, exact_text
from stillroom.errors import BadInput

LOOKED_AT = 1000
"""Rows of which a draft knows whether their cells are numbers."""
USUAL_MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")

_HEAD = f"""\
# A draft of a schema for {{name}}: from the names of its columns, and from whether their cells are
# numbers in the first {LOOKED_AT:,} rows. Nothing else was looked at.
#
# Fill in every "{FILL_IN}" with what is public: what the form, the law or the handbook allows. Do
# not measure it: the largest number in the data is somebody's, and so is a rare category.
# A number outside its range is clamped, and a category that is not listed is "other".

# These cells hold nothing; add or remove:
missing_cells = {{missing}}
"""


@dataclass(frozen=True)
class Draft:
    """Which columns a table has, and which of them hold numbers.

    Args:
        name: of the file.
        numbers, categories: the columns, in the order of the file.
        label, id, person: columns with a role.
    """

    name: str
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    label: str
    id: str | None = None
    person: str | None = None

    @classmethod
    def of(
        cls, path: Path, label: str = "label", id: str | None = None, person: str | None = None
    ) -> Draft:
        """Look at the first rows of a CSV file.

        Args:
            path: the file.
            label, id, person: its columns with a role.

        Raises:
            BadInput: the file cannot be read, or has no such columns.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "visits.csv").write_text("age,ward,state\\n52,south,ill\\n")
        ...     Draft.of(Path(folder) / "visits.csv", "state")
        Draft(name='visits.csv', numbers=('age',), categories=('ward',), label='state', \
id=None, person=None)
        """
        with opened(path) as content:
            text = CsvLines(content)
            lines = csv.reader(text, strict=True, skipinitialspace=True)
            header = [name.strip() for name in next(lines, [])]
            if len(header) > MOST_COLUMNS or not all(n and n.isprintable() for n in header):
                raise BadInput(
                    "the first line does not hold names of columns",
                    where=f"{path}, line 1",
                    why="a schema says what each column means, by its name",
                    remedy=f"write a name for each column, at most {MOST_COLUMNS}",
                )
            roles = [role for role in (label, id, person) if role is not None]
            for role in roles:
                column_place(header, role, str(path))
            holds_text = [False] * len(header)
            for row in islice(lines, LOOKED_AT):
                text.taken = 0
                for place, cell in enumerate(row[: len(header)]):
                    holds_text[place] |= not _is_number(cell.strip())
        others = [place for place, name in enumerate(header) if name not in roles]
        numbers = tuple(header[place] for place in others if not holds_text[place])
        categories = tuple(header[place] for place in others if holds_text[place])
        return cls(path.name, numbers, categories, label, id, person)

    def toml(self) -> str:
        """The text of a schema file, with what must be filled in."""
        open_ = exact_text(FILL_IN)
        roles = {"id": self.id, "person": self.person}
        blocks = [
            _HEAD.format(name=self.name, missing=_list(USUAL_MISSING)).rstrip(),
            *(f"{role} = {exact_text(name)}" for role, name in roles.items() if name),
            f"\n[label]\ncolumn = {exact_text(self.label)}\n"
            f"classes = [{open_}]  # their names, as the column spells them",
        ]
        if self.numbers:
            blocks.append(
                "\n[numbers]  # bins = 10, or edges = [18, 65], for what is no straight line"
            )
            blocks += [
                f"{exact_text(name)} = {{low = {open_}, high = {open_}}}" for name in self.numbers
            ]
        if self.categories:
            blocks.append("\n[categories]  # the list of a form, not of these records")
            blocks += [f"{exact_text(name)} = [{open_}]" for name in self.categories]
        blocks.append("\n# Columns that are not used are named too: ignored = [...], at the top.")
        return "\n".join(blocks) + "\n"


def _is_number(cell: str) -> bool:
    if cell in USUAL_MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(exact_text, texts))}]"
