"""A new npz file, written row by row: as much memory for a million records as for a hundred."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from stillroom.durable import new_file
from stillroom.errors import BadInput

Array = npt.NDArray[Any]
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""The first day of a zip file: the same arrays are the same bytes on any day."""


class Rows:
    """The arrays of a new file, row by row.

    Args:
        archive: the file.
        draft: where arrays are kept until they can be put into it, as it takes one at a time.
        count: how many rows there will be.
        kept: closes what was opened.
    """

    def __init__(self, archive: zipfile.ZipFile, draft: Path, count: int, kept: ExitStack) -> None:
        self._archive, self._draft, self._count, self._kept = archive, draft, count, kept
        self._streams: dict[str, IO[bytes]] = {}
        self._kinds: dict[str, Array] = {}

    def add(self, arrays: Mapping[str, Array]) -> None:
        """Some rows of each array; the first one goes straight into the file."""
        for name, rows in arrays.items():
            if name not in self._streams:
                self._kinds[name] = rows[:0]
                self._streams[name] = self._opened(name, rows)
            self._streams[name].write(np.ascontiguousarray(rows).tobytes())

    def _opened(self, name: str, rows: Array) -> IO[bytes]:
        if not self._streams:
            return self._kept.enter_context(_member(self._archive, name, rows, self._count))
        apart = self._draft.with_name(f"{self._draft.name}.{name}")
        return self._kept.enter_context(apart.open("xb+"))

    def finish(self, more: Mapping[str, Array]) -> None:
        """Put everything into the file, and some whole arrays behind it."""
        first, *others = self._streams
        self._streams[first].close()
        for name in others:
            stream = self._streams[name]
            stream.seek(0)
            with _member(self._archive, name, self._kinds[name], self._count) as member:
                shutil.copyfileobj(stream, member, 1 << 20)
        for name, whole in more.items():
            with _member(self._archive, name, whole, len(whole)) as member:
                member.write(np.ascontiguousarray(whole).tobytes())


def refuse_existing(path: Path) -> None:
    """See that a file is not there yet, before anything is done for it.

    Raises:
        BadInput: it is there.
    """
    if os.path.lexists(path):
        raise _unwritten(path, "it is already there")


@contextmanager
def new_npz(path: Path, count: int) -> Iterator[Rows]:
    """A new npz file of `count` rows; it is there when the block ends without an error.

    Guarantee: the file appears whole or not at all, and none is overwritten.

    Raises:
        BadInput: it is already there, or cannot be written.
    """
    try:
        with (
            new_file(path) as draft,
            zipfile.ZipFile(draft, "x", zipfile.ZIP_STORED) as archive,
            ExitStack() as kept,
        ):
            yield Rows(archive, draft, count, kept)
    except OSError as error:
        raise _unwritten(path, error.strerror or type(error).__name__) from None


def _unwritten(path: Path, why: str) -> BadInput:
    return BadInput(
        f"the file cannot be written ({why})",
        where=str(path),
        why="an existing file is never overwritten, and half a file is none",
        remedy="name a new file in a folder that exists, can be written to and has room",
    )


def _member(archive: zipfile.ZipFile, name: str, rows: Array, count: int) -> IO[bytes]:
    """An array of the archive, its header written."""
    header = io.BytesIO()
    shape, dtype = (count, *rows.shape[1:]), np.lib.format.dtype_to_descr(rows.dtype)
    told = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, told)
    info = zipfile.ZipInfo(f"{name}.npy", _OLDEST)
    member = archive.open(info, "w", force_zip64=True)
    member.write(header.getvalue())
    return member
