"""What a bundle's model files say of themselves, read without any package that runs a model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stillroom.documents import json_object
from stillroom.release.files import BOUND, MODEL, ONNX, sha256

_LARGEST_HEADER = 1 << 24
_SIZES = {
    **{"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2},
    **{"I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1},
}
"""Bytes of one number, by the name of its type."""


def metadata(
    about: str,
    shape: tuple[int, ...],
    classes: tuple[str, ...],
    parameters: int,
    columns: tuple[str, ...] | None = None,
) -> str:
    """What model.safetensors says of the model beside its weights."""
    said = {"about": about, "shape": shape, "classes": classes, "parameters": parameters}
    return json.dumps(said if columns is None else {**said, "columns": columns})


def model_section(contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The certificate's `model`: what it is, how large, and the hashes of the files it binds.

    Raises:
        ValueError: model.safetensors does not say what it is, or not consistently.
    """
    said, numbers = _header(contents[MODEL])
    parameters = said["parameters"]
    if not isinstance(said["about"], str) or type(parameters) is not int:
        raise ValueError("model.safetensors does not say what it is")
    shape, classes = shape_and_classes(said)
    if not 0 < parameters <= numbers:
        raise ValueError("model.safetensors does not have the parameters it says")
    columns = columns_of(said)
    return {
        "about": said["about"],
        "shape": list(shape),
        "classes": list(classes),
        "parameters": parameters,
        "size": len(contents[ONNX]),
        "files": {name: sha256(contents[name]) for name in BOUND},
        **({} if columns is None else {"columns": list(columns)}),
    }


def shape_and_classes(said: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The shape of a record and the names of the classes, where a model is described.

    Raises:
        ValueError: they are missing or malformed.
    """
    shape: Any = said.get("shape")
    classes: Any = said.get("classes")
    sizes = isinstance(shape, list) and 1 <= len(shape) <= 8
    if not sizes or not all(type(size) is int and 0 < size < 2**31 for size in shape):
        raise ValueError("the shape of a record is missing")
    named = isinstance(classes, list) and len(classes) >= 2
    if not named or not all(isinstance(name, str) for name in classes):
        raise ValueError("the names of the classes are missing")
    return tuple(shape), tuple(classes)


def columns_of(said: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of a record's features, where the model was trained on columns that have some.

    Raises:
        ValueError: they are malformed.
    """
    columns = said.get("columns")
    if columns is None:
        return None
    named = isinstance(columns, list) and said.get("shape") == [len(columns)]
    if not named or not all(isinstance(name, str) for name in columns):
        raise ValueError("the names of the columns are not one per feature")
    return tuple(columns)


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    """The description in a safetensors file, and how many numbers its tensors have."""
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= min(_LARGEST_HEADER, len(content) - 8):
        raise ValueError("model.safetensors is damaged")
    header = json_object(content[8 : 8 + size])
    said = json_object(header.pop("__metadata__")["stillroom"].encode())
    left = len(content) - 8 - size
    return said, sum(_numbers(tensor, left) for tensor in header.values())


def _numbers(tensor: Mapping[str, Any], left: int) -> int:
    """How many numbers a tensor has, which must be as many as it has bytes for."""
    start, end = tensor["data_offsets"]
    sizes = tensor["shape"]
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= left:
        raise ValueError("a tensor lies outside model.safetensors")
    if len(sizes) > 8 or not all(type(size) is int and 0 <= size < 2**31 for size in sizes):
        raise ValueError("a tensor has no shape")
    count: int = math.prod(sizes)
    if count * _SIZES[tensor["dtype"]] != end - start:
        raise ValueError("a tensor has another size than it says")
    return count
