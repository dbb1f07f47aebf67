"""The files of a bundle: their names, one spelling for their JSON, and their hashes."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from stillroom.documents import json_object
from stillroom.gate.ledger.chain import canonical

MODEL = "model.safetensors"
ONNX = "model.onnx"
CERTIFICATE = "certificate.json"
RECIPE = "recipe.toml"
CARD = "card.html"
MANIFEST = "manifest.json"
RUN_STATE = "run.json"
"""What the folder of a run holds, and no bundle."""

ALWAYS = (CERTIFICATE, RECIPE, CARD)
LISTED = (MODEL, ONNX, *ALWAYS)
"""What the manifest of a single model lists: everything but itself."""
ARTEFACT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\.(?:safetensors|onnx)")
"""How the files of an artefact are called."""
MOST_FILES = 64

LARGEST = {CERTIFICATE: 1 << 24, RECIPE: 1 << 20, CARD: 1 << 25, MANIFEST: 1 << 20}
"""The most bytes of each file; nothing longer is written or read."""
LARGEST_ARTEFACT = 1 << 28
"""256 MiB for each file of a model."""

INFINITE = "infinite"
"""How JSON says infinity."""


def sha256(content: bytes) -> str:
    """The hash of a file's content."""
    return hashlib.sha256(content).hexdigest()


def digest(document: Mapping[str, Any]) -> str:
    """The hash of a document's meaning, its own `digest` left out.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1, "digest": "old"})
    True
    """
    body = {key: value for key, value in document.items() if key != "digest"}
    return sha256(canonical(body).encode())


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """A document as a file: one spelling for one meaning, readable by people."""
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
    return (text + "\n").encode()


def from_bytes(content: bytes) -> dict[str, Any]:
    """The JSON object in a file that `to_bytes` could have written.

    Raises:
        ValueError: it is none, names a key twice, or holds text that a terminal would act on.

    >>> from_bytes(b'{"epsilon": 2.0}')
    {'epsilon': 2.0}
    """
    document = json_object(content)
    _refuse_unprintable(document)
    return document


def _refuse_unprintable(value: Any) -> None:
    """Line breaks, escapes and characters that turn text around could show what is not there."""
    if isinstance(value, str) and not value.isprintable():
        raise ValueError("text that cannot be printed as it is")
    inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    if isinstance(inner, list):
        for part in inner:
            _refuse_unprintable(part)


def spelled(epsilon: float | None) -> float | str | None:
    """An epsilon for JSON, which has no infinity.

    >>> spelled(float("inf")), spelled(1.5), spelled(None)
    ('infinite', 1.5, None)
    """
    if epsilon is None or math.isfinite(epsilon):
        return epsilon
    return INFINITE


def number(figure: Any) -> float:
    """An epsilon back from JSON.

    Raises:
        ValueError: it is neither a number nor infinity.
    """
    if figure == INFINITE:
        return math.inf
    if isinstance(figure, bool) or not isinstance(figure, (int, float)) or not figure >= 0:
        raise ValueError("not an epsilon")
    return float(figure)


def number_or_none(figure: Any) -> float | None:
    """A figure that may be missing."""
    return None if figure is None else number(figure)
