"""Readers of data files: IDX, npz, CSV, and the digits that come with scikit-learn.

Every reader checks all it reads and says where a file is wrong, never what it holds there.
"""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data.arrays import opened_npz
from stillroom.data.dataset import Dataset, class_names, refuse_other_length
from stillroom.data.files import CHUNK, Content, idx_header, opened
from stillroom.data.other_tables import is_record, is_text, not_utf_8, refuse_other_separator
from stillroom.errors import BadInput
from stillroom.extras import needed

Classes = int | Sequence[str] | None
DIGITS = tuple("0123456789")
LONGEST_LINE = 1 << 23
"""Characters of one record in a CSV file."""
LONGEST_NAME = 1000
LONGEST_SHOWN = 60
MOST_SHOWN = 12


def digits() -> Dataset:
    """The 8x8 handwritten digits inside scikit-learn: real scans, no download.

    Raises:
        BadInput: scikit-learn is not installed, or cannot be loaded.

    >>> digits()
    Dataset('digits', shape=(8, 8), classes=10)
    """
    with needed("sklearn", where="digits", why="the digits come with scikit-learn"):
        from sklearn.datasets import load_digits
    bunch = load_digits()
    return Dataset(bunch.images.astype(np.uint8), bunch.target, DIGITS, name="digits")


def read_idx(images_path: str | Path, labels_path: str | Path, classes: Classes) -> Dataset:
    """Read the IDX format of MNIST, plain or gzipped, any of its six number types.

    Args:
        images_path: the file of records.
        labels_path: the file of labels, in the same order.
        classes: names of the classes, or how many there are.

    Raises:
        BadInput: a file is missing, truncated, has trailing bytes or is not IDX; or the two files
            do not fit together.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     images, labels = Path(folder) / "images", Path(folder) / "labels"
    ...     _ = images.write_bytes(bytes([0, 0, 8, 2] + [0, 0, 0, 2] + [0, 0, 0, 3] + [9] * 6))
    ...     _ = labels.write_bytes(bytes([0, 0, 8, 1] + [0, 0, 0, 2] + [1, 0]))
    ...     read_idx(images, labels, classes=10).x
    array([[9, 9, 9],
           [9, 9, 9]], dtype=uint8)
    """
    names = class_names(classes, str(images_path))
    x, y = _idx_array(Path(images_path)), _idx_array(Path(labels_path))
    return Dataset(x, y, names, name=str(images_path))


def read_npz(path: str | Path, classes: Classes, part: str | None = None) -> Dataset:
    """Read `x`, `y` and, if there, `ids` and `persons` from an npz file; never unpickles.

    Args:
        path: the file.
        classes: names of the classes, or how many there are.
        part: `"train"` reads `x_train`, `y_train`, `ids_train` and `persons_train`, and so on.

    Raises:
        BadInput: the file is no readable npz, lacks an array, or needs a part to be chosen.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "scans.npz", x_test=np.eye(2), y_test=[0, 2])
    ...     read_npz(Path(folder) / "scans.npz", classes=3, part="test").y
    array([0, 2])
    """
    names = class_names(classes, str(path))
    ending = "" if part is None else f"_{part}"
    with opened_npz(Path(path)) as arrays:
        parts = _parts(arrays.names)
        if part not in parts:
            choice = " or ".join(f"part={p!r}" for p in parts if p) or "no part"
            raise BadInput(
                f"the file has no arrays x{ending} and y{ending}, but {_listed(arrays.names)}",
                why="records and labels are looked for under these names",
                remedy=f"ask for {choice}"
                if parts
                else "save arrays called x and y; or x_train, y_train, x_test and y_test",
            )
        x, y = arrays[f"x{ending}"], arrays[f"y{ending}"]
        records = len(x) if x.ndim else 0
        arrays.refuse_more(records)
        ids, persons = (
            _listed_names(arrays[kind + ending], kind, records)
            if kind + ending in arrays.names
            else None
            for kind in ("ids", "persons")
        )
    return Dataset(x, y, names, ids or (), persons, str(path))


def npz_parts(path: str | Path) -> tuple[str | None, ...]:
    """The parts an npz file holds: None for plain `x` and `y`, else `train`, `test` and the like.

    Raises:
        BadInput: the file is no readable npz.
    """
    with opened_npz(Path(path)) as arrays:
        return _parts(arrays.names)


