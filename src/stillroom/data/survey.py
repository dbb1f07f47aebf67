"""Every fault of files at once, where a reader stops at the first: for checks before a payment.

Files, lines and columns are named, never what stands in them.
"""

from __future__ import annotations

import csv
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import compress
from pathlib import Path

from stillroom.data.dataset import class_names
from stillroom.data.files import file_kind, opened
from stillroom.data.loading import found_beside
from stillroom.data.picture_form import PictureForm
from stillroom.data.pictures import folder_classes, picture_in, sub_folders
from stillroom.data.readers import Classes, CsvLines, column_place, named_column
from stillroom.errors import BadInput, StillroomError

SHOWN = 3
"""Places that a fault names, of all where it is found."""


def faults_of(
    source: str,
    folder: Path,
    classes: Classes,
    columns: Mapping[str, str | None],
    form: PictureForm | None = None,
) -> list[StillroomError]:
    """All faults of a CSV file or a folder of pictures; none where it is of another kind.

    Args:
        source: a file or folder beside the recipe, or a data set by name.
        folder: where the recipe is.
        classes: names of the classes, or how many there are.
        columns: for a CSV file, which columns are `label`, `id` and `person`; None for none.
        form: what the pictures of a folder are brought to.
    """
    place = found_beside(source, folder)
    try:
        if os.path.isdir(place):
            return _of_pictures(Path(place), classes, form)
        if os.path.isfile(place) and file_kind(place) == "csv":
            return _of_lines(Path(place), classes, {"label": "label", **columns})
    except StillroomError as fault:
        return [fault]
    return []


class _Faults:
    """Faults of one kind are told once, with the first places and how many there are."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._first: dict[tuple[str, str], StillroomError] = {}

    @contextmanager
    def collecting(self, where: str = "", kind: str = "") -> Iterator[None]:
        """Keep a refusal inside the block.

        Args:
            where: it is found; else where it says.
            kind: tells faults apart that have the same words.
        """
        try:
            yield
        except StillroomError as fault:
            self.add(fault, where or fault.where, kind)

    def add(self, fault: StillroomError, where: str, kind: str = "") -> None:
        self._first.setdefault((fault.what, kind), fault)
        self._places[fault.what, kind].append(where)

    def told(self, owner: str = "") -> list[StillroomError]:
        found = []
        for key, fault in self._first.items():
            places = self._places[key]
            more = f" and {len(places) - SHOWN:,} more" if len(places) > SHOWN else ""
            where = owner + ", ".join(places[:SHOWN]) + more + (f": {key[1]}" if key[1] else "")
            found.append(BadInput(fault.what, where=where, why=fault.why, remedy=fault.remedy))
        return list(found)


def _of_pictures(folder: Path, classes: Classes, form: PictureForm | None) -> list[StillroomError]:
    faults, inner = _Faults(), sub_folders(folder)
    parts = {name: inner[name] for name in ("train", "test") if name in inner}
    official = len(parts) == 2 and all(sub_folders(part) for part in parts.values())
    roots = list(parts.values()) if official else [folder]
    with faults.collecting():
        folder_classes(roots, classes)
    shapes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for root in roots:
        for own in sub_folders(root).values():
            files = sorted(path for path in own.iterdir() if not path.name.startswith("."))
            if not files:
                faults.add(
                    BadInput(
                        "a class folder holds no pictures",
                        why="a class without records is most often a copy that was not finished",
                        remedy="put its pictures there, or remove the folder",
                    ),
                    str(own),
                )
            for file in files:
                with faults.collecting(str(file)):
                    picture = picture_in(file, form)
                    sides = "x".join(map(str, picture.shape))
                    shape = f"{sides} {picture.dtype}"
                    shapes[shape] += 1
                    examples.setdefault(shape, str(file))
    found = faults.told()
    return [*found, _mixed(shapes, examples)] if len(shapes) > 1 else found


def _mixed(shapes: Counter[str], examples: Mapping[str, str]) -> BadInput:
    common = shapes.most_common()
    shown = ", ".join(f"{count:,} of {shape}" for shape, count in common[: 2 * SHOWN])
    more = f" and {len(common) - 2 * SHOWN} other kinds" if len(common) > 2 * SHOWN else ""
    return BadInput(
        f"the pictures have {len(common)} different sizes or modes: {shown}{more}",
        where=", ".join(examples[shape] for shape, _ in common[1 : SHOWN + 1]),
        why="all records of a data set have one shape",
        remedy='set data.size, such as 64, and data.mode, "grey" or "colour" (--size 64 --mode '
        "grey): pictures are then converted as they are read",
    )


def _of_lines(
    path: Path, classes: Classes, columns: Mapping[str, str | None]
) -> list[StillroomError]:
    faults = _Faults()
    known: set[str] = set()
    with faults.collecting():
        known = set(class_names(classes, "data.classes"))
    with opened(path) as content:
        text = CsvLines(content)
        lines = csv.reader(text, strict=True)
        header = next(lines, [])
        place: dict[str, int] = {}
        for role, column in columns.items():
            if column is not None:
                with faults.collecting():
                    place[role] = column_place(header, column, str(path))
        if len(place) < sum(column is not None for column in columns.values()):
            return faults.told()
        is_feature = [i not in place.values() for i in range(len(header))]
        features = list(compress(range(len(header)), is_feature))
        ids: set[str] = set()
        for cells in lines:
            text.taken = 0
            if cells:
                _look_at_line(faults, cells, header, place, features, known, ids, lines.line_num)
    return faults.told(f"{path}, line ")


def _look_at_line(
    faults: _Faults,
    cells: list[str],
    header: list[str],
    place: Mapping[str, int],
    features: list[int],
    known: set[str],
    ids: set[str],
    line: int,
) -> None:
    def tell(what: str, remedy: str, why: str = "", column: int | None = None) -> None:
        kind = "" if column is None else named_column(header, column)
        faults.add(BadInput(what, why=why, remedy=remedy), str(line), kind)

    if len(cells) != len(header):
        tell(
            "a line has not as many cells as the header has columns",
            "repair the line; text with commas needs quotes",
        )
        return
    for column in features:
        if wrong := _wrong(cells[column]):
            tell(*wrong, column=column)
    if known and cells[place["label"]] not in known:
        tell(
            "a label is not among the given classes",
            "list all class names as the label column spells them",
            "the recipe's classes decide what may be counted, not the data",
        )
    if "id" in place:
        if cells[place["id"]] in ids:
            tell(
                "an id occurs twice",
                "make the ids unique; if they name persons, give them as persons instead",
                "two records under one id would be charged and protected as one",
            )
        ids.add(cells[place["id"]])


def _wrong(cell: str) -> tuple[str, str] | None:
    try:
        number = float(cell)
    except ValueError:
        if cell.strip():
            return (
                "a feature is not a number",
                "turn text columns into numbers, or name them as label, id or person",
            )
        return (
            "a feature is missing",
            "fill the cell in, or leave out the record or the column",
        )
    if math.isfinite(number):
        return None
    return (
        "a feature is not a finite number",
        "remove or repair records with NaN or infinity",
    )
