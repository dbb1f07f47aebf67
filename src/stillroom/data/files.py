"""Opening data files, and telling them apart by what they hold, not by how they are called."""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from stillroom.errors import BadInput

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_AXES = 8
CHUNK = 1 << 20
CIFAR_RECORD = 1 + 3 * 32 * 32
"""Bytes of one CIFAR-10 record: its label, then the red, the green and the blue plane."""


def file_kind(path: str | Path) -> str:
    """`idx`, `npz`, `csv`, `mat`, `cifar-bin` or `cifar-python`, from what the file holds.

    Raises:
        BadInput: the file cannot be read.
    """
    with opened(Path(path)) as stream:
        start = stream.read(64)
        if start[:2] == b"PK":
            return "npz"
        if re.match(rb"MATLAB \d\.\d MAT-file", start):
            return "mat"
        if start[:1] == b"\x80":
            return "cifar-python"
        if start[:1] > b"\x09" or not start:
            return "csv"
        stream.seek(0)
        header = idx_header(stream)
        length = len(start) if header is None else 4 + 4 * len(header[1])
        stream.seek(length)
        while chunk := stream.read(CHUNK):
            length += len(chunk)
    # The first record of a CIFAR-10 batch may by chance read like the header of an IDX file.
    if header is not None and length == _idx_length(*header):
        return "idx"
    if length % CIFAR_RECORD == 0:
        return "cifar-bin"
    if header is not None:
        return "idx"
    return "csv" if start[:1] == b"\t" else "cifar-bin"


def idx_header(stream: IO[bytes]) -> tuple[np.dtype[Any], list[int]] | None:
    """The number type and the shape an IDX file declares; None where it is no IDX file."""
    magic = stream.read(4)
    known = len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in IDX_TYPES
    if not known or not 1 <= magic[3] <= MOST_AXES:
        return None
    sizes = stream.read(4 * magic[3]).ljust(4 * magic[3], b"\0")
    return np.dtype(IDX_TYPES[magic[2]]), [int(n) for n in np.frombuffer(sizes, dtype=">u4")]


def _idx_length(dtype: np.dtype[Any], shape: list[int]) -> int:
    return 4 + 4 * len(shape) + math.prod(shape) * dtype.itemsize


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file, unzipped where it is gzipped; all its faults become BadInput."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if zipped:
                with gzip.open(raw) as unzipped:
                    yield unzipped  # type: ignore[misc]
            else:
                yield raw
    except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as fault:
        # Only the system's own words are passed on: other messages may quote the file.
        reason = fault.strerror if isinstance(fault, OSError) else None
        raise BadInput(
            f"the file cannot be read ({reason or 'it is damaged or of another kind'})",
            where=str(path),
            remedy="check the path and the permissions, or get the file again",
        ) from None
