"""Folders that look like a bundle: special files, long files, wrong manifests, weak keys."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hostile.harness import Case
from hostile.making import bundle, honest, replaced, sparse
from methods.forging import rehash
from stillroom.release.files import digest, to_bytes
from stillroom.release.keys import make_keys

GIGABYTES = 10 << 30
IDENTITY = bytes([1] + 31 * [0])
WEAK = {
    "the identity": IDENTITY,
    "order two": bytes([0xEC] + 30 * [0xFF] + [0x7F]),
    "order four": bytes(32),
    "order four, another sign": bytes(31 * [0] + [0x80]),
    "order eight": bytes.fromhex(
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
    ),
    "the identity, spelled otherwise": bytes([0xEE] + 30 * [0xFF] + [0x7F]),
}


def _spoilt(spoil: Callable[[Path], object]) -> Callable[[Path], list[str]]:
    def build(folder: Path) -> list[str]:
        spoilt = bundle(folder)
        spoil(spoilt)
        return ["verify", str(spoilt)]

    return build


def _instead(name: str, make: Callable[[Path], object], folder: Path) -> None:
    (folder / name).unlink()
    make(folder / name)


def _listed_long(folder: Path) -> None:
    sparse(folder / "model.onnx", GIGABYTES)
    _manifest(folder, lambda m: m["files"]["model.onnx"].update(size=GIGABYTES))


def _manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((folder / "manifest.json").read_text())
    change(document)
    document["digest"] = digest(document)
    (folder / "manifest.json").write_bytes(to_bytes(document))


def _manifested(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], list[str]]:
    return _spoilt(partial(_manifest, change=change))


def _signed_by(public: bytes) -> Callable[[Path], list[str]]:
    """R is the identity and s is zero: with a key of low order, s B = R + h A often holds."""
    signature = {"algorithm": "Ed25519", "public_key": public.hex(), "value": ""}
    signature["value"] = (IDENTITY + bytes(32)).hex()
    return _manifested(lambda m: m.update(signature=signature))


def _with_key(make: Callable[[Path], object]) -> Callable[[Path], list[str]]:
    def build(folder: Path) -> list[str]:
        make(folder / "key.pub")
        return ["verify", str(bundle(folder)), "--key", str(folder / "key.pub")]

    return build


def _pem(public: bytes) -> bytes:
    import base64

    body = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + public)
    return b"-----BEGIN PUBLIC KEY-----\n" + body + b"\n-----END PUBLIC KEY-----\n"


def _rsa(path: Path) -> None:
    key = rsa.generate_private_key(65537, 1024).public_key()
    path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def _private_half(path: Path) -> None:
    make_keys(path.with_name("own"))
    path.write_bytes(path.with_name("own").read_bytes())


def _safetensors(header: bytes, size: int | None = None) -> Callable[[Path], list[str]]:
    content = struct.pack("<Q", len(header) if size is None else size) + header

    def build(folder: Path) -> list[str]:
        return ["verify", str(replaced(folder, model_safetensors=content))]

    return build


def _described(**changes: Any) -> Callable[[Path], list[str]]:
    def build(folder: Path) -> list[str]:
        content = (honest() / "bundle" / "model.safetensors").read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        tensor = next(name for name in header if name != "__metadata__")
        header[tensor].update(changes)
        text = json.dumps(header).encode()
        whole = struct.pack("<Q", len(text)) + text + content[8 + size :]
        return ["verify", str(replaced(folder, model_safetensors=whole))]

    return build


SPECIAL = [
    *(
        Case(f"{name} is {kind}", _spoilt(partial(_instead, name, make)), 4, name)
        for name in ("manifest.json", "certificate.json", "model.onnx")
        for kind, make in (
            ("a pipe", os.mkfifo),
            ("a folder", Path.mkdir),
            ("a link", lambda path: path.symlink_to("/dev/zero")),
            ("gone", lambda path: None),
        )
    ),
    *(
        Case(f"{name} of 10 GB", _spoilt(lambda f, n=name: sparse(f / n, GIGABYTES)), 4, name)
        for name in ("manifest.json", "certificate.json", "model.onnx", "model.safetensors")
    ),
    Case("10 GB as the manifest says", _spoilt(_listed_long), 4, "model.onnx"),
    Case("a file too many", _spoilt(lambda f: (f / "run.sh").write_text("")), 4, "run.sh"),
    Case("an empty folder", lambda f: ["verify", str(f)], 4, "manifest.json"),
    Case("no folder", lambda f: ["verify", str(f / "none")], 2),
    Case("a pipe as a bundle", lambda f: os.mkfifo(f / "p") or ["verify", str(f / "p")], 2),
    Case("a file as a bundle", lambda f: (f / "p").touch() or ["verify", str(f / "p")], 2),
]

MANIFESTS = [
    *(
        Case(
            f"a manifest of {kind}", _spoilt(lambda f, c=c: (f / "manifest.json").write_bytes(c)), 4
        )
        for kind, c in (
            ("nothing", b""),
            ("garbage", b"\x80\x02}q\x00."),
            ("a list", b"[]"),
            ("100000 levels", b'{"a":' * 100_000),
            ("900 levels", b'{"a":' * 900 + b"1" + b"}" * 900),
            ("a key twice", b'{"format": 1, "format": 2}'),
        )
    ),
    *(
        Case(f"{name} is {value!r}", _manifested(lambda m, n=name, v=value: m.update({n: v})), 4)
        for name, value in (
            *(("files", None), ("files", []), ("files", "model.onnx"), ("signature", "yes")),
            *(("signature", 7), ("signature", []), ("signature", {}), ("version", True)),
            *(("version", 10**119), ("format", None), ("format", ["stillroom manifest"])),
        )
    ),
    *(
        Case(
            f"the entry of a file is {value!r}",
            _manifested(lambda m, v=value: m["files"].update({"model.onnx": v})),
            4,
        )
        for value in (None, [], 7, {}, {"size": None, "sha256": None}, {"size": 1.0, "sha256": ""})
    ),
    Case(
        "a signature of numbers",
        _manifested(
            lambda m: m.update(signature={"algorithm": "Ed25519", "public_key": 1, "value": 2})
        ),
        4,
        "signature",
    ),
]

KEYS = [
    *(
        Case(f"signed by a key of {kind}", _signed_by(public), 4, "anyone")
        for kind, public in WEAK.items()
    ),
    *(
        Case(f"trust in a key of {kind}", _with_key(lambda p, k=k: p.write_bytes(_pem(k))), 2)
        for kind, k in list(WEAK.items())[:3]
    ),
    Case("a pipe as a key", _with_key(os.mkfifo), 2, "key"),
    Case("a key without end", _with_key(lambda p: p.symlink_to("/dev/zero")), 2, "key"),
    Case("a folder as a key", _with_key(Path.mkdir), 2, "key"),
    Case("no key", _with_key(lambda p: None), 2, "key"),
    Case("a key of 10 GB", _with_key(lambda p: sparse(p, GIGABYTES)), 2, "key"),
    Case("garbage as a key", _with_key(lambda p: p.write_bytes(os.urandom(99))), 2, "key"),
    Case("a key of another kind", _with_key(_rsa), 2, "key"),
    Case("the private half as a key", _with_key(_private_half), 2, "key"),
]

MODELS = [
    Case("no header", _safetensors(b""), 4),
    Case("a header longer than the file", _safetensors(b"{}", 2**63), 4),
    Case("a header of 17 MB", _safetensors(b" " * (17 << 20)), 4),
    Case("a header of 100000 levels", _safetensors(b'{"a":' * 100_000), 4),
    Case("a header without a description", _safetensors(b"{}"), 4),
    Case("a description of nothing", _safetensors(b'{"__metadata__": {"stillroom": "null"}}'), 4),
    Case("a description that is a number", _safetensors(b'{"__metadata__": {"stillroom": 7}}'), 4),
    Case("a tensor of terabytes", _described(shape=[10**6, 10**6]), 4),
    Case("a tensor of long sizes", _described(shape=[10**119] * 1000), 4),
    Case("a tensor of negative size", _described(shape=[-1, -1]), 4),
    Case("a tensor outside the file", _described(data_offsets=[0, 2**60]), 4),
    Case("a tensor without offsets", _described(data_offsets=None), 4),
    Case("a tensor of an unknown kind", _described(dtype="OBJECT"), 4),
]

RECIPES = [
    Case(f"a recipe of {kind}", lambda f, c=c: ["verify", str(replaced(f, recipe_toml=c))], 4)
    for kind, c in (
        ("nothing", b""),
        ("other bytes", b"\xff\xfe"),
        ("5000 levels", b"a = " + b"[" * 5000 + b"]" * 5000),
        ("2 MB", b"#" * (2 << 20)),
        ("a key twice", b"[data]\n[data]\n"),
    )
]


def _cut(folder: Path) -> list[str]:
    spoilt = bundle(folder)
    card = (spoilt / "card.html").read_text()
    (spoilt / "card.html").write_text(card[: len(card) // 2])
    rehash(spoilt)
    return ["verify", str(spoilt)]


CASES = [*SPECIAL, *MANIFESTS, *KEYS, *MODELS, *RECIPES, Case("half a card", _cut, 4, "card.html")]
