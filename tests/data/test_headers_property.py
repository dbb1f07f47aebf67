"""Whatever the head of a data file says, the file is read or refused as bad input."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.data.store import load_parts
from stillroom.errors import BadInput

FEW = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MANY = settings(FEW, max_examples=20_000)
SIZES = st.integers(-2, 5) | st.sampled_from([2**31, 2**32 - 1, 2**63, 10**30])
ANY = st.binary(max_size=40)


def saved(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def npz(version: int, length: int | None, header: str, body: bytes, packed: bool) -> bytes:
    """An npz file whose array x has this header."""
    text = header.encode("utf-8", "replace")
    told = len(text) if length is None else length
    width = "<H" if version == 1 else "<I"
    x = b"\x93NUMPY" + bytes([version, 0]) + struct.pack(width, told % 65536) + text + body
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", 8 if packed else 0) as archive:
        archive.writestr("x.npy", x)
        archive.writestr("y.npy", saved([0, 1]))
    return stream.getvalue()


KINDS = st.sampled_from(
    ["'<f8'", "'>i2'", "'|u1'", "'<U3'", "'|O'", "'<U0'", "[('a', '<f8')]", "('<f8', (9,))", "'M8'"]
)
HEADERS = st.one_of(
    st.builds(
        lambda kind, order, shape: (
            f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
        ),
        KINDS,
        st.sampled_from(["True", "False", "None", "1"]),
        st.lists(SIZES, max_size=40).map(lambda sizes: str(tuple(sizes))),
    ),
    st.text(max_size=80),
    st.sampled_from("([{-~").flatmap(
        lambda sign: st.integers(1, 9990).map(lambda count: sign * count)
    ),
)
NPZ = st.builds(
    npz,
    st.sampled_from([1, 1, 1, 2, 3, 255]),
    st.none() | st.none() | st.integers(0, 65535),
    HEADERS,
    st.just(bytes(16)) | ANY,
    st.booleans(),
)


def damaged(whole: bytes, places: list[tuple[float, int]], cut: float) -> bytes:
    content = bytearray(whole)
    for share, byte in places:
        content[int(share * (len(content) - 1))] = byte
    return bytes(content[: int(cut * len(content))])


def damage(whole: bytes) -> st.SearchStrategy[bytes]:
    places = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4)
    return st.builds(damaged, st.just(whole), places, st.just(1.0) | st.floats(0, 1))


def idx(code: int, sizes: list[int], body: bytes) -> bytes:
    words = struct.pack(f">{len(sizes)}I", *(size % 2**32 for size in sizes))
    return bytes([0, 0, code, len(sizes)]) + words + body


IDX = st.builds(idx, st.integers(0, 255), st.lists(SIZES, max_size=9), ANY)


def mat(elements: list[tuple[int, int | None, bytes, bool]]) -> bytes:
    """A MATLAB file of such elements: kind, told size, content, and whether it is packed."""
    whole = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"
    for kind, size, content, packed in elements:
        told = len(content) if size is None else size % 2**32
        inner = struct.pack("<2I", kind, told) + content + bytes(-len(content) % 8)
        outer = zlib.compress(inner)
        whole += struct.pack("<2I", 15, len(outer)) + outer if packed else inner
    return whole


def matrix(flags: int, sizes: list[int], name: bytes, kind: int, values: bytes) -> bytes:
    parts = [
        (6, struct.pack("<2I", flags, 0)),
        (5, struct.pack(f"<{len(sizes)}i", *(size % 2**31 for size in sizes))),
        (1, name),
        (kind, values),
    ]
    return b"".join(
        struct.pack("<2I", k, len(part)) + part + bytes(-len(part) % 8) for k, part in parts
    )


MATRICES = st.builds(
    matrix,
    st.integers(0, 4095),
    st.lists(SIZES, max_size=4) | st.just([32, 32, 3, 0]),
    st.sampled_from([b"X", b"y", b"", b"long_name"]),
    st.integers(0, 20),
    ANY,
)
MAT = st.lists(
    st.tuples(st.integers(0, 20), st.none() | SIZES, MATRICES | ANY, st.booleans()), max_size=4
).map(mat)

CELLS = st.text(max_size=4) | st.floats().map(str) | st.sampled_from(['"', "\0", "\r", "1e999", ""])
CSV = st.lists(st.lists(CELLS, max_size=4), max_size=5).map(
    lambda rows: "\n".join(["a,b,label", *(",".join(row) for row in rows)]).encode("utf-8")
)


def png(width: int, height: int, depth: int, colour: int, body: bytes) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        whole = name + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    about = struct.pack(">2I5B", width % 2**32, height % 2**32, depth, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", about)
        + chunk(b"IDAT", zlib.compress(body))
        + chunk(b"IEND", b"")
    )


PNG = st.builds(png, SIZES, SIZES, st.sampled_from([1, 2, 8, 16, 99]), st.integers(0, 7), ANY)

PLAIN = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }"
KINDS_OF_FILES = {
    "npz headers": NPZ,
    "npz damage": damage(npz(1, None, PLAIN, bytes(4), True)),
    "idx headers": IDX | IDX.map(gzip.compress),
    "mat elements": MAT,
    "csv": CSV | damage(b"a,b,label\n1,2,0\n3,4,1\n"),
    "png headers": PNG,
    "any bytes": st.binary(max_size=200) | st.binary(max_size=50).map(lambda b: b"\x80\x02" + b),
}


def read_or_refused(folder: Path, kind: str, content: bytes) -> None:
    path = folder / "data"
    if kind.startswith("png"):
        for name in ("cat", "dog"):
            (path / name).mkdir(parents=True, exist_ok=True)
            (path / name / "1.png").write_bytes(content)
    else:
        path.write_bytes(content)
    labels = folder / "labels" if kind.startswith("idx") else None
    if labels is not None:
        labels.write_bytes(idx(8, [2], b"\0\1"))
    try:
        found = load_parts(path, 2, labels=labels, root=folder / "home")
    except BadInput as error:
        assert error.remedy  # noqa: PT017
    else:
        assert found


@pytest.mark.parametrize("kind", KINDS_OF_FILES)
@FEW
@given(data=st.data())
def test_a_file_is_read_or_refused(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    read_or_refused(tmp_path, kind, data.draw(KINDS_OF_FILES[kind]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_FILES)
@MANY
@given(data=st.data())
def test_many_files_are_read_or_refused(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    read_or_refused(tmp_path, kind, data.draw(KINDS_OF_FILES[kind]))
