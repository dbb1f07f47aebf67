"""What a bundle's model files say of themselves, read without any package that runs a model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stillroom.release.files import BOUND, MODEL, ONNX, sha256

_LARGEST_HEADER = 100_000_000


def metadata(about: str, shape: tuple[int, ...], classes: tuple[str, ...], parameters: int) -> str:
    """What model.safetensors says of the model beside its weights."""
    said = {"about": about, "shape": shape, "classes": classes, "parameters": parameters}
    return json.dumps(said)


def model_section(contents: Mapping[str, bytes]) -> dict[str, Any]:
    """The certificate's `model`: what it is, how large, and the hashes of the files it binds.

    Raises:
        ValueError: model.safetensors does not say what it is, or not consistently.
    """
    said, numbers = _header(contents[MODEL])
    shape, classes, parameters = said["shape"], said["classes"], said["parameters"]
    proper = isinstance(said["about"], str) and isinstance(classes, list) and len(classes) >= 2
    proper = proper and all(isinstance(name, str) for name in classes)
    proper = proper and all(type(size) is int and size > 0 for size in shape)
    if not proper or type(parameters) is not int or not 0 < parameters <= numbers:
        raise ValueError("model.safetensors does not say what it is")
    return {
        "about": said["about"],
        "shape": shape,
        "classes": classes,
        "parameters": parameters,
        "size": len(contents[ONNX]),
        "files": {name: sha256(contents[name]) for name in BOUND},
    }


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    """The description in a safetensors file, and how many numbers its tensors have."""
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= min(_LARGEST_HEADER, len(content) - 8):
        raise ValueError("model.safetensors is damaged")
    header = json.loads(content[8 : 8 + size].decode("utf-8"))
    said = json.loads(header.pop("__metadata__")["stillroom"])
    return said, sum(math.prod(tensor["shape"]) for tensor in header.values())
