"""Whole numbers of a few bits each, packed into bytes without gaps; the lowest bit comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MOST_BITS = 32
_TOGETHER = 1 << 18
"""Numbers at once; a multiple of eight, so that each part ends with a byte."""

Bytes = npt.NDArray[np.uint8]


def packed_size(count: int, bits: int) -> int:
    """The bytes that so many numbers take.

    >>> packed_size(3, 3), packed_size(0, 3), packed_size(5, 0)
    (2, 0, 0)
    """
    return -(-count * bits // 8)


def pack(numbers: npt.NDArray[Any], bits: int) -> Bytes:
    """Numbers from 0 to 2^bits - 1, packed.

    >>> pack(np.array([1, 2, 3]), 3).tolist()
    [209, 0]
    """
    parts = []
    for start in range(0, len(numbers), _TOGETHER):
        some = np.ascontiguousarray(numbers[start : start + _TOGETHER], dtype="<u4")
        each = np.unpackbits(some.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        parts.append(np.packbits(each[:, :bits], bitorder="little"))
    return np.concatenate([np.zeros(0, np.uint8), *parts])


def unpack(packed: Bytes, bits: int, count: int) -> npt.NDArray[np.uint32]:
    """The numbers that were packed; of up to eight bits they are uint8, else uint32.

    Args:
        packed: `packed_size(count, bits)` bytes.
        bits: of a number, 0 to 32.
        count: of numbers.

    >>> unpack(np.array([209, 0], dtype=np.uint8), 3, 3).tolist()
    [1, 2, 3]
    """
    wide = 8 if bits <= 8 else MOST_BITS
    found = np.zeros(count, dtype=f"<u{wide // 8}")
    for start in range(0, count if bits else 0, _TOGETHER):
        some = min(_TOGETHER, count - start)
        first = packed_size(start, bits)
        part = packed[first : first + packed_size(some, bits)]
        each = np.zeros((some, wide), dtype=np.uint8)
        each[:, :bits] = np.unpackbits(part, count=some * bits, bitorder="little").reshape(-1, bits)
        found[start : start + some] = np.packbits(each, bitorder="little").view(found.dtype)
    return found
