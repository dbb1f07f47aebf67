"""What a bundle's artefacts say of themselves, read without any package that runs a model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stillroom.documents import json_object
from stillroom.release.files import ARTEFACT, sha256

_LARGEST_HEADER = 1 << 24
_SIZES = {
    **{"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2},
    **{"I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1},
}
"""Bytes of one number, by the name of its type."""


KINDS = {
    "classifier": (".safetensors", ".onnx"),
    "generator": (".safetensors",),
    "parameters": (".safetensors",),
}
"""What can be released, and how the names of its files end."""


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
    names = sorted(Path(file).stem for file in files if file.endswith(".safetensors"))
    found = [_artefact(name, contents) for name in names]
    if not found or {file for artefact in found for file in artefact["files"]} != files:
        raise ValueError("a file belongs to no artefact")
    return found


def main_file(artefact: Mapping[str, Any]) -> str:
    """The file that is used: the ONNX file where there is one."""
    return f"{artefact['name']}{KINDS[artefact['kind']][-1]}"


def _artefact(name: str, contents: Mapping[str, bytes]) -> dict[str, Any]:
    said, numbers = _header(contents[f"{name}.safetensors"])
    about, parameters = said["about"], said["parameters"]
    if not isinstance(about, str) or type(parameters) is not int:
        raise ValueError("a safetensors file does not say what it is")
    if not 0 < parameters <= numbers:
        raise ValueError("a safetensors file does not have the parameters it says")
    files = [f"{name}{end}" for end in KINDS[said["kind"]]]
    return {
        "name": name,
        "kind": said["kind"],
        "about": about,
        "parameters": parameters,
        "files": {
            file: {"sha256": sha256(contents[file]), "size": len(contents[file])} for file in files
        },
        **(_classifier(said) if said["kind"] == "classifier" else {}),
    }


def _classifier(said: Mapping[str, Any]) -> dict[str, Any]:
    shape, classes = shape_and_classes(said)
    columns = columns_of(said)
    return {
        "shape": list(shape),
        "classes": list(classes),
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
        raise ValueError("a safetensors file is damaged")
    header = json_object(content[8 : 8 + size])
    said = json_object(header.pop("__metadata__")["stillroom"].encode())
    left = len(content) - 8 - size
    return said, sum(_numbers(tensor, left) for tensor in header.values())


def _numbers(tensor: Mapping[str, Any], left: int) -> int:
    """How many numbers a tensor has, which must be as many as it has bytes for."""
    start, end = tensor["data_offsets"]
    sizes = tensor["shape"]
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= left:
        raise ValueError("a tensor lies outside its file")
    if len(sizes) > 8 or not all(type(size) is int and 0 <= size < 2**31 for size in sizes):
        raise ValueError("a tensor has no shape")
    count: int = math.prod(sizes)
    if count * _SIZES[tensor["dtype"]] != end - start:
        raise ValueError("a tensor has another size than it says")
    return count
