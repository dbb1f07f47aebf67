"""Makers of data files for the hostile cases: sound ones, damaged ones and bombs."""

from __future__ import annotations

import gzip
import io
import os
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import savemat

Maker = Callable[[Path], None]
Content = bytes | str | Callable[[], bytes]
"""What is long is made when it is needed."""
MIB = 1 << 20


def holding(content: Content) -> Maker:
    def make(path: Path) -> None:
        found = content() if callable(content) else content
        path.write_bytes(found.encode() if isinstance(found, str) else found)

    return make


def repeated(block: Callable[[], bytes], times: int, start: bytes = b"") -> Callable[[], bytes]:
    """A gzip file that unpacks to `start` and so many blocks, built without unpacking it."""
    return lambda: gzip.compress(start) + gzip.compress(block()) * times


def npy(header: str, body: bytes = b"", version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + body


def described(shape: str, kind: str = "'|u1'", order: str = "False") -> str:
    return f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def npz(**arrays: Content) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content() if callable(content) else content)
    return stream.getvalue()


def idx(shape: tuple[int, ...], body: bytes = b"", code: int = 8) -> bytes:
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + body


def sparse(length: int, start: bytes = b"") -> Maker:
    def make(path: Path) -> None:
        path.write_bytes(start)
        os.truncate(path, length)

    return make


def zeros() -> bytes:
    return bytes(64 * MIB)


def png(width: int, height: int, kind: int = 0, body: bytes = b"") -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        whole = name + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    about = struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0)
    parts = (("IHDR", about), ("IDAT", zlib.compress(body)), ("IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(n.encode(), c) for n, c in parts)


def encoded(form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stream, form, **options)
    return stream.getvalue()


def listening(path: Path) -> None:
    # The name of a socket may have some hundred characters only.
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as ear:
        ear.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def mat(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    savemat(stream, arrays, do_compression=False)
    return stream.getvalue()


def element(kind: int, content: bytes) -> bytes:
    return struct.pack("<2I", kind, len(content)) + content


def packed_zeros() -> bytes:
    packer = zlib.compressobj(1)
    return packer.compress(zeros()) + packer.compress(zeros()) + packer.compress(zeros())
