"""Opening data files, and telling them apart by what they hold, not by how they are called."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from stillroom.data.other_tables import refuse_utf_16, refuse_workbook
from stillroom.errors import BadInput, located

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_AXES = 8
CHUNK = 1 << 20
MOST_CONTENT = 128 << 20
"""Bytes that any data file may hold once it is unpacked, however little it takes on disk."""

MOST_RECORDS = 1 << 20
"""The same for records; each takes some hundred bytes for its id, whatever its own size."""

RECORD_ON_DISK = 8
"""Bytes on disk that a record takes at least, where there are more."""

MOST_PACKED = 512 << 20
"""Bytes that a file may hold at 32 for each on disk; real data unpack to some ten of them."""
PACKED_GROWTH = 32
"""Bytes of content for one on disk, up to MOST_PACKED."""
PLAIN_GROWTH = 4
"""Bytes of content for one on disk, in files of any size; a number takes two in a CSV file."""

DAMAGE = (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError)
"""How reading a file that is damaged, or of another kind, fails; `plain_file` refuses it then."""

CIFAR_RECORD = 1 + 3 * 32 * 32
"""Bytes of one CIFAR-10 record: its label, then the red, the green and the blue plane."""


def file_kind(path: str | Path) -> str:
    """`idx`, `npz`, `npy`, `csv`, `mat`, `cifar-bin` or `cifar-python`, from what the file holds.

    Raises:
        BadInput: the file cannot be read.
    """
    with opened(Path(path)) as stream:
        start = stream.read(64)
        refuse_workbook(start)
        if start[:2] == b"PK":
            return "npz"
        refuse_utf_16(start)
        if re.match(rb"MATLAB \d\.\d MAT-file", start):
            return "mat"
        if start[:1] == b"\x80":
            return "cifar-python"
        if start[:6] == b"\x93NUMPY":
            return "npy"
        if start[:1] > b"\x09" or not start:
            return "csv"
        stream.seek(0)
        header = idx_header(stream)
        length = stream.seek(0, io.SEEK_END)
        stream.refuse_more(length)
    if header is None:
        return "csv" if start[:1] == b"\t" and length % CIFAR_RECORD else "cifar-bin"
    dtype, shape = header
    # The first record of a CIFAR-10 batch may by chance read like the header of an IDX file.
    told = 4 + 4 * len(shape) + math.prod(shape) * dtype.itemsize
    return "idx" if length == told or length % CIFAR_RECORD else "cifar-bin"


def idx_header(stream: IO[bytes]) -> tuple[np.dtype[Any], list[int]] | None:
    """The number type and the shape an IDX file declares; None where it is no IDX file."""
    magic = stream.read(4)
    known = len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in IDX_TYPES
    if not known or not 1 <= magic[3] <= MOST_AXES:
        return None
    sizes = stream.read(4 * magic[3]).ljust(4 * magic[3], b"\0")
    return np.dtype(IDX_TYPES[magic[2]]), [int(n) for n in np.frombuffer(sizes, dtype=">u4")]


class Content(io.BufferedReader):
    """The unpacked content of a data file, and how much may be made of it.

    Guarantee: whoever reads it gets at most `most` bytes, so no small file fills the memory.

    Args:
        unpacked: where it comes from.
        stored: the bytes it takes on disk.
    """

    def __init__(self, unpacked: IO[bytes], stored: int) -> None:
        self.most = most_content(stored)
        self.most_records = max(MOST_RECORDS, stored // RECORD_ON_DISK)
        super().__init__(_Counted(unpacked, self))

    def read(self, size: int | None = -1) -> bytes:
        """As any stream; a damaged file may ask for more than any memory holds."""
        return super().read(size if size is None or size < 0 else min(size, self.most + 1))

    def refuse_more(self, size: int, records: int = 0) -> None:
        """Refuse what would take `size` bytes of memory, or so many records.

        Raises:
            BadInput: the file is too small on disk to hold that much.
        """
        if size > self.most:
            raise too_much(f"{self.most >> 20} MiB")
        if records > self.most_records:
            raise too_much(f"{self.most_records} records")


class _Counted(io.RawIOBase):
    """A stream that ends in a refusal where its content is too long."""

    def __init__(self, unpacked: IO[bytes], content: Content) -> None:
        self._unpacked = unpacked
        self._content = content
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._unpacked.readinto(buffer))  # type: ignore[attr-defined]
        self._place += count
        self._content.refuse_more(self._place)
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END and isinstance(self._unpacked, gzip.GzipFile):
            # Its length is only known once it is unpacked, which is counted like any reading.
            while self.read(CHUNK):
                pass
            offset, whence = self._place + offset, io.SEEK_SET
        self._place = self._unpacked.seek(offset, whence)
        return self._place


def most_content(stored: int) -> int:
    """Bytes that may come of a file that takes `stored` bytes on disk.

    >>> [most_content(megabytes << 20) >> 20 for megabytes in (1, 10, 100, 1000)]
    [128, 320, 512, 4000]
    """
    packed = min(PACKED_GROWTH * stored, MOST_PACKED)
    return max(MOST_CONTENT, packed, PLAIN_GROWTH * stored)


def too_much(most: str) -> BadInput:
    """The refusal of a file that holds more than `most`, far more than it takes on disk."""
    return BadInput(
        f"the file is small and holds more than {most} once it is unpacked",
        why="it would fill the memory; it is most often damaged, or made to do harm",
        remedy="if it is really that large, give it unpacked and without holes: the more a file "
        "takes on disk, the more it may hold",
    )


@contextmanager
def plain_file(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """A file as it is stored, and the bytes it takes on disk; all its faults become BadInput.

    A pipe, a socket or a device is refused and not waited for. Refusals inside the block that do
    not say where name the file.
    """
    with located(path):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                about = os.fstat(descriptor)
                if not stat.S_ISREG(about.st_mode):
                    raise _unreadable("it is a folder, a pipe or a device, not a plain file")
                # Holes take no place on disk; the last block may take more than its content.
                stored = min(about.st_size, 512 * about.st_blocks)
                with open(descriptor, "rb", closefd=False) as raw:
                    yield raw, stored
            finally:
                os.close(descriptor)
        except DAMAGE as fault:
            # Only the system's own words are passed on: other messages may quote the file.
            reason = fault.strerror if isinstance(fault, OSError) else None
            raise _unreadable(reason or "it is damaged or of another kind") from None


@contextmanager
def opened(path: Path) -> Iterator[Content]:
    """The file, unzipped where it is gzipped; all its faults become BadInput."""
    with plain_file(path) as (raw, stored):
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if zipped:
            with gzip.open(raw) as unzipped:
                yield Content(unzipped, stored)  # type: ignore[arg-type]
        else:
            yield Content(raw, stored)


def _unreadable(reason: str) -> BadInput:
    return BadInput(
        f"the file cannot be read ({reason})",
        why="without it there are no records",
        remedy="check the path and the permissions, or get the file again",
    )
