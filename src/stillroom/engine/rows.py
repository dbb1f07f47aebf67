"""One matrix on disk, one row per unit, written as units finish; read without loading it.

The file has its whole size from the beginning, so that a full disk is found before anything is
trained. A row counts once its checksum is on disk: after a crash, what was half written is run
again, and so is a row that was damaged.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stillroom.durable import write_whole
from stillroom.engine.results import Result
from stillroom.errors import BadInput

ROW = "row"
"""What a task calls the array that becomes its row."""

Matrix = npt.NDArray[np.float32]


class RowStore:
    """Rows of equal length in a folder, for one plan only; for their owner alone.

    Args:
        folder: for the matrix and its checksums.
        key: a digest of everything the rows depend on.
        names: of the units, in the order of the rows.
        columns: numbers per row.

    Raises:
        BadInput: the folder cannot hold the matrix, or holds another plan's.
    """

    def __init__(self, folder: Path, key: str, names: Sequence[str], columns: int) -> None:
        self._names = {name: row for row, name in enumerate(names)}
        self._columns, self._key = columns, key
        self._file, self._marks_file = folder / "rows.npy", folder / "rows.json"
        self._marks: dict[str, str] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._header = self._made()
        except OSError as error:
            raise self._unwritable(error) from None
        if self._marks_file.exists():
            self._marks = self._known()

    @property
    def matrix(self) -> Matrix:
        """All rows, mapped and not loaded; a row that is not finished has zeros, or anything."""
        return np.load(self._file, mmap_mode="r")  # type: ignore[no-any-return]

    def load(self, name: str) -> Result | None:
        """The number of a finished row."""
        row = self._names[name]
        if self._marks.get(name) != _sum(self.matrix[row]):
            return None
        return {ROW: np.array(row)}

    def save(self, name: str, arrays: Result) -> Result:
        """Write a row, then its checksum.

        Raises:
            BadInput: it has another length, or cannot be written; finished rows are kept.
        """
        row = arrays[ROW].astype(np.float32)
        if row.shape != (self._columns,):
            raise BadInput(
                f"a row of {row.size} numbers among rows of {self._columns}",
                where=name,
                why="the models are not of one architecture, so their weights do not align",
                remedy="train or give models of the same network",
            )
        place = self._header + self._names[name] * row.nbytes
        try:
            descriptor = os.open(self._file, os.O_WRONLY)
            try:
                content = row.tobytes()
                while content:
                    written = os.pwrite(descriptor, content, place)
                    content, place = content[written:], place + written
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._marks[name] = _sum(row)
            told = json.dumps({"key": self._key, "rows": self._marks})
            write_whole(self._marks_file, told.encode())
        except OSError as error:
            self._marks.pop(name, None)
            raise self._unwritable(error) from None
        return {ROW: np.array(self._names[name])}

    def _made(self) -> int:
        """The bytes before the first number, in a file that has room for all of them."""
        head = io.BytesIO()
        shape = (len(self._names), self._columns)
        about = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(head, about)
        start, size = len(head.getvalue()), 4 * shape[0] * shape[1]
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size != start + size:
                os.ftruncate(descriptor, 0)
                self._marks_file.unlink(missing_ok=True)
                os.posix_fallocate(descriptor, 0, start + size)
                os.pwrite(descriptor, head.getvalue(), 0)
                os.fsync(descriptor)
        except OSError:
            self._file.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return start

    def _known(self) -> dict[str, str]:
        try:
            told = json.loads(self._marks_file.read_text(encoding="utf-8"))
            key, rows = told["key"], dict(told["rows"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        if key != self._key:
            raise BadInput(
                "the folder holds the rows of another plan",
                where=str(self._file.parent),
                why="rows of two plans must not be mixed",
                remedy="go on with the old plan, use another folder, or remove this one",
            )
        return rows

    def _unwritable(self, error: OSError) -> BadInput:
        size = 4 * len(self._names) * self._columns / 1e6
        room = " for want of room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return BadInput(
            f"the rows cannot be written{room} ({error.strerror})",
            where=str(self._file),
            why=f"{len(self._names)} rows of {self._columns:,} numbers take {size:,.0f} MB",
            remedy="make room, or take fewer or smaller models; finished rows are kept, and the "
            "same command goes on",
        )


def _sum(row: Matrix) -> str:
    return hashlib.sha256(np.ascontiguousarray(row).tobytes()).hexdigest()
