"""Arrays in npz files: what a header promises is checked before memory is set aside.

numpy's own reader believes the header, and fails on a damaged one in a dozen ways.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from stillroom.data.files import CHUNK, DAMAGE, Content, opened
from stillroom.errors import BadInput

LONGEST_HEADER = 10_000
MOST_AXES = 32
MOST_MEMBERS = 1 << 20
"""Bytes that the list of an npz file's members may take: some ten thousand of them."""

KINDS = "biufcmMSU"
"""Numbers, times and texts; objects can run code when they are read, records have no one type."""

_HEADERS: dict[int, tuple[int, Callable[[IO[bytes]], tuple[Any, ...]]]] = {
    1: (2, np.lib.format.read_array_header_1_0),
    2: (4, np.lib.format.read_array_header_2_0),
}
"""Version -> bytes of the header's length, and what reads both."""


class Arrays:
    """The arrays of an npz file by name, read when they are asked for."""

    def __init__(self, archive: zipfile.ZipFile, content: Content) -> None:
        self._archive = archive
        self._content = content
        self._members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        self._read = 0

    @property
    def names(self) -> list[str]:
        """What the arrays are called."""
        return list(self._members)

    def refuse_more(self, records: int) -> None:
        """Refuse more records than the file can honestly hold.

        Raises:
            BadInput: there are more.
        """
        self._content.refuse_more(0, records)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        with self._archive.open(self._members[name]) as member:
            array = _array(member, self._content, self._read)
        self._read += array.nbytes
        return array


@contextmanager
def opened_npz(path: Path) -> Iterator[Arrays]:
    """The arrays of an npz file; all its faults become BadInput, and nothing is unpickled."""
    with opened(path) as content, _plain_arrays():
        # The list of members is made as a whole when the file is opened.
        end = zipfile._EndRecData(content)  # type: ignore[attr-defined]
        if end is None or end[zipfile._ECD_SIZE] > MOST_MEMBERS:  # type: ignore[attr-defined]
            raise ValueError
        with zipfile.ZipFile(content) as archive:
            yield Arrays(archive, content)


@contextmanager
def _plain_arrays() -> Iterator[None]:
    try:
        yield
    except (BadInput, MemoryError, *DAMAGE):
        raise
    except Exception:
        # On a damaged file zipfile and numpy fail in a dozen ways; their messages may quote it.
        raise BadInput(
            "the file is not an npz of plain arrays",
            why="Python objects in a file can run code when they are read",
            remedy="save the arrays with numpy.savez, as numbers or text",
        ) from None


def _array(stream: IO[bytes], content: Content, read: int) -> npt.NDArray[Any]:
    """The array of an npy stream, where `read` bytes of its file have been read before."""
    shape, by_columns, dtype = _header(stream)
    usable = dtype.kind in KINDS and dtype.itemsize > 0 and dtype.subdtype is None
    if not usable or len(shape) > MOST_AXES or min(shape, default=0) < 0:
        raise ValueError
    size = math.prod(shape) * dtype.itemsize
    content.refuse_more(read + size)
    body = bytearray()
    while len(body) < size and (chunk := stream.read(min(CHUNK, size - len(body)))):
        body += chunk
    # Reading on at the end is what makes a zip file compare its checksum.
    if len(body) != size or stream.read(1):
        raise ValueError
    flat = np.frombuffer(body, dtype=dtype) if size else np.empty(0, dtype=dtype)
    flat = flat.astype(dtype.newbyteorder("="), copy=False)
    return flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    start = stream.read(8)
    if start[:6] != b"\x93NUMPY" or len(start) != 8:
        raise ValueError
    width, parse = _HEADERS[start[6]]
    length = stream.read(width)
    if int.from_bytes(length, "little") > LONGEST_HEADER:
        raise ValueError
    text = io.BytesIO(length + stream.read(int.from_bytes(length, "little")))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse(text)
    except MemoryError:
        # Python's parser says so of a header that is nested too deeply.
        raise ValueError from None
