"""Arrays of numbers in MATLAB files of version 5, and nothing else of that format.

scipy's reader is not used: even where `whosmat` has vouched for names, types and sizes, one changed
byte of a plain file in 45 makes scipy 1.17's `loadmat` end the whole process (SIGSEGV or SIGBUS).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data.files import MOST_CONTENT

HEADER = 128
ORDERS = {b"IM": "<", b"MI": ">"}
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
NUMERIC_CLASSES = range(6, 16)
COMPLEX = 0x0800
MOST_ELEMENTS = 10_000


class TooLong(Exception):
    """What is compressed in the file is longer than was allowed."""


def mat_arrays(
    content: bytes, wanted: Collection[str], most: int = MOST_CONTENT
) -> dict[str, npt.NDArray[Any]]:
    """The wanted arrays of real numbers, as far as the file holds them, in the type as stored.

    Args:
        content: of the file.
        wanted: the names of the arrays.
        most: bytes to which its compressed elements may unpack together.

    Raises:
        TooLong: they unpack to more.
        ValueError, KeyError, struct.error, zlib.error: the file is damaged or of another kind.
    """
    order = ORDERS[content[HEADER - 2 : HEADER]]
    found = {}
    for kind, body in _elements(memoryview(content)[HEADER:], order):
        if kind == COMPRESSED:
            unpacked = _unpacked(body, most)
            most -= len(unpacked)
            kind, body = next(_elements(memoryview(unpacked), order), (0, body))
        if kind != MATRIX:
            continue
        first = list(islice(_elements(body, order), 4))
        name = bytes(first[2][1]).decode("latin-1") if len(first) == 4 else ""
        if name in wanted:
            found[name] = _array(first, order)
    return found


def _unpacked(body: memoryview, most: int) -> bytes:
    packed = zlib.decompressobj()
    unpacked = packed.decompress(body, most + 1)
    if len(unpacked) > most:
        raise TooLong
    if not packed.eof:
        raise ValueError("a compressed element is cut")
    return unpacked


def _array(parts: list[tuple[int, memoryview]], order: str) -> npt.NDArray[Any]:
    (_, flags), (_, sizes), _, (kind, values) = parts
    (word,) = struct.unpack_from(f"{order}I", flags)
    if word & 0xFF not in NUMERIC_CLASSES or word & COMPLEX:
        raise ValueError("no array of real numbers")
    shape = np.frombuffer(sizes, dtype=f"{order}i4").tolist()
    dtype = np.dtype(order + TYPES[kind])
    stored = np.frombuffer(values, dtype=dtype).reshape(shape, order="F")
    return stored.astype(dtype.newbyteorder("="), copy=False)


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    place = 0
    for _ in range(MOST_ELEMENTS):
        if place >= len(content):
            return
        (word,) = struct.unpack_from(f"{order}I", content, place)
        if word >> 16:
            # Up to four bytes are kept inside the tag, whose first half is then their number.
            kind, size, start = word & 0xFFFF, word >> 16, place + 4
            after = place + 8
        else:
            (size,) = struct.unpack_from(f"{order}I", content, place + 4)
            kind, start = word, place + 8
            after = start + size if kind == COMPRESSED else start + (size + 7) // 8 * 8
        if start + size > min(after, len(content)):
            raise ValueError("an element is cut")
        yield kind, content[start : start + size]
        place = after
    raise ValueError("too many elements")
