"""What stands in a safetensors file, read without any package but numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.documents import json_object

_LARGEST_HEADER = 1 << 24
_SIZES = {
    **{"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2},
    **{"I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1},
}
"""Bytes of one number, by the name of its type."""
_ARRAYS = {"F64": "<f8", "F32": "<f4", "I64": "<i8"}
EVERY_ARRAY = {
    **_ARRAYS,
    **{"U64": "<u8", "I32": "<i4", "U32": "<u4", "F16": "<f2", "I16": "<i2", "U16": "<u2"},
    **{"I8": "i1", "U8": "u1", "BOOL": "?"},
}
"""Types that numpy has as well."""


@dataclass(frozen=True)
class Tensor:
    """Where in a safetensors file a tensor stands, and what it is."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def numbers(self) -> int:
        """How many it has."""
        return math.prod(self.shape)


def header(content: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description in a safetensors file, and its tensors.

    Raises:
        LookupError, TypeError, ValueError: it is damaged, or was not written here.
    """
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= min(_LARGEST_HEADER, len(content) - 8):
        raise ValueError("a safetensors file is damaged")
    found = json_object(content[8 : 8 + size])
    said = json_object(found.pop("__metadata__")["stillroom"].encode())
    first = 8 + size
    return said, {name: _tensor(one, first, len(content)) for name, one in found.items()}


def array_of(content: bytes, tensor: Tensor) -> npt.NDArray[Any]:
    """A tensor's numbers; of a type of `EVERY_ARRAY`."""
    found = np.frombuffer(content[tensor.start : tensor.end], EVERY_ARRAY[tensor.dtype])
    return found.reshape(tensor.shape)


def arrays_in(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a safetensors file, by name; of the types that arrays are made of here.

    Raises:
        ValueError: it is damaged, or has other types.
    """
    _, tensors = header(content)
    if not all(tensor.dtype in _ARRAYS for tensor in tensors.values()):
        raise ValueError("a tensor of a type that is not read here")
    return {name: array_of(content, tensor) for name, tensor in tensors.items()}


def _tensor(told: Mapping[str, Any], first: int, last: int) -> Tensor:
    """A tensor, which must have as many numbers as it has bytes for."""
    start, end = told["data_offsets"]
    sizes, dtype = told["shape"], told["dtype"]
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= last - first:
        raise ValueError("a tensor lies outside its file")
    if len(sizes) > 8 or not all(type(size) is int and 0 <= size < 2**31 for size in sizes):
        raise ValueError("a tensor has no shape")
    if math.prod(sizes) * _SIZES[dtype] != end - start:
        raise ValueError("a tensor has another size than it says")
    return Tensor(dtype, tuple(sizes), first + start, first + end)
