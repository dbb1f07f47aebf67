"""The format of somebody's data, looked at for a draft of a recipe: names, sizes, types.

What is told belongs to the format, which is the same with one record more or less. Only the guess
of a size comes from counting, is rounded to one digit, and is for the operator to confirm.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from stillroom.data.catalogue import KNOWN
from stillroom.data.dataset import Dataset
from stillroom.data.files import file_kind, opened
from stillroom.data.loading import found_beside
from stillroom.data.picture_form import PictureForm
from stillroom.data.pictures import picture_in, sub_folders
from stillroom.data.readers import CsvLines
from stillroom.data.store import home, imported, load_parts
from stillroom.errors import BadInput

LOOKED_AT = 40
"""Pictures of each class, or lines of a table, that are looked at."""
Kind = Literal["pictures", "table", "arrays", "name"]


@dataclass(frozen=True)
class Format:
    """What kind of data these are.

    Args:
        kind: a folder of pictures, a CSV file, a file of arrays, or a data set by name.
        looked_at: what was looked at, in words.
        shape: of one record; None where records differ, or it is not known.
        classes: their names, where the format tells them.
        parts: whether there are official train and test parts.
        columns: the names of a table's columns.
        texts: those that hold something else than numbers.
        persons: whether the data themselves name persons.
        mixed: whether pictures have several sizes or modes.
        colour: whether a picture in colour was seen.
        side: the smallest side that was seen.
        about: how many records there are, to one digit; 0 where they were not counted.
    """

    kind: Kind
    looked_at: str
    shape: tuple[int, ...] | None = None
    classes: tuple[str, ...] | None = None
    parts: bool = False
    columns: tuple[str, ...] = field(default=())
    texts: tuple[str, ...] = ()
    persons: bool = False
    mixed: bool = False
    colour: bool = False
    side: int = 0
    about: int = 0


def format_of(source: str, folder: Path) -> Format:
    """What kind of data these are.

    Args:
        source: a file or folder, or a data set by name.
        folder: where its name begins.

    Raises:
        BadInput: there is no such thing, or it cannot be read at all.
    """
    place = found_beside(source, folder)
    if place in KNOWN or place in imported(home()):
        return _of_parts(load_parts(place), "name")
    path = Path(place)
    if path.is_dir():
        found = _of_folder(path)
        return _of_parts(load_parts(place), "arrays") if found is None else found
    if path.is_file() and file_kind(path) == "csv":
        return _of_table(path)
    if path.is_file() and file_kind(path) == "npz":
        return _of_arrays(path)
    load_parts(place)  # says what is wrong with it
    return Format("arrays", "the kind of the file")


def rounded(count: int) -> int:
    """A count to its first digit.

    >>> rounded(5856), rounded(949), rounded(7)
    (6000, 900, 7)
    """
    return round(count, 1 - len(str(count)))


def _of_parts(parts: dict[str, Dataset], kind: Kind) -> Format:
    first = next(iter(parts.values()))
    return Format(
        kind,
        "the shape of a record, names of classes, parts",
        first.shape,
        first.classes,
        parts=set(parts) == {"train", "test"},
        columns=first.columns or (),
        persons=first.persons is not None,
        about=rounded(len(parts.get("train") or first)),
    )


def _of_folder(folder: Path) -> Format | None:
    inner = sub_folders(folder)
    parts = [inner[name] for name in ("train", "test") if name in inner]
    official = len(parts) == 2 and all(sub_folders(part) for part in parts)
    roots = parts if official else [folder]
    classes = {name: place for root in roots[::-1] for name, place in sub_folders(root).items()}
    if not classes:
        return None
    shapes: set[tuple[int, ...]] = set()
    strange = False
    for place in classes.values():
        for file in islice(_files(place), LOOKED_AT):
            try:
                shapes.add(picture_in(file).shape)
            except BadInput:
                strange = True  # perhaps a palette; a check of the recipe names it
    counted = sum(1 for place in sub_folders(roots[0]).values() for _ in _files(place))
    mixed = strange or len(shapes) > 1
    return Format(
        "pictures",
        f"names of class folders, sizes of the first {LOOKED_AT} pictures of each",
        None if mixed else next(iter(shapes), None),
        tuple(sorted(classes)),
        parts=official,
        mixed=mixed,
        colour=any(len(shape) == 3 for shape in shapes),
        side=min((min(shape[:2]) for shape in shapes), default=0),
        about=rounded(counted),
    )


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))


def _of_table(path: Path) -> Format:
    with opened(path) as content:
        lines = csv.reader(CsvLines(content), strict=True)
        header = next(lines, [])
        texts: set[int] = set()
        for cells in islice(lines, LOOKED_AT):
            texts |= {place for place, cell in enumerate(cells) if not _is_number(cell)}
        counted = lines.line_num - 1 + sum(1 for cells in lines if cells)
    return Format(
        "table",
        f"names of columns, and which of them hold text in the first {LOOKED_AT} lines",
        columns=tuple(header),
        texts=tuple(name for place, name in enumerate(header) if place in texts),
        about=rounded(max(0, counted)),
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell.strip()
    return True


def _of_arrays(path: Path) -> Format:
    from stillroom.data.arrays import opened_npz
    from stillroom.data.readers import npz_parts

    parts = npz_parts(path)
    with opened_npz(path) as arrays:
        x = arrays[f"x_{parts[0]}" if parts and parts[0] else "x"]
        names = any(name.startswith("persons") for name in arrays.names)
    return Format(
        "arrays",
        "names of arrays, the shape of a record",
        tuple(x.shape[1:]),
        parts=set(parts) == {"train", "test"},
        persons=names,
        about=rounded(len(x)),
    )


def proposed_form(found: Format) -> PictureForm | None:
    """What pictures of several sizes or modes could be brought to; None where they are alike."""
    if not found.mixed:
        return None
    side = next((side for side in (128, 64, 32) if side <= found.side), 28)
    return PictureForm((side, side), "colour" if found.colour else "grey")
