"""Pictures and SVHN files are read exactly; what does not fit names its file, not its pixels."""

from __future__ import annotations

import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from stillroom.data import Dataset, read_images, read_svhn
from stillroom.data.files import file_kind
from stillroom.errors import BadInput

SECRET = "4242"
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def refused(read: Callable[[], object], where: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read()
    assert caught.value.remedy
    assert str(where) in caught.value.where
    assert SECRET not in str(caught.value)
    return caught.value


def picture(start: int, shape: tuple[int, ...] = (2, 3, 3), kind: str = "uint8") -> np.ndarray:
    size = int(np.prod(shape))
    return (np.arange(start, start + size) % 256).astype(kind).reshape(shape)


def keep(pixels: np.ndarray, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    folder = tmp_path / "pets"
    for number, name in enumerate(("dog/b.png", "dog/a.png", "cat/1.bmp", "cat/2.tiff")):
        keep(picture(number), folder / name)
    return folder


def test_pictures_by_class(pets: Path) -> None:
    (pets / ".hidden").mkdir()
    (pets / "cat" / ".DS_Store").write_bytes(b"x")
    (pets / "LICENSE").write_text("free")
    read = read_images(pets)
    assert (read.classes, read.shape, read.x.dtype) == (("cat", "dog"), (2, 3, 3), np.uint8)
    assert read.y.tolist() == [0, 0, 1, 1]
    for row, start in enumerate((2, 3, 1, 0)):
        assert np.array_equal(read.x[row], picture(start))
    assert all(name.startswith("sha256:") for name in read.ids)


def test_ids_follow_the_pixels_not_the_files(pets: Path) -> None:
    before = set(read_images(pets).ids)
    (pets / "dog" / "a.png").rename(pets / "dog" / "z.png")
    keep(picture(3), pets / "cat" / "2.png")
    (pets / "cat" / "2.tiff").unlink()
    assert set(read_images(pets).ids) == before


def test_classes_as_given(pets: Path) -> None:
    assert read_images(pets, 2).classes == ("cat", "dog")
    read = read_images(pets, ("dog", "cat", "bird"))
    assert (read.classes, read.y.tolist()) == (("dog", "cat", "bird"), [0, 0, 1, 1])
    for classes in (("cat", "bird"), 3):
        error = refused(lambda c=classes: read_images(pets, c), pets)
        assert "not among the given classes" in error.what


@pytest.mark.parametrize(
    ("shape", "kind"), [((2, 3), "uint8"), ((2, 3), "uint16"), ((2, 3, 4), "uint8")]
)
def test_modes(tmp_path: Path, shape: tuple[int, ...], kind: str) -> None:
    for start, name in enumerate(("cat", "dog")):
        keep(picture(start, shape, kind), tmp_path / "p" / name / "1.png")
    read = read_images(tmp_path / "p")
    assert read.shape == shape
    assert np.array_equal(read.x[1], picture(1, shape, kind))


def test_jpeg(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        keep(np.full((8, 8, 3), 200, dtype=np.uint8), tmp_path / name / "1.jpg")
    assert read_images(tmp_path).shape == (8, 8, 3)


def bomb() -> bytes:
    """The start of a PNG that promises more pixels than a picture should have."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", 10_000, 10_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b""))


def palette(path: Path) -> None:
    Image.fromarray(picture(0)).quantize(4).save(path, "PNG")


def two_frames(path: Path) -> None:
    first, second = Image.fromarray(picture(0)), Image.fromarray(picture(1))
    first.save(path, "TIFF", save_all=True, append_images=[second])


def no_pixels(path: Path) -> None:
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 3 2\n%%EndComments\n4242\n")


STRANGERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "wider": (lambda path: keep(picture(0, (2, 4, 3)), path), "another size or mode"),
    "turned": (lambda path: keep(picture(0, (3, 2, 3)), path), "another size or mode"),
    "grey": (lambda path: keep(picture(0, (2, 3)), path), "another size or mode"),
    "transparent": (lambda path: keep(picture(0, (2, 3, 4)), path), "another size or mode"),
    "palette": (palette, "no readable picture"),
    "two frames": (two_frames, "several pictures"),
    "a GIF": (lambda path: Image.fromarray(picture(0)).save(path, "GIF"), "a GIF is not read"),
    "text": (lambda path: path.write_text(SECRET), "no readable picture"),
    "empty": (lambda path: path.touch(), "no readable picture"),
    "a program": (no_pixels, "no readable picture"),
    "too large": (lambda path: path.write_bytes(bomb()), "more than 89,478,485 pixels"),
    "a folder": (lambda path: path.mkdir(), "not a plain file"),
}


@pytest.mark.parametrize(("make", "words"), STRANGERS.values(), ids=STRANGERS.keys())
def test_a_file_that_does_not_fit_is_named(
    pets: Path, make: Callable[[Path], object], words: str
) -> None:
    stranger = pets / "dog" / "c.png"
    make(stranger)
    assert words in refused(lambda: read_images(pets), stranger).what


def test_cut_pictures(pets: Path) -> None:
    path = pets / "dog" / "b.png"
    whole = path.read_bytes()
    for cut in (4, 20, len(whole) // 2):
        path.write_bytes(whole[:cut])
        refused(lambda: read_images(pets), path)


def test_folders_that_are_no_classes(pets: Path, tmp_path: Path) -> None:
    (pets / "eel").mkdir()
    assert "no pictures" in refused(lambda: read_images(pets), pets / "eel").what
    (tmp_path / "empty").mkdir()
    error = refused(lambda: read_images(tmp_path / "empty"), tmp_path / "empty")
    assert "no sub-folders" in error.what
    keep(picture(0), tmp_path / "one" / "cat" / "1.png")
    assert "two or more" in refused(lambda: read_images(tmp_path / "one"), tmp_path / "one").what
    for missing in (tmp_path / "nowhere", tmp_path / "one" / "cat" / "1.png"):
        assert "cannot be listed" in refused(lambda m=missing: read_images(m), missing).what


def test_without_pillow(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(BadInput) as caught:
        read_images(pets)
    assert caught.value.remedy == "pip install 'stillroom[train]'"


@ONE_FOLDER
@given(data=st.data())
def test_damaged_pictures_are_bad_input_or_harmless(pets: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["dog/b.png", "cat/1.bmp", "cat/2.tiff"]))
    whole = (pets / name).read_bytes()
    damaged = bytearray(whole)
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    (pets / name).write_bytes(damaged[: data.draw(st.integers(0, len(whole)))])
    try:
        with suppress(BadInput):
            assert isinstance(read_images(pets), Dataset)
    finally:
        (pets / name).write_bytes(whole)


X = (np.arange(32 * 32 * 3 * 4) % 251).astype(np.uint8).reshape(32, 32, 3, 4)
Y = np.array([[1], [10], [9], [10]], dtype=np.uint8)


@pytest.fixture
def mat(tmp_path: Path) -> Path:
    return tmp_path / "digits"


def save_mat(path: Path, compressed: bool = False, **arrays: object) -> None:
    with path.open("wb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        savemat(stream, arrays, do_compression=compressed)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("y", [Y, Y.astype(float), Y.reshape(1, -1)])
def test_svhn(mat: Path, compressed: bool, y: np.ndarray) -> None:
    save_mat(mat, compressed, X=X, y=y)
    assert file_kind(mat) == "mat"
    read = read_svhn(mat)
    assert (read.shape, read.x.dtype, read.classes) == ((32, 32, 3), np.uint8, tuple("0123456789"))
    assert read.y.tolist() == [1, 0, 9, 0]
    assert np.array_equal(read.x[2], X[:, :, :, 2])
    assert read_svhn(mat, tuple("abcdefghij")).classes == tuple("abcdefghij")


BROKEN_MAT = {
    "X missing": ({"y": Y}, "X and y"),
    "y missing": ({"X": X}, "X and y"),
    "X in cells": ({"X": np.array([X, SECRET], dtype=object), "y": Y}, "X and y"),
    "y texts": ({"X": X, "y": [SECRET] * 4}, "X and y"),
    "X without colour": ({"X": X[:, :, 0], "y": Y}, "32x32x3xN"),
    "X smaller": ({"X": X[1:], "y": Y}, "32x32x3xN"),
    "X records first": ({"X": X.transpose(3, 0, 1, 2), "y": Y}, "32x32x3xN"),
    "X floats": ({"X": X / 255, "y": Y}, "32x32x3xN"),
    "y shorter": ({"X": X, "y": Y[1:]}, "32x32x3xN"),
    "label 0": ({"X": X, "y": Y - 1}, "outside 1 to 10"),
    "label too large": ({"X": X, "y": Y + 4242.0}, "outside 1 to 10"),
    "label no whole number": ({"X": X, "y": Y / 4}, "outside 1 to 10"),
    "label no number": ({"X": X, "y": Y * np.nan}, "outside 1 to 10"),
    "no records": ({"X": X[..., :0], "y": Y[:0]}, ""),
}


@pytest.mark.parametrize(("arrays", "words"), BROKEN_MAT.values(), ids=BROKEN_MAT.keys())
def test_broken_svhn(mat: Path, arrays: dict[str, object], words: str) -> None:
    save_mat(mat, **arrays)
    assert words in refused(lambda: read_svhn(mat), mat).what


def test_cut_and_newer_mat_files(mat: Path) -> None:
    save_mat(mat, X=X, y=Y)
    whole = mat.read_bytes()
    for cut in (0, 60, 130, 200, len(whole) // 2, len(whole) - 1):
        mat.write_bytes(whole[:cut])
        refused(lambda: read_svhn(mat), mat)
    mat.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + b"\x89HDF" * 200)
    assert file_kind(mat) == "mat"
    assert "-v7" in refused(lambda: read_svhn(mat), mat).remedy
    with pytest.raises(BadInput, match="cannot be read"):
        read_svhn(mat.parent / "nowhere")


@ONE_FOLDER
@given(data=st.data(), compressed=st.booleans())
def test_damaged_svhn_is_bad_input_or_harmless(
    mat: Path, data: st.DataObject, compressed: bool
) -> None:
    save_mat(mat, compressed, X=X, y=Y)
    damaged = bytearray(mat.read_bytes())
    for place in data.draw(st.lists(st.integers(0, 250), min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    mat.write_bytes(damaged)
    with suppress(BadInput):
        assert isinstance(read_svhn(mat), Dataset)
