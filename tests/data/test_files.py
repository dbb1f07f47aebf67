"""Only plain files are read, and what comes of one is bounded by what it takes on disk."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stillroom.data import Dataset, catalogue, files, load, read_csv, read_npz, store
from stillroom.data.files import most_content, opened
from stillroom.errors import BadInput

NOISE = np.random.default_rng(3).bytes(50_000)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds a thousand times smaller, so that small files meet them."""
    monkeypatch.setattr(files, "MOST_CONTENT", 128 << 10)
    monkeypatch.setattr(files, "MOST_PACKED", 512 << 10)
    monkeypatch.setattr(files, "MOST_RECORDS", 1 << 10)


def length(path: Path) -> int:
    with opened(path) as content:
        return len(content.read())


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (bytes(100_000), 100_000),
        (NOISE * 20, 1_000_000),
        (gzip.compress(bytes(120_000)), 120_000),
        (gzip.compress(NOISE[:20_000] + bytes(300_000)), 320_000),
    ],
    ids=["plain", "plain and long", "packed", "packed as real data are"],
)
def test_what_real_files_hold_is_read(
    tmp_path: Path, narrow: None, content: bytes, read: int
) -> None:
    (tmp_path / "data").write_bytes(content)
    assert length(tmp_path / "data") == read


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(gzip.compress(bytes(200_000))),
        lambda path: path.write_bytes(gzip.compress(NOISE + bytes(600_000))),
        lambda path: (path.touch(), os.truncate(path, 200_000)),
    ],
    ids=["packed", "packed and long", "holes"],
)
def test_a_small_file_that_holds_much_is_refused(
    tmp_path: Path, narrow: None, make: Callable[[Path], object]
) -> None:
    make(tmp_path / "data")
    with pytest.raises(BadInput, match="is small and holds more than"):
        length(tmp_path / "data")


def test_records_are_bounded_too(tmp_path: Path, narrow: None) -> None:
    (tmp_path / "plain.csv").write_text("a,label\n" + "1.23456,0\n" * 3000)
    assert len(read_csv(tmp_path / "plain.csv", 2)) == 3000
    (tmp_path / "packed.csv").write_bytes(gzip.compress(b"a,label\n" + b"1,0\n" * 3000))
    with pytest.raises(BadInput, match="more than 1024 records"):
        read_csv(tmp_path / "packed.csv", 2)


def test_the_bound_grows_with_the_file() -> None:
    assert [most_content(size << 20) >> 20 for size in (0, 1, 10, 20, 200)] == [
        128,
        128,
        320,
        512,
        800,
    ]


def test_a_large_import_is_kept_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed, it could be refused when it is read again."""
    blank = Dataset(np.zeros((4, 100)), [0, 1, 0, 1], classes=2)
    for most, packed in ((1 << 20, True), (100, False)):
        monkeypatch.setattr(store, "MOST_CONTENT", most)
        folder = store.save(blank, "blank", tmp_path, replace=True)
        with zipfile.ZipFile(folder / "all.npz") as kept:
            assert {m.compress_type != zipfile.ZIP_STORED for m in kept.infolist()} == {packed}
        assert load("blank", root=tmp_path).ids == blank.ids


META = {"version": 1, "format": "npz", "classes": ["a", "b"], "parts": ["all"]}


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text(json.dumps({**META, "parts": []})),
        lambda path: path.write_text(json.dumps({**META, "parts": [["all"]]})),
        lambda path: path.write_text(json.dumps({**META, "parts": ["../../all"]})),
        lambda path: path.write_text(json.dumps({**META, "classes": None})),
        lambda path: os.mkfifo(path),
    ],
    ids=["deep", "no part", "part is a list", "part elsewhere", "no classes", "a pipe"],
)
def test_a_damaged_description(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "data" / "pets").mkdir(parents=True)
    make(tmp_path / "data" / "pets" / store.META)
    with pytest.raises(BadInput, match="description is damaged"):
        load("pets", root=tmp_path)


def test_a_known_file_that_holds_much_is_not_the_published_one(
    tmp_path: Path, narrow: None
) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(1 << 20)))
    assert catalogue._content_sum(tmp_path / "bomb.gz") == ""


def test_an_npz_says_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.eye(2), labels=[0, 1], **{"\x1b[2J": [1]})
    with pytest.raises(BadInput, match=r"no arrays x and y, but images, labels, \.\.\.") as caught:
        read_npz(tmp_path / "a.npz", 2)
    assert str(caught.value).isprintable()
    with pytest.raises(BadInput, match="no arrays x and y"):
        load(tmp_path / "a.npz", 2, root=tmp_path)
