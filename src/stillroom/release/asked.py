"""Records that a bundle's model is asked about, each under a name, some at a time.

Labels are not needed, and not looked at. Files are read as they come, so that memory does not grow
with their number: a folder of pictures, or a CSV file of any length.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.release.predict import Described, no_records

if TYPE_CHECKING:
    from stillroom.data.schema import Schema

Records = npt.NDArray[Any]
Batch = tuple[list[str], Records]

LARGEST_INPUT = 1 << 29
"""Bytes of a .npy file, which is read as a whole."""
PICTURES = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp"))
LABEL = "label"


def batches(name_or_path: str, model: Described, together: int) -> Iterator[Batch]:
    """Records of a data set by name, of a file or of a folder, with their names.

    The name of a picture is that of its file; of another record its id, or else its number from 0.

    Args:
        name_or_path: a data set; a picture; a folder of pictures, with or without sub-folders; or a
            file: CSV, npz or npy. Labels may be there or not.
        model: what they are for. Columns of a CSV file are found by name, in any order.
        together: how many records at a time.

    Raises:
        BadInput: nothing is found, it cannot be read, or a record does not fit the model.
    """
    from stillroom.data.catalogue import KNOWN
    from stillroom.data.store import home, imported

    path = Path(name_or_path)
    if name_or_path in (*KNOWN, *imported(home())):
        return _of_data_set(name_or_path, None, together)
    if path.suffix == ".npy" and path.is_file():
        return _sliced(None, _read_npy(path), together)
    if path.suffix.lower() in PICTURES and path.is_file():
        return _of_pictures([(path, str(path))], model, together)
    if path.is_dir():
        if found := _pictures_in(path):
            return _of_pictures(found, model, together)
        return _of_data_set(name_or_path, model.classes, together)
    return _of_file(path, name_or_path, model, together)


def _of_file(path: Path, name: str, model: Described, together: int) -> Iterator[Batch]:
    from stillroom.data.files import file_kind

    kind = file_kind(path) if path.exists() else None
    if kind == "csv" and model.schema is not None:
        return _of_table(path, model.schema, together)
    if kind == "csv":
        return _of_csv(path, model, together)
    if kind == "npz":
        return _of_npz(path, together)
    return _of_data_set(name, model.classes, together)


def _of_data_set(name: str, classes: Any, together: int) -> Iterator[Batch]:
    from stillroom.data.store import load_parts

    for part in load_parts(name, classes).values():
        yield from _sliced(None if part.ids_from_content else part.ids, part.x, together)


def _of_npz(path: Path, together: int) -> Iterator[Batch]:
    from stillroom.data.arrays import opened_npz

    with opened_npz(path) as arrays:
        parts = [ending for ending in ("", "_train", "_test") if f"x{ending}" in arrays.names]
        if not parts:
            raise no_records("the file has no array x", "save the records as x", str(path))
        for ending in parts:
            x = arrays[f"x{ending}"]
            if x.ndim < 2 or x.dtype.kind not in "biuf":
                raise no_records("x is no array of records", "give one row per record", str(path))
            arrays.refuse_more(len(x))
            named = f"ids{ending}" in arrays.names
            ids = np.atleast_1d(arrays[f"ids{ending}"]).tolist() if named else None
            if ids is not None and len(ids) != len(x):
                raise no_records("there are not as many ids as records", "give one each", str(path))
            yield from _sliced(ids, x, together)


def _sliced(names: Iterable[object] | None, x: Records, together: int) -> Iterator[Batch]:
    listed = None if names is None else [str(name) for name in names]
    for start in range(0, len(x), together):
        part = x[start : start + together]
        numbers = map(str, range(start, start + len(part)))
        yield (list(numbers) if listed is None else listed[start : start + together]), part


def _pictures_in(folder: Path) -> list[tuple[Path, str]]:
    """All pictures of a folder and its sub-folders, with their names from the folder on."""
    found = []
    for path in sorted(folder.rglob("*")):
        within = path.relative_to(folder)
        if any(part.startswith(".") for part in within.parts):
            continue
        if path.suffix.lower() in PICTURES and path.is_file():
            found.append((path, within.as_posix()))
    return found


def _of_pictures(files: list[tuple[Path, str]], model: Described, together: int) -> Iterator[Batch]:
    from stillroom.data.files import plain_file
    from stillroom.data.pictures import read_picture

    for some in _some(iter(files), together):
        pictures = []
        for path, _ in some:
            with plain_file(path) as (stream, _size):
                pictures.append(read_picture(stream))
            if pictures[-1].shape != model.shape:
                raise BadInput(
                    f"the picture has shape {pictures[-1].shape}, the model takes {model.shape}",
                    where=str(path),
                    why="other records would get labels that mean nothing",
                    remedy="bring the pictures to the size and mode the model was trained on",
                )
        yield [name for _, name in some], np.stack(pictures)


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
    from stillroom.data.files import opened
    from stillroom.data.readers import CsvLines, no_number

    with opened(path) as content:
        text = CsvLines(content)
        lines = csv.reader(text, strict=True)
        header = next(lines, [])
        names = _places(header, model.id_column, path)
        features = _features(header, model, path)

        def rows() -> Iterator[tuple[str, list[float]]]:
            number = 0
            for cells in lines:
                text.taken = 0
                if not cells:
                    continue
                where = f"{path}, line {lines.line_num}"
                if len(cells) != len(header):
                    raise BadInput(
                        "a line has not as many cells as the header has columns",
                        where=where,
                        remedy="repair the line; text with commas needs quotes",
                    )
                try:
                    row = [float(cells[place]) for place in features]
                except ValueError:
                    raise no_number(header, cells, features, where) from None
                yield cells[names[0]] if names else str(number), row
                number += 1

        for some in _some(rows(), together):
            yield [name for name, _ in some], np.array([row for _, row in some])


def _places(header: list[str], column: str | None, path: Path) -> list[int]:
    """Where the ids stand, if they are there."""
    from stillroom.data.readers import column_place

    return [column_place(header, column, str(path))] if column in header and column else []


def _features(header: list[str], model: Described, path: Path) -> list[int]:
    from stillroom.data.readers import column_place

    if model.columns is None:
        return [place for place, name in enumerate(header) if name not in (LABEL, model.id_column)]
    missing = [name for name in model.columns if name not in header]
    if missing:
        raise BadInput(
            f"{len(missing)} of the {len(model.columns)} columns the model was trained on are not "
            "there",
            where=f"{path}, line 1",
            why="every label would rest on features that are missing",
            remedy="name the columns as `columns` in the bundle's certificate.json, in any order",
        )
    return [column_place(header, name, str(path)) for name in model.columns]


def _some(items: Iterator[Any], together: int) -> Iterator[list[Any]]:
    while some := list(islice(items, together)):
        yield some


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
