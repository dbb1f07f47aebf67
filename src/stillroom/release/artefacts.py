"""What a bundle's artefacts say of themselves, read without any package that runs a model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.documents import json_object
from stillroom.release.files import ARTEFACT, sha256
from stillroom.release.generator import NETWORK, SKETCH, check_sketch, states_of

_LARGEST_HEADER = 1 << 24
_SIZES = {
    **{"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2},
    **{"I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1},
}
"""Bytes of one number, by the name of its type."""
_ARRAYS = {"F64": "<f8", "F32": "<f4", "I64": "<i8"}


KINDS = ("classifier", "generator", "parameters")
"""What can be released."""
WEIGHTS, GRAPH = ".safetensors", ".onnx"
"""How the names of its files end."""


def metadata(**said: Any) -> str:
    """What a safetensors file says of the artefact beside its weights."""
    return json.dumps({name: value for name, value in said.items() if value is not None})


def artefacts_in(contents: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The certificate's `artefacts`: what each is, how large, and the hashes of its files.

    Raises:
        ValueError: a safetensors file does not say what it is, or not consistently; or a file
            belongs to no artefact.
    """
    files = {name for name in contents if ARTEFACT.fullmatch(name)}
    names = sorted(Path(file).stem for file in files if file.endswith(WEIGHTS))
    found = [_artefact(name, contents) for name in names]
    found.sort(key=lambda artefact: (artefact["kind"], artefact["name"]))
    if not found or {file for artefact in found for file in artefact["files"]} != files:
        raise ValueError("a file belongs to no artefact")
    return found


def main_file(artefact: Mapping[str, Any]) -> str:
    """The file that is used: the ONNX file where there is one."""
    return f"{artefact['name']}{_ends(artefact)[-1]}"


def _ends(said: Mapping[str, Any]) -> tuple[str, ...]:
    """How the names of an artefact's files end."""
    if said["kind"] not in KINDS:
        raise ValueError("an artefact of unknown kind")
    runs = said["kind"] == "classifier" or said.get("make") == NETWORK
    return (WEIGHTS, GRAPH) if runs else (WEIGHTS,)


def _artefact(name: str, contents: Mapping[str, bytes]) -> dict[str, Any]:
    content = contents[f"{name}{WEIGHTS}"]
    said, tensors = _header(content)
    about, parameters = said["about"], said["parameters"]
    if not isinstance(about, str) or type(parameters) is not int:
        raise ValueError("a safetensors file does not say what it is")
    if not 0 < parameters <= sum(math.prod(tensor.shape) for tensor in tensors.values()):
        raise ValueError("a safetensors file does not have the parameters it says")
    files = [f"{name}{end}" for end in _ends(said)]
    return {
        "name": name,
        "kind": said["kind"],
        "about": about,
        "parameters": parameters,
        "files": {
            file: {"sha256": sha256(contents[file]), "size": len(contents[file])} for file in files
        },
        **(_classifier(said) if said["kind"] == "classifier" else {}),
        **(_generator(said, content) if said["kind"] == "generator" else {}),
    }


def _classifier(said: Mapping[str, Any]) -> dict[str, Any]:
    shape, classes = shape_and_classes(said)
    columns = columns_of(said)
    return {
        "shape": list(shape),
        "classes": list(classes),
        **({} if columns is None else {"columns": list(columns)}),
    }


def _generator(said: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    shape, classes = shape_and_classes(said)
    states = states_of(said)
    if states["make"] == SKETCH:
        check_sketch(states, arrays_in(content), shape, classes)
    return {"shape": list(shape), "classes": list(classes), **states}


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


def arrays_in(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a safetensors file, by name; of the types that arrays are made of here.

    Raises:
        ValueError: it is damaged, or has other types.
    """
    _, tensors = _header(content)
    if not all(tensor.dtype in _ARRAYS for tensor in tensors.values()):
        raise ValueError("a tensor of a type that is not read here")
    return {
        name: np.frombuffer(content[tensor.start : tensor.end], _ARRAYS[tensor.dtype]).reshape(
            tensor.shape
        )
        for name, tensor in tensors.items()
    }


@dataclass(frozen=True)
class _Tensor:
    """Where in a safetensors file a tensor stands, and what it is."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def _header(content: bytes) -> tuple[dict[str, Any], dict[str, _Tensor]]:
    """The description in a safetensors file, and its tensors."""
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= min(_LARGEST_HEADER, len(content) - 8):
        raise ValueError("a safetensors file is damaged")
    header = json_object(content[8 : 8 + size])
    said = json_object(header.pop("__metadata__")["stillroom"].encode())
    first = 8 + size
    return said, {name: _tensor(one, first, len(content)) for name, one in header.items()}


def _tensor(told: Mapping[str, Any], first: int, last: int) -> _Tensor:
    """A tensor, which must have as many numbers as it has bytes for."""
    start, end = told["data_offsets"]
    sizes, dtype = told["shape"], told["dtype"]
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= last - first:
        raise ValueError("a tensor lies outside its file")
    if len(sizes) > 8 or not all(type(size) is int and 0 <= size < 2**31 for size in sizes):
        raise ValueError("a tensor has no shape")
    if math.prod(sizes) * _SIZES[dtype] != end - start:
        raise ValueError("a tensor has another size than it says")
    return _Tensor(dtype, tuple(sizes), first + start, first + end)