def read_csv(
    path: str | Path,
    classes: Classes,
    label: str = "label",
    id: str | None = None,
    person: str | None = None,
) -> Dataset:
    """Read a CSV file with a header line; every column without another role is a feature.

    Args:
        path: the file, UTF-8, plain or gzipped.
        classes: names of the classes as the label column spells them, or how many there are (the
            labels are then 0, 1, 2 and so on).
        label: the column of labels.
        id: the column of record ids, if there is one.
        person: the column that names the person of a record, if there is one.

    Raises:
        BadInput: a column is missing, a cell is no number, a label is no declared class, or a
            line has too few or too many cells. The line is named, the cell's content is not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "visits.csv").write_text("age,label\\n52,ill\\n37,well\\n")
    ...     read_csv(Path(folder) / "visits.csv", classes=("well", "ill")).y
    array([1, 0])
    """
    names = class_names(classes, str(path))
    number_of = {name: number for number, name in enumerate(names)}
    numbers, labels = array("d"), array("q")
    texts: dict[str, list[str]] = {"ids": [], "persons": []}
    with opened(Path(path)) as content:
        text = CsvLines(content)
        lines = csv.reader(text, strict=True)
        header = next(lines, [])
        roles = {"ids": id, "persons": person, "labels": label}
        place = {
            role: column_place(header, c, str(path)) for role, c in roles.items() if c is not None
        }
        is_feature = [i not in place.values() for i in range(len(header))]
        features = list(compress(range(len(header)), is_feature))
        for cells in lines:
            text.taken = 0
            if not cells:
                continue
            where = f"{path}, line {lines.line_num}"
            if len(cells) != len(header):
                raise BadInput(
                    "a line has not as many cells as the header has columns",
                    where=where,
                    why="its numbers would be taken for those of another column",
                    remedy="repair the line; text with commas needs quotes",
                )
            try:
                numbers.extend(map(float, compress(cells, is_feature)))
            except ValueError:
                raise no_number(header, cells, features, where) from None
            if cells[place["labels"]] not in number_of:
                raise BadInput(
                    "a label is not among the given classes",
                    where=where,
                    why="the recipe's classes decide what may be counted, not the data",
                    remedy="list all class names as the label column spells them",
                )
            labels.append(number_of[cells[place["labels"]]])
            content.refuse_more(8 * len(numbers), len(labels))
            for role, kept in texts.items():
                if role in place:
                    kept.append(
                        short_name(cells[place[role]], named_column(header, place[role]), where)
                    )
    x = np.asarray(numbers).reshape(len(labels), len(features))
    finite = np.isfinite(x)
    if not finite.all():
        record, column = divmod(int(np.argmin(finite)), len(features))
        raise BadInput(
            "a feature is not a finite number",
            where=f"{path}, record {record}, {named_column(header, features[column])}",
            why="it would spoil every sum it enters, and clipping cannot bound it",
            remedy="remove or repair records with NaN or infinity",
        )
    persons = tuple(texts["persons"]) if person is not None else None
    columns = tuple(header[i] for i in features)
    return Dataset(x, np.array(labels), names, tuple(texts["ids"]), persons, str(path), columns)


class CsvLines(Iterator[str]):
    """The lines of a CSV file; `taken` counts what was read since its owner last set it to 0."""

    def __init__(self, content: Content) -> None:
        self._text = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
        self.taken = 0

    def __next__(self) -> str:
        try:
            line = self._text.readline(LONGEST_LINE + 1)
        except UnicodeDecodeError as fault:
            if is_text(fault.object):
                raise not_utf_8() from None
            raise
        self.taken += len(line)
        # A cell in quotes may hold line breaks, so one record may take many lines.
        if self.taken > LONGEST_LINE:
            raise BadInput(
                f"a record has more than {LONGEST_LINE} characters",
                why="it would fill the memory; a file of another kind may look like one line",
                remedy="check that the file is a CSV with one record per line",
            )
        if not line:
            raise StopIteration
        return line


