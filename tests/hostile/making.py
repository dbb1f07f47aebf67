"""An honest bundle and an honest export, made once, to be spoilt by the cases."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from methods.forging import forge, rehash
from stillroom.gate import Budget, Ledger
from stillroom.gate.ledger import export
from stillroom.gate.ledger.chain import canonical, row_hash
from stillroom.pipeline.release import release
from stillroom.release.files import sha256

RECIPE = """
[data]
source = "scans.csv"
classes = 3
declared_size = 100
[features]
name = "pixels"
full_scale = 16
[training]
steps = 3
rate = 1
[privacy]
epsilon = 3
"""
FEATURES = 12
COLUMNS = [f"f{i}" for i in range(FEATURES)]
Document = dict[str, Any]


@cache
def honest() -> Path:
    """A folder with a released `bundle`, its ledger and `scans.csv`, its data."""
    folder = Path(tempfile.mkdtemp(prefix="stillroom-hostile-"))
    random = np.random.default_rng(3)
    rows = [[*random.integers(0, 17, FEATURES), i % 3] for i in range(150)]
    write_csv(folder / "scans.csv", COLUMNS, rows)
    (folder / "recipe.toml").write_text(RECIPE)
    before = os.environ.get("STILLROOM_HOME")
    os.environ["STILLROOM_HOME"] = str(folder / "home")
    try:
        release(folder / "recipe.toml", folder / "bundle", budget=Budget(20, 1e-5))
    finally:
        if before is None:
            del os.environ["STILLROOM_HOME"]
        else:
            os.environ["STILLROOM_HOME"] = before
    return folder


def write_csv(path: Path, columns: list[str], rows: list[list[int]]) -> None:
    """A CSV with these feature columns and a label."""
    lines = [[*columns, "label"], *rows]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))


def bundle(folder: Path) -> Path:
    """A copy of the honest bundle."""
    return Path(shutil.copytree(honest() / "bundle", folder / "bundle"))


def certificate() -> Document:
    """The honest certificate."""
    return json.loads((honest() / "bundle" / "certificate.json").read_text())


def forged(change: Callable[[Document], object]) -> Callable[[Path], list[str]]:
    """Verify a bundle whose certificate was changed, all hashes fitted."""

    def build(folder: Path) -> list[str]:
        spoilt, document = bundle(folder), certificate()
        change(document)
        forge(spoilt, document, None)
        return ["verify", str(spoilt)]

    return build


def with_files(**contents: bytes) -> Callable[[Path], list[str]]:
    """Verify a bundle with other files, all hashes fitted; `model_onnx` is model.onnx."""

    def build(folder: Path) -> list[str]:
        return ["verify", str(replaced(folder, **contents))]

    return build


def replaced(folder: Path, **contents: bytes) -> Path:
    """A bundle with other files, all hashes fitted."""
    spoilt, document = bundle(folder), certificate()
    for name, content in contents.items():
        file = ".".join(name.rsplit("_", 1))
        (spoilt / file).write_bytes(content)
        if file in document["artefacts"][0]["files"]:
            entry = {"sha256": sha256(content), "size": len(content)}
            document["artefacts"][0]["files"][file] = entry
        if file == "recipe.toml":
            document["recipe"] = sha256(content)
    if "certificate_json" in contents:
        rehash(spoilt)
    else:
        forge(spoilt, document, None)
    return spoilt


@cache
def _export() -> Document:
    ledger = Ledger.open(honest() / "ledger.sqlite", read_only=True)
    try:
        return export(ledger)
    finally:
        ledger.close()


def honest_export() -> Document:
    """The export of the honest ledger."""
    return copy.deepcopy(_export())


def chained(document: Document) -> Document:
    """The export with every hash of its rows made anew, where there is something to hash."""
    previous = ""
    for row in document["rows"]:
        try:
            text = canonical(row["body"])
            words = row["seq"], row["at"], row["kind"], row["block"]
            previous = row["hash"] = row_hash(previous, *words, text)
        except (KeyError, TypeError, ValueError):
            continue
    return document


def spoilt_export(change: Callable[[Document], object]) -> Callable[[Path], list[str]]:
    """Verify an export that was changed, its chain fitted."""

    def build(folder: Path) -> list[str]:
        document = honest_export()
        change(document)
        text = json.dumps(chained(document) if isinstance(document.get("rows"), list) else document)
        (folder / "export.json").write_text(text)
        return ["ledger", "verify", str(folder / "export.json")]

    return build


def export_file(content: bytes) -> Callable[[Path], list[str]]:
    """Verify a file as an export."""

    def build(folder: Path) -> list[str]:
        (folder / "export.json").write_bytes(content)
        return ["ledger", "verify", str(folder / "export.json")]

    return build


def sparse(file: Path, size: int, start: bytes = b"") -> None:
    """A file of that many bytes that takes no room on the disk."""
    with file.open("wb") as stream:
        stream.write(start)
        stream.truncate(size)
