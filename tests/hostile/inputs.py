"""Records for `predict` that are none."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hostile.harness import Case
from hostile.making import COLUMNS, FEATURES, bundle, certificate, sparse, write_csv
from methods.forging import forge

ROWS = [[*range(FEATURES), 1], [*range(FEATURES), 2]]


def header(text: str, version: int = 1, size: int | None = None, body: bytes = b"") -> bytes:
    """The bytes of a .npy file with this header."""
    found = text.encode("latin1")
    length = len(found) if size is None else size
    packed = struct.pack("<H" if version == 1 else "<I", length)
    return b"\x93NUMPY" + bytes([version, 0]) + packed + found + body


def _shaped(shape: str, kind: str = "<f4", body: bytes = b"") -> bytes:
    return header(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n", body=body)


def _given(make: Callable[[Path], object], name: str = "x.npy") -> Callable[[Path], list[str]]:
    def build(folder: Path) -> list[str]:
        make(folder / name)
        return ["predict", str(bundle(folder)), str(folder / name)]

    return build


def _bytes(content: bytes) -> Callable[[Path], list[str]]:
    return _given(lambda path: path.write_bytes(content))


def _array(array: object, **options: bool) -> Callable[[Path], list[str]]:
    return _given(lambda path: np.save(path, np.asarray(array), **options))


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        stream = io.BytesIO()
        np.save(stream, np.ones((2, FEATURES)))
        archive.writestr("x.npy", stream.getvalue())


def _csv(columns: list[str]) -> Callable[[Path], list[str]]:
    return _given(lambda path: write_csv(path, columns, ROWS), "x.csv")


def _circle(path: Path) -> None:
    path.mkdir()
    for name in ("a", "b", "c"):
        (path / name).symlink_to(".")
    (path / "x.png").symlink_to("y.png")
    (path / "y.png").symlink_to("x.png")
    (path / "z.png").touch()


def _broken(path: Path) -> None:
    path.mkdir()
    for number in range(1000):
        (path / f"{number}.png").touch()


def _csv_of_nothing(folder: Path) -> list[str]:
    return _given(lambda path: write_csv(path, COLUMNS, []), "x.csv")(folder)


def _with_model(**changes: object) -> Callable[[Path], list[str]]:
    """Predict by a bundle whose certificate describes its model otherwise."""

    def build(folder: Path) -> list[str]:
        spoilt, document = bundle(folder), certificate()
        for name, value in changes.items():
            document["artefacts"][0][name] = value
        if "whole" in changes:
            document["artefacts"] = changes["whole"]
        forge(spoilt, document, None)
        np.save(folder / "x.npy", np.ones((2, FEATURES)))
        return ["predict", str(spoilt), str(folder / "x.npy")]

    return build


NUMPY = [
    Case("an empty file", _bytes(b""), 2, "numpy.save"),
    Case("only the magic", _bytes(b"\x93NUMPY"), 2),
    Case("an unknown version", _bytes(b"\x93NUMPY\x09\x00\x01\x00a"), 2),
    Case("garbage", _bytes(bytes(range(256))), 2),
    Case("a pickle", _bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR."), 2),
    Case("a zip", _given(_zip), 2),
    Case("a header that breaks off", _bytes(header("{'descr': ", size=500)), 2),
    Case("a header of 4 GB", _bytes(header("{}", version=2, size=2**32 - 1)), 2),
    Case("a header of 1 MB", _bytes(header(" " * (1 << 20), version=2)), 2),
    Case("brackets 9000 deep", _bytes(header("(" * 9000)), 2),
    Case("brackets 90 deep", _bytes(header("(" * 90 + ")" * 90)), 2),
    Case("minus signs 9000 deep", _bytes(header("-" * 9000 + "1")), 2),
    Case("sums 4000 long", _bytes(header("1" + "+1" * 4000)), 2),
    Case("a call", _bytes(header("__import__('os').system('true')")), 2),
    Case("a header of null bytes", _bytes(header("\0" * 100)), 2),
    Case("shape of terabytes", _bytes(_shaped(f"(1000000000000, {FEATURES})")), 2),
    Case("shape of 2^62 twice", _bytes(_shaped(f"({2**62}, {2**62})")), 2),
    Case("shape of 2^70", _bytes(_shaped(f"({2**70}, {FEATURES})")), 2),
    Case("shape of 4000 digits", _bytes(_shaped(f"({'9' * 4000}, {FEATURES})")), 2),
    Case("shape below zero", _bytes(_shaped(f"(-2, {FEATURES})", body=bytes(96))), 2),
    Case("shape of truth values", _bytes(_shaped("(True, True)", body=bytes(4))), 2),
    Case("shape of 200 axes", _bytes(_shaped("(" + "1, " * 200 + ")", body=bytes(4))), 2),
    Case("shape of text", _bytes(_shaped("'2, 12'")), 2),
    Case("nothing of everything", _bytes(_shaped(f"(0, {2**62})")), 2),
    Case("fewer numbers than it says", _bytes(_shaped(f"(9, {FEATURES})", body=bytes(40))), 2),
    Case(
        "kind of a list",
        _bytes(header("{'descr': [[[]]], 'fortran_order': False, 'shape': ()}")),
        2,
    ),
    Case("kind of objects", _bytes(_shaped(f"(2, {FEATURES})", "|O", bytes(192))), 2),
    Case("kind of nothing", _bytes(_shaped(f"(2, {FEATURES})", "|V0")), 2),
    Case("kind of 2^31 bytes", _bytes(_shaped(f"(2, {FEATURES})", f"|V{2**31 - 1}")), 2),
    Case("objects", _array([[{}]], allow_pickle=True), 2),
    Case("text", _array([["a"] * FEATURES]), 2),
    Case("complex numbers", _array([[1j] * FEATURES]), 2),
    Case("one number", _array(7), 2),
    Case("one row", _array(np.ones(FEATURES)), 2),
    Case("no record", _array(np.ones((0, FEATURES))), 2, "no record"),
    Case("records of nothing", _array(np.ones((5, 0))), 2, "shape"),
    Case("records of another shape", _array(np.ones((5, FEATURES + 1))), 2, "shape"),
    Case("a value that is no number", _array([[np.nan] * FEATURES]), 2, "finite"),
    Case("a value without end", _array([[np.inf] * FEATURES]), 2, "finite"),
    Case("a value beyond float32", _array([[1e300] * FEATURES]), 2, "finite"),
    Case(
        "10 GB of records",
        _given(lambda p: sparse(p, 10 << 30, _shaped(f"(200000000, {FEATURES})"))),
        2,
        "MiB",
    ),
]

OTHERS = [
    Case("no file", lambda f: ["predict", str(bundle(f)), str(f / "none.npy")], 2),
    Case("a pipe", _given(os.mkfifo), 2),
    Case("a folder", _given(Path.mkdir), 2),
    Case("a column twice", _csv([*COLUMNS[:-1], COLUMNS[0]]), 2, "columns"),
    Case("an empty CSV file", _given(lambda p: p.write_bytes(b""), "x.csv"), 2),
    Case("a CSV file of a header", _csv_of_nothing, 2, "no record"),
    Case("a picture that is none", _given(lambda p: p.write_bytes(b"no"), "x.png"), 2, "picture"),
    Case("a folder that holds itself", _given(_circle, "scans"), 2, "left out"),
    Case("a thousand broken pictures", _given(_broken, "scans"), 2, "1,000 of 1,000"),
    Case("other columns", _csv([f"g{i}" for i in range(FEATURES)]), 2, "columns"),
    Case(
        "a column less",
        _given(lambda p: write_csv(p, COLUMNS[1:], [r[1:] for r in ROWS]), "x.csv"),
        2,
    ),
]

MODELS = [
    *(
        Case(f"a model that is {value!r}", _with_model(whole=value), 4, "certificate.json")
        for value in (None, [], "model", 7, {}, [None], ["model"], [7], [{}])
    ),
    *(
        Case(
            f"{name} that is {str(value)[:20]}", _with_model(**{name: value}), 4, "certificate.json"
        )
        for name, value in (
            *(("shape", None), ("shape", FEATURES), ("shape", ["12"]), ("shape", [True])),
            *(("shape", [2**70]), ("shape", [1] * 50), ("shape", {}), ("shape", [])),
            *(("classes", None), ("classes", "abc"), ("classes", [1, 2, 3]), ("classes", [])),
            *(("pictures", 7), ("pictures", {"size": [2**70] * 2, "mode": None, "rules": 1})),
            *(("pictures", {"size": None, "mode": "grey", "rules": 1}), ("pictures", [])),
            *(("pictures", {"size": [[]], "mode": [], "rules": 2**70}),),
            *(("columns", 7), ("columns", ["a"]), ("columns", [None] * FEATURES)),
        )
    ),
    Case("another number of classes", _with_model(classes=["a", "b"]), 4, "logits"),
]

CASES = [*NUMPY, *OTHERS, *MODELS]