def no_number(header: list[str], cells: list[str], features: list[int], where: str) -> BadInput:
    """The refusal of a line: which of its cells is no number, and never what it holds."""

    def fails(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return True
        return False

    wrong = next(i for i in features if fails(cells[i]))
    return BadInput(
        "a feature is not a number" if cells[wrong].strip() else "a feature is missing",
        where=f"{where}, {named_column(header, wrong)}",
        why="a model is trained on numbers, and nothing is guessed",
        remedy="turn text columns into numbers, or name them as label, id or person"
        if cells[wrong].strip()
        else "fill the cell in, or leave out the record or the column",
    )


def named_column(header: list[str], column: int) -> str:
    """A column for a message."""
    return f"column {column_named(header, column)}"


def column_named(header: list[str], column: int) -> str:
    """A column's number, and its name where it can be shown."""
    name = header[column]
    short = name.isprintable() and 0 < len(name) <= LONGEST_SHOWN
    return f"{column + 1}" + (f" ({name!r})" if short else "")


def short_name(name: str, column: str, where: str) -> str:
    """A name of a record or person, if it is not too long to be one.

    Raises:
        BadInput: it is.
    """
    if len(name) > LONGEST_NAME:
        raise BadInput(
            f"the name of a record or person has more than {LONGEST_NAME} characters",
            where=f"{where}, {column}",
            why="names are kept in memory, all of them",
            remedy="name the column that holds ids or persons, or give shorter ones",
        )
    return name


def column_place(header: list[str], wanted: str, where: str) -> int:
    """Where the one column of that name stands.

    Raises:
        BadInput: there is none, or there are several.
    """
    if header.count(wanted) == 1:
        return header.index(wanted)
    # The header is not quoted: without a header line it would be somebody's record.
    refuse_other_separator(header, f"{where}, line 1")
    alike = [name.strip().casefold() for name in header].count(wanted.strip().casefold())
    remedy = (
        "put column names in the first line, and say which one holds the labels (and ids or "
        "persons, if any)"
    )
    if header.count(wanted) > 1:
        remedy = "give each column a name of its own"
    elif alike:
        remedy = "there is one with other capital letters, or spaces around it: write both alike"
    elif is_record(header):
        remedy = "the first line looks like a record: put a line with column names above it"
    raise BadInput(
        f"the first line does not hold exactly one column called {wanted!r}",
        where=f"{where}, line 1",
        why="columns are found by their names",
        remedy=remedy,
    )


def _parts(arrays: Sequence[str]) -> tuple[str | None, ...]:
    if "x" in arrays and "y" in arrays:
        return (None,)
    return tuple(p for p in ("train", "test") if f"x_{p}" in arrays and f"y_{p}" in arrays)


def _listed(names: Sequence[str]) -> str:
    """Names of arrays for a message: not too many, and only those that can be shown."""
    shown = [n for n in names if n.isprintable() and len(n) <= LONGEST_SHOWN][:MOST_SHOWN]
    more = ", ..." if len(shown) < len(names) else ""
    return f"{', '.join(shown)}{more}" if names else "none at all"


def _listed_names(names: npt.NDArray[Any], kind: str, records: int) -> tuple[Any, ...]:
    # Before they become texts, which take ten times the memory.
    refuse_other_length(names.size, kind, records)
    return tuple(np.atleast_1d(names).tolist())


def _idx_array(path: Path) -> npt.NDArray[Any]:
    with opened(path) as stream:
        header = idx_header(stream)
        if header is None:
            raise BadInput(
                "the file does not start like an IDX file",
                why="records of another format would be read as noise",
                remedy="give the IDX file itself, plain or gzipped, not an archive around it",
            )
        dtype, shape = header
        expected = math.prod(shape) * dtype.itemsize
        # Read in chunks: a broken header may promise more than any memory holds.
        body = bytearray()
        while len(body) <= expected and (chunk := stream.read(CHUNK)):
            body += chunk
        if expected == 0 or len(body) != expected:
            flaw = "longer" if len(body) > expected > 0 else "shorter"
            raise BadInput(
                f"the file is {flaw} than its header says",
                why="records would be cut or shifted against their labels",
                remedy="get the file again; it may be an unfinished copy",
            )
        stream.refuse_more(expected, shape[0])
    stored = np.frombuffer(body, dtype=dtype).reshape(shape)
    return stored.astype(dtype.newbyteorder("="), copy=False)
