"""Whose record each one is, where the data do not say it: by file names, or by a list beside them.

A person is what must be protected as one: a patient with several pictures, a customer with several
visits. The guarantee rests on these names, so nothing is guessed: a file that the pattern does not
fit, or the list does not name, is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from stillroom.data.dataset import Dataset, ids_with_persons
from stillroom.data.files import opened
from stillroom.data.readers import CsvLines, column_place, short_name
from stillroom.errors import BadInput

FILE, PERSON = "file", "person"
LONGEST_PATTERN = 1000


@dataclass(frozen=True)
class Persons:
    """Who the records belong to.

    Args:
        pattern: for a folder of pictures: a regular expression that is looked for in a file's name;
            its one group is the person.
        listed: a CSV file with a column `person`. For a folder of pictures a column `file` names
            each picture, as in the folder or by its name alone; else the lines stand in the order
            of the records, those of the official train part first.

    Raises:
        BadInput: both are given, or the pattern is none.

    >>> Persons(pattern=r"^([a-z]+[0-9]+)_").of("ill/person7_virus_3.png")
    'person7'
    """

    pattern: str | None = None
    listed: Path | None = None

    def __post_init__(self) -> None:
        if self.pattern is not None and self.listed is not None:
            raise BadInput(
                "persons are given by a pattern and by a list",
                where="data.person_pattern, data.persons",
                why="the two could name different persons for one record",
                remedy="give one of them",
            )
        if self.pattern is not None and groups_of(self.pattern) != 1:
            raise BadInput(
                "the pattern is no regular expression with exactly one group",
                where="data.person_pattern",
                why="what the group matches in a file's name is the person",
                remedy="put brackets around the person, such as ^(person[0-9]+)_",
            )

    @property
    def by_file(self) -> bool:
        """Whether persons are found by the names of files."""
        return self.pattern is not None or FILE in self._table

    def of(self, name: str) -> str:
        """Whose picture a file is.

        Args:
            name: of the file, from the folder on.

        Raises:
            BadInput: the pattern does not fit, or the list does not name it.
        """
        if self.pattern is not None:
            found = re.search(self.pattern, PurePath(name).name)
            if found is None or not found[1]:
                raise BadInput(
                    "the pattern finds no person in the name of a file",
                    where=name,
                    why="a record of nobody would be protected as nobody's",
                    remedy="correct data.person_pattern, or give a list (data.persons)",
                )
            return found[1]
        known = self._by_file
        person = known.get(name) or known.get(PurePath(name).name)
        if person is None:
            raise BadInput(
                "the list of persons does not name a file",
                where=f"{self.listed}: {name}",
                why="a record of nobody would be protected as nobody's",
                remedy="add a line for it, with its name as in the folder",
            )
        return person

    def in_order(self, parts: Mapping[str, Dataset]) -> dict[str, Dataset]:
        """The records of files that do not name persons, with those of the list.

        Raises:
            BadInput: there are not as many lines as records, or the records name persons already.
        """
        if self.by_file:
            raise BadInput(
                "persons by file names are for a folder of pictures with one sub-folder per class",
                where="data.person_pattern, data.persons",
                why="these records have no file names of their own",
                remedy="give a list with one line per record and no column `file`",
            )
        if any(part.persons is not None for part in parts.values()):
            raise BadInput(
                "the records name their persons already",
                where=str(self.listed),
                why="two answers to whose a record is cannot both hold",
                remedy="leave data.persons out",
            )
        names, found = self._table[PERSON], {}
        if len(names) != sum(map(len, parts.values())):
            raise BadInput(
                "the list of persons has not one line per record",
                where=str(self.listed),
                why="every record after a missing line would be somebody else's",
                remedy="write one line per record, in their order; train before test",
            )
        for part in sorted(parts, key=lambda name: name == "test"):
            data = parts[part]
            own, names = names[: len(data)], names[len(data) :]
            ids = ids_with_persons(data.ids, own) if data.ids_from_content else data.ids
            about = (data.x, data.y, data.classes, ids, tuple(own), data.name, data.columns)
            found[part] = Dataset(*about)
        return {part: found[part] for part in parts}

    @cached_property
    def _by_file(self) -> dict[str, str]:
        names = [PurePath(name).as_posix() for name in self._table[FILE]]
        if len(set(names)) != len(names):
            raise BadInput(
                "the list of persons names a file twice",
                where=str(self.listed),
                why="its picture would belong to two persons",
                remedy="name each file once, with its sub-folder where names repeat",
            )
        return dict(zip(names, self._table[PERSON], strict=True))

    @cached_property
    def _table(self) -> dict[str, list[str]]:
        """The columns of the list that matter."""
        assert self.listed is not None
        where = str(self.listed)
        with opened(self.listed) as content:
            text = CsvLines(content)
            lines = csv.reader(text, strict=True)
            header = next(lines, [])
            wanted = (FILE, PERSON) if FILE in header else (PERSON,)
            places = {name: column_place(header, name, where) for name in wanted}
            found: dict[str, list[str]] = {name: [] for name in wanted}
            for cells in lines:
                text.taken = 0
                line = f"{where}, line {lines.line_num}"
                whole = len(cells) == len(header)
                if not whole or not all(cells[at].strip() for at in places.values()):
                    raise BadInput(
                        "a line of the list of persons has an empty cell, or too few or too many",
                        where=line,
                        why="a record of nobody would be protected as nobody's",
                        remedy="fill in the person of every record",
                    )
                for name, at in places.items():
                    found[name].append(short_name(cells[at], name, line))
                content.refuse_more(0, len(found[PERSON]))
        return found


def groups_of(pattern: str) -> int:
    """How many groups a regular expression has; none where it is no regular expression."""
    try:
        return re.compile(pattern).groups if len(pattern) <= LONGEST_PATTERN else 0
    except (re.error, OverflowError, RecursionError):
        return 0
