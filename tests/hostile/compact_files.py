"""Compact files that claim more than they hold, or hold other weights; their bundles list them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from hostile.harness import Case
from hostile.making import bundle, certificate, honest
from methods.forging import forge
from stillroom.public.codebooks import MOST_WEIGHTS, Coded, coded
from stillroom.release.compact import ABOUT, described, packed_tensors
from stillroom.release.files import sha256

FILE = "compact.safetensors"
SIDE = 1 << 12
assert SIDE * SIDE == MOST_WEIGHTS
Content = bytes | Callable[[], bytes]


@cache
def _code() -> Coded:
    """The honest model's weights, half of them pruned; its own file keeps them all."""
    (weights,) = load((honest() / "bundle" / "model.safetensors").read_bytes()).values()
    return coded(weights, np.abs(weights) > np.median(np.abs(weights)), 2, 3)


def _compact(
    told: dict[str, Any] | None = None,
    arrays: dict[str, Any] | None = None,
    kept: int | None = None,
    **said: Any,
) -> Callable[[], bytes]:
    """The compact file of the honest model, some of it another."""

    def build() -> bytes:
        code = _code()
        count = len(code.codes) if kept is None else kept
        found = {**packed_tensors({}, {"weights": code}), **(arrays or {})}
        one = {**described({"weights": code})["weights"], **(told or {})}
        words = {"kind": "parameters", "about": ABOUT, "parameters": count, "make": "compact"}
        text = json.dumps({**words, "of": "model", "tensors": {"weights": one}, **said})
        return bytes(save(found, metadata={"stillroom": text}))

    return build


def verified(content: Content, model: Content | None = None) -> Callable[[Path], list[str]]:
    """Verify a bundle with this compact file, and model, all hashes and the certificate fitted."""

    def build(folder: Path) -> list[str]:
        spoilt, document = bundle(folder), certificate()
        whole = content if isinstance(content, bytes) else content()
        (spoilt / FILE).write_bytes(whole)
        line = {"name": "compact", "kind": "parameters", "about": ABOUT, "parameters": 1}
        try:
            size = int.from_bytes(whole[:8], "little")
            told = json.loads(json.loads(whole[8 : 8 + size])["__metadata__"]["stillroom"])
            line |= {name: told[name] for name in ("about", "parameters", "make", "of")}
        except (ValueError, LookupError, TypeError):
            pass
        files = {FILE: {"sha256": sha256(whole), "size": len(whole)}}
        document["artefacts"].append({**line, "files": files})
        if model is not None:
            weights = model if isinstance(model, bytes) else model()
            (spoilt / "model.safetensors").write_bytes(weights)
            own = document["artefacts"][0]
            own["files"]["model.safetensors"] = {"sha256": sha256(weights), "size": len(weights)}
            own["parameters"] = MOST_WEIGHTS
        forge(spoilt, document, None)
        return ["verify", str(spoilt)]

    return build


def _large_model() -> bytes:
    """A model of one tensor, the largest that is coded, all of it zero."""
    content = (honest() / "bundle" / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    said = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["stillroom"])
    text = json.dumps({**said, "parameters": MOST_WEIGHTS})
    zeros = np.zeros((SIDE, SIDE), dtype=np.float32)
    return bytes(save({"weights": zeros}, metadata={"stillroom": text}))


def _large(kept: int, arrays: Callable[[], dict[str, Any]], **bits: int) -> Callable[[], bytes]:
    """A compact file of it."""

    def build() -> bytes:
        words = {"kind": "parameters", "about": ABOUT, "make": "compact", "of": "model"}
        told = {"weights": {"shape": [SIDE, SIDE], "kept": kept, **bits}}
        text = json.dumps({**words, "parameters": kept, "tensors": told})
        named = {f"weights/{part}": array for part, array in arrays().items()}
        return bytes(save(named, metadata={"stillroom": text}))

    return build


def _full() -> dict[str, Any]:
    each = np.zeros(MOST_WEIGHTS, dtype=np.uint8)
    book, step = np.zeros(256, np.float32), np.ones(1, np.float32)
    return {"codebook": book, "codes": each, "residuals": each + np.uint8(128), "step": step}


def _one(gap: int) -> dict[str, Any]:
    fillers = np.array([0] * 256 + [gap], dtype="<u2").view(np.uint8)
    return {"codebook": np.zeros(1, np.float32), "kept": fillers}


NAN = np.full(4, np.nan, np.float32)
EMPTY = {str(name): {"shape": [SIDE, SIDE], "kept": 0} for name in range(9)}
HOLD = "does not hold the weights"
CASES = [
    Case("garbage", verified(b"\x00\xff" * 99), 4),
    Case("nothing", verified(b""), 4),
    Case("no description", verified(_compact(tensors=None)), 4),
    Case("a list of descriptions", verified(_compact(tensors=[[]])), 4),
    Case("nested descriptions", verified(_compact({"shape": [[[[[[]]]]]]})), 4),
    Case("a shape of terabytes", verified(_compact({"shape": [10**6, 10**6]})), 4),
    Case("a shape beyond all numbers", verified(_compact({"shape": [10**119] * 8})), 4),
    Case("a shape of 100000 axes", verified(_compact({"shape": [1] * 100_000})), 4),
    Case("gaps without end", verified(_compact({"gap_bits": 16, "gaps": 10**15})), 4),
    Case("more kept than there are", verified(_compact({"kept": 10**15})), 4),
    Case("large tensors of no bytes", verified(_compact(tensors=EMPTY)), 4),
    Case("of another model", verified(_compact(of="other")), 4),
    Case("of itself", verified(_compact(of="compact")), 4),
    Case("of a path", verified(_compact(of="../../secret")), 4),
    Case("another number of parameters", verified(_compact(kept=7)), 4),
    Case("other weights", verified(_compact()), 4, HOLD),
    Case("another shape", verified(_compact({"shape": [13, 3]})), 4, HOLD),
    Case("centroids of no numbers", verified(_compact(arrays={"weights/codebook": NAN})), 4, HOLD),
    Case(
        "as large as a tensor may be",
        verified(_large(MOST_WEIGHTS, _full, residual_bits=8), _large_model),
        4,
        "recipe.toml comes to: artefacts",
    ),
    Case(
        "one weight, far away",
        verified(_large(1, lambda: _one(256), gap_bits=16, gaps=257), _large_model),
        4,
        "recipe.toml comes to: artefacts",
    ),
    Case(
        "one weight, too far away",
        verified(_large(1, lambda: _one(257), gap_bits=16, gaps=257), _large_model),
        4,
        "outside its tensor",
    ),
]
