"""Records that a bundle's model is asked about, each under a name, some at a time.

Labels are not needed, and not looked at. Files are read as they come, so that memory does not grow
with their number: a folder of pictures, or a CSV file of any length.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.release.asked_pictures import (
    LeftOut,
    is_picture,
    pictures_in,
    read_pictures,
)
from stillroom.release.predict import Described, no_records

if TYPE_CHECKING:
    from stillroom.data.schema import Schema

Records = npt.NDArray[Any]
Batch = tuple[list[str], Records]

LARGEST_INPUT = 1 << 29
"""Bytes of a .npy file, which is read as a whole."""
LABEL = "label"


def batches(
    name_or_path: str,
    model: Described,
    together: int,
    left_out: LeftOut | None = None,
    *,
    alone: bool = True,
) -> Iterator[Batch]:
    """Records of a data set by name, of a file or of a folder, with their names.

    The name of a picture is that of its file; of another record its id, or else its number from 0.
    What can be told before anything is answered is refused at once.

    Args:
        name_or_path: a data set; a picture; a folder of pictures, with or without sub-folders; or a
            file: CSV, npz or npy. Labels may be there or not.
        model: what they are for. Columns of a CSV file are found by name, in any order.
        together: how many records at a time.
        left_out: takes the pictures that cannot be read.
        alone: whether nothing else is asked about; else names begin with that of the folder.

    Raises:
        BadInput: nothing is found, it cannot be read, or a record does not fit the model.
    """
    from stillroom.data.catalogue import KNOWN
    from stillroom.data.store import home, imported, load_parts

    path, left_out = Path(name_or_path), left_out or LeftOut()
    if name_or_path in (*KNOWN, *imported(home())):
        if os.path.lexists(path):
            left_out.tell(f"{path} is a data set by name; the file or folder here is ./{path}")
        return _of_data_set(name_or_path, None, together)
    if path.suffix == ".npy" and os.path.isfile(path):
        return _sliced(None, _read_npy(path), together)
    if os.path.isdir(path):
        if found := pictures_in(path, left_out):
            within = "" if alone else f"{path.as_posix()}/"
            named = ((path / name, within + name) for name in found)
            return read_pictures(named, model, together, left_out)
        return _of_data_set(name_or_path, model.classes, together)
    if is_picture(path) and os.path.lexists(path):
        return read_pictures([(path, str(path))], model, together, left_out)
    if not os.path.exists(path):
        load_parts(name_or_path)  # says that it is not there
    return _of_file(path, name_or_path, model, together)


def _of_file(path: Path, name: str, model: Described, together: int) -> Iterator[Batch]:
    from stillroom.data.files import file_kind

    kind = file_kind(path)
    if kind == "csv" and model.schema is not None:
        return _of_table(path, model.schema, together)
    if kind == "csv":
        return _of_csv(path, model, together)
    if kind == "npz":
        return _of_npz(path, together)
    return _of_data_set(name, model.classes, together)


def _of_data_set(name: str, classes: Any, together: int) -> Iterator[Batch]:
    from stillroom.data.store import load_parts

    first = 0
    for part in load_parts(name, classes).values():
        named = None if part.ids_from_content else part.ids
        yield from _sliced(named, part.x, together, first)
        first += len(part)


def _of_npz(path: Path, together: int) -> Iterator[Batch]:
    from stillroom.data.arrays import opened_npz

    with opened_npz(path) as arrays:
        parts = [ending for ending in ("", "_train", "_test") if f"x{ending}" in arrays.names]
        if not parts:
            raise no_records("the file has no array x", "save the records as x", str(path))
        first = 0
        for ending in parts:
            x = arrays[f"x{ending}"]
            if x.ndim < 2 or x.dtype.kind not in "biuf":
                raise no_records("x is no array of records", "give one row per record", str(path))
            arrays.refuse_more(len(x))
            named = f"ids{ending}" in arrays.names
            ids = np.atleast_1d(arrays[f"ids{ending}"]).tolist() if named else None
            if ids is not None and len(ids) != len(x):
                raise no_records("there are not as many ids as records", "give one each", str(path))
            yield from _sliced(ids, x, together, first)
            first += len(x)


def _sliced(
    names: Iterable[object] | None, x: Records, together: int, first: int = 0
) -> Iterator[Batch]:
    """Some at a time; without names under their numbers from `first`."""
    listed = None if names is None else [str(name) for name in names]
    for start in range(0, len(x), together):
        part = x[start : start + together]
        numbers = map(str, range(first + start, first + start + len(part)))
        yield (list(numbers) if listed is None else listed[start : start + together]), part


def _of_table(path: Path, schema: Schema, together: int) -> Iterator[Batch]:
    """Columns by name, by the rules the model was trained by: clamped, other, missing."""
    from stillroom.data.files import opened
    from stillroom.data.tables import table_rows

    number = 0
    with opened(path) as content:
        for rows in table_rows(content, schema, str(path), together=together, whole=False):
            numbers = map(str, range(number, number + len(rows.x)))
            yield list(rows.texts.get("id", numbers)), rows.x
            number += len(rows.x)


def _of_csv(path: Path, model: Described, together: int) -> Iterator[Batch]:
    """Columns by name where the model knows them; else all but the label, as they stand."""
    from stillroom.data.files import DAMAGE, opened
    from stillroom.data.readers import CsvLines, no_number

    with opened(path) as content:
        text = CsvLines(content)
        lines = csv.reader(text, strict=True)
        header = next(lines, [])
        ids = _places(header, model.id_column, path)
        features = _features(header, model, path)

        def row(cells: list[str]) -> list[float]:
            if len(cells) != len(header):
                raise BadInput(
                    "a line has not as many cells as the header has columns",
                    why="its numbers would be taken for those of another column",
                    remedy="repair the line; text with commas needs quotes",
                )
            try:
                found = [float(cells[place]) for place in features]
            except ValueError:
                raise no_number(header, cells, features, where()) from None
            if not all(map(isfinite, found)):
                raise no_records("a value is not a finite number", "correct or remove it", where())
            return found

        def where() -> str:
            return f"{path}, line {lines.line_num}"

        answered, broken = 0, None
        while broken is None:
            names: list[str] = []
            x: list[list[float]] = []
            try:
                while len(x) < together:
                    text.taken = 0
                    if cells := next(lines):
                        x.append(row(cells))
                        names.append(cells[ids[0]] if ids else str(answered + len(names)))
            except (StopIteration, BadInput, *DAMAGE) as end:
                # What stands before a broken line is answered all the same.
                broken = end
                if isinstance(end, BadInput):
                    end.where = end.where or where()
            if x:
                yield names, np.array(x)
            answered += len(x)
        if not isinstance(broken, StopIteration):
            raise broken


def _places(header: list[str], column: str | None, path: Path) -> list[int]:
    """Where the ids stand, if they are there."""
    from stillroom.data.readers import column_place

    return [column_place(header, column, str(path))] if column in header and column else []


def _features(header: list[str], model: Described, path: Path) -> list[int]:
    from stillroom.data.other_tables import refuse_other_separator
    from stillroom.data.readers import MOST_SHOWN, column_place

    if model.columns is None:
        return [place for place, name in enumerate(header) if name not in (LABEL, model.id_column)]
    missing = [name for name in model.columns if name not in header]
    if missing:
        refuse_other_separator(header, f"{path}, line 1")
        shown = ", ".join(map(repr, missing[:MOST_SHOWN])) + (
            ", ..." if missing[MOST_SHOWN:] else ""
        )
        raise BadInput(
            f"{len(missing)} of the {len(model.columns)} columns the model was trained on are not "
            f"there: {shown}",
            where=f"{path}, line 1",
            why="every label would rest on features that are missing",
            remedy="name them in the first line, in any order, as `columns` in the bundle's "
            "certificate.json does",
        )
    return [column_place(header, name, str(path)) for name in model.columns]


def _read_npy(path: Path) -> Records:
    try:
        # Mapped before it is read: a header may promise more than any memory holds.
        mapped = np.lib.format.open_memmap(path, mode="r")
        proper = mapped.ndim >= 2 and mapped.dtype.kind in "biuf" and mapped.nbytes <= LARGEST_INPUT
        x = np.array(mapped) if proper else None
    except Exception:
        # On a damaged header numpy fails in a dozen ways, from EOFError to RecursionError.
        x = None
    if x is None:
        raise no_records(
            f"the file holds no array of numbers with one record per row, below "
            f"{LARGEST_INPUT >> 20} MiB",
            "save the records with numpy.save, in several files if there are many",
            str(path),
        )
    return x
