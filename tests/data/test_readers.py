"""Readers take every valid file and turn every broken one into a BadInput that shows no content."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from stillroom.data import Dataset, digits, read_csv, read_idx, read_npz
from stillroom.data.files import IDX_TYPES, file_kind
from stillroom.data.readers import npz_parts
from stillroom.errors import BadInput

ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
SECRET = "4242"
CSV = "age,visit,who,label\n52,v1,anna,ill\n37.5,v2,ben,well\n"


def idx_bytes(values: np.ndarray) -> bytes:
    code = next(c for c, kind in IDX_TYPES.items() if np.dtype(kind) == values.dtype)
    header = bytes([0, 0, code, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return header + values.tobytes()


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels"
    path.write_bytes(idx_bytes(np.array([1, 0, 1], dtype=">u1")))
    return path


def refused(read: Callable[[], object]) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read()
    assert caught.value.remedy
    assert SECRET not in str(caught.value)
    return caught.value


@ONE_FOLDER
@pytest.mark.parametrize("code", IDX_TYPES)
@given(data=st.data(), zipped=st.booleans())
def test_idx_round_trip(
    tmp_path: Path, labels: Path, code: int, data: st.DataObject, zipped: bool
) -> None:
    dtype = np.dtype(IDX_TYPES[code])
    shapes = npst.array_shapes(min_dims=1, max_dims=3, max_side=4).map(lambda s: (3, *s))
    elements = {"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else {}
    x = data.draw(npst.arrays(dtype, shapes, elements=npst.from_dtype(dtype, **elements)))
    images = tmp_path / "images.txt"
    images.write_bytes(gzip.compress(idx_bytes(x)) if zipped else idx_bytes(x))
    read = read_idx(images, labels, 2)
    assert read.x.dtype == dtype.newbyteorder("=")
    assert read.x.dtype.isnative
    assert np.array_equal(read.x, x)
    assert read.y.tolist() == [1, 0, 1]
    assert file_kind(images) == "idx"


IMAGES = idx_bytes(np.arange(12, dtype=">u1").reshape(3, 2, 2))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("cut", range(len(IMAGES)))
def test_truncated_idx(tmp_path: Path, labels: Path, cut: int, zipped: bool) -> None:
    images = tmp_path / "images"
    images.write_bytes(gzip.compress(IMAGES[:cut]) if zipped else IMAGES[:cut])
    assert "images" in refused(lambda: read_idx(images, labels, 2)).where


BROKEN_IDX = {
    "trailing byte": (IMAGES + b"x", "longer"),
    "wrong magic": (b"\1" + IMAGES[1:], "start like an IDX"),
    "unknown type": (IMAGES[:2] + b"\x0a" + IMAGES[3:], "start like an IDX"),
    "no axes": (b"\0\0\x08\0", "start like an IDX"),
    "absurd axes": (b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"x", "start like an IDX"),
    "absurd size": (b"\0\0\x08\4" + b"\xff" * 16, "shorter"),
    "no records": (b"\0\0\x08\3" + struct.pack(">3I", 0, 2**32 - 1, 2**32 - 1), "shorter"),
    "other number of records": (idx_bytes(np.zeros((2, 2), dtype=">u1")), "as many labels"),
    "no features": (idx_bytes(np.zeros(3, dtype=">u1")), "no features"),
    "NaN": (idx_bytes(np.full((3, 1), np.nan, dtype=">f4")), "record 0"),
    "damaged gzip": (gzip.compress(IMAGES)[:-9], "damaged"),
    "garbage after gzip": (gzip.compress(IMAGES) + b"garbage", "damaged"),
}


@pytest.mark.parametrize(("content", "words"), BROKEN_IDX.values(), ids=BROKEN_IDX.keys())
def test_broken_idx(tmp_path: Path, labels: Path, content: bytes, words: str) -> None:
    images = tmp_path / "images"
    images.write_bytes(content)
    assert words in str(refused(lambda: read_idx(images, labels, 2)))


def test_idx_labels_must_be_labels(tmp_path: Path, labels: Path) -> None:
    images = tmp_path / "images"
    images.write_bytes(IMAGES)
    assert "one integer" in str(refused(lambda: read_idx(images, images, 2)))
    labels.write_bytes(idx_bytes(np.array([0, 1, 9], dtype=">u1")))
    assert "record 2" in refused(lambda: read_idx(images, labels, 2)).where


@pytest.mark.parametrize("missing", ["nowhere", "."])
def test_files_that_cannot_be_opened(tmp_path: Path, labels: Path, missing: str) -> None:
    path = tmp_path / missing
    for read in (
        lambda: read_idx(path, labels, 2),
        lambda: read_idx(labels, path, 2),
        lambda: read_npz(path, 2),
        lambda: read_csv(path, 2),
        lambda: file_kind(path),
    ):
        assert "cannot be read" in refused(read).what


def test_classes_are_never_counted_in_the_data(tmp_path: Path) -> None:
    path = tmp_path / "data"
    for read in (
        lambda: read_idx(path, path, None),
        lambda: read_npz(path, None),
        lambda: read_csv(path, None),
    ):
        assert "classes are not known" in refused(read).what


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    with path.open("wb") as stream:
        np.savez(stream, x=np.eye(2), y=[0, 1], ids=["a", "b"], persons=["p", "p"])
    read = read_npz(path, ("no", "yes"))
    assert (read.ids, read.persons, read.classes) == (("a", "b"), ("p", "p"), ("no", "yes"))
    assert npz_parts(path) == (None,)
    assert file_kind(path) == "npz"
    assert "no part" in refused(lambda: read_npz(path, 2, part="train")).remedy


def test_npz_with_official_parts(tmp_path: Path) -> None:
    path = tmp_path / "parts.npz"
    arrays = {"x_train": np.eye(3), "y_train": [0, 1, 2], "x_test": np.ones((1, 3)), "y_test": [2]}
    np.savez(path, ids_train=["a", "b", "c"], **arrays)
    assert npz_parts(path) == ("train", "test")
    assert read_npz(path, 3, part="train").ids == ("a", "b", "c")
    assert read_npz(path, 3, part="test").ids[0].startswith("sha256:")
    assert "part='train' or part='test'" in refused(lambda: read_npz(path, 3)).remedy


def test_npz_never_unpickles(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, x=np.array([[SECRET], [None]], dtype=object), y=[0, 1])
    assert "npz of plain arrays" in refused(lambda: read_npz(path, 2)).what


def test_npz_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, pictures=np.eye(2))
    assert "x and y" in str(refused(lambda: read_npz(path, 2)))
    with path.open("wb") as stream:
        np.save(stream, np.eye(2))
    assert "npz of plain arrays" in refused(lambda: read_npz(path, 2)).what
    np.savez(path, x=np.eye(2), y=[0, 1], ids=7)
    assert "as many ids" in refused(lambda: read_npz(path, 2)).what
    path.write_text(SECRET)
    assert "npz of plain arrays" in refused(lambda: read_npz(path, 2)).what


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "visits"
    path.write_bytes(gzip.compress(("\ufeff" + CSV + "\n").encode()))
    read = read_csv(path, ("well", "ill"), id="visit", person="who")
    assert read.x.tolist() == [[52.0], [37.5]]
    assert read.y.tolist() == [1, 0]
    assert (read.ids, read.persons) == (("v1", "v2"), ("anna", "ben"))
    assert file_kind(path) == "csv"


def test_csv_with_counted_classes(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,digit\n1,2,9\n3,4,0\n")
    assert read_csv(path, 10, label="digit").y.tolist() == [9, 0]


BROKEN_CSV = {
    "feature is text": ("a,label\n1,0\n4242x,1\n", "not a number [{path}, line 3, column 1 ('a')]"),
    "feature is missing": ("a,b,label\n1,,0\n", "missing [{path}, line 2, column 2 ('b')]"),
    "feature is blank": ("a,b,label\n1, ,0\n", "missing [{path}, line 2, column 2 ('b')]"),
    "feature is NaN": ("a,b,label\n1,2,0\n4242,nan,1\n", "record 1, column 2 ('b')"),
    "feature is too large": ("a,b,label\n1,1e999,0\n", "record 0, column 2 ('b')"),
    "name of a column is long": (f"{'a' * 99},label\nx,0\n", "line 2, column 1]"),
    "name of a column rules terminals": ("a\x1b[2J,label\nx,0\n", "line 2, column 1]"),
    "label unknown": ("a,label\n1,0\n1,4242\n", "line 3"),
    "label out of range": ("a,label\n1,2\n", "line 2"),
    "cell missing": ("a,b,label\n1,2,0\n4242,1\n", "line 3"),
    "no header": ("4242,0\n4242,1\n", "line 1"),
    "label column twice": ("label,label\n0,0\n", "line 1"),
    "no lines": ("", "line 1"),
    "no records": ("a,label\n", "no records"),
    "no features": ("label\n0\n", "no features"),
    "open quote": ('a,label\n"4242,0\n', "damaged"),
    "not UTF-8": ("a,label\n\udcff,0\n", "in Latin-1"),
    "not text": ("a,label\n\udcff\x01\x02,0\n", "damaged"),
}


@pytest.mark.parametrize(("content", "words"), BROKEN_CSV.values(), ids=BROKEN_CSV.keys())
def test_broken_csv(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert words.format(path=path) in str(refused(lambda: read_csv(path, 2)))


def test_csv_columns_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(CSV)
    for columns in ({"id": "nr"}, {"person": "name"}, {"label": "class"}):
        assert "line 1" in refused(lambda c=columns: read_csv(path, ("well", "ill"), **c)).where


def test_csv_ids_must_be_unique(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(CSV.replace("v2", "v1"))
    error = refused(lambda: read_csv(path, ("well", "ill"), id="visit", person="who"))
    assert "record 1" in error.where


def npy(header: str, body: bytes) -> bytes:
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + body


BROKEN_ARRAYS = {
    "unfinished header": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,", b""),
    "header is no Python": npy("{'descr': '<f8' 'x', 'shape': 03}", b""),
    "absurd size": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,)}", b""),
    "impossible text": npy(
        "{'descr': '<U1', 'fortran_order': False, 'shape': (2,)}", b"\xff\xff\xff\x7f" * 2
    ),
}


@pytest.mark.parametrize("array", ["x", "y", "ids", "persons"])
@pytest.mark.parametrize("content", BROKEN_ARRAYS.values(), ids=BROKEN_ARRAYS.keys())
def test_broken_arrays_inside_a_sound_npz(tmp_path: Path, array: str, content: bytes) -> None:
    path = tmp_path / "broken.npz"
    np.savez(path, **({"x": np.eye(2), "y": [0, 1]} | {array: [0, 1]}))
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as broken:
        for name, sound in members.items():
            broken.writestr(name, content if name == f"{array}.npy" else sound)
    refused(lambda: read_npz(path, 2))


def npz_content(tmp_path: Path) -> bytes:
    np.savez_compressed(tmp_path / "whole.npz", x=np.eye(3), y=[0, 1, 0], ids=["a", "b", "c"])
    return (tmp_path / "whole.npz").read_bytes()


@ONE_FOLDER
@pytest.mark.parametrize("kind", ["idx", "idx.gz", "npz", "csv"])
@given(data=st.data())
def test_damage_anywhere_is_bad_input_or_harmless(
    tmp_path: Path, labels: Path, kind: str, data: st.DataObject
) -> None:
    whole = {
        "idx": IMAGES,
        "idx.gz": gzip.compress(IMAGES, mtime=0),
        "npz": npz_content(tmp_path),
        "csv": b"a,label\n1,0\n2,1\n3,1\n",
    }[kind]
    damaged = bytearray(whole)
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged"
    path.write_bytes(damaged[: data.draw(st.integers(0, len(whole)))])
    readers = {"npz": lambda: read_npz(path, 2), "csv": lambda: read_csv(path, 2)}
    # Any other exception, or a warning, fails the test.
    with suppress(BadInput):
        assert isinstance(readers.get(kind, lambda: read_idx(path, labels, 2))(), Dataset)


def test_digits() -> None:
    data = digits()
    assert (len(data), data.shape, data.x.dtype) == (1797, (8, 8), np.uint8)
    assert data.x.max() == 16
    assert len(set(data.ids)) == 1797


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert "stillroom[train]" in refused(digits).remedy


def test_importing_the_room_stays_light() -> None:
    heavy = {"sklearn", "torch", "PIL", "scipy.io"}
    check = f"import sys, stillroom.data; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
