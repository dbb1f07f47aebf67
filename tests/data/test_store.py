"""What is kept under a name comes back the same, privately, and is never half written."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from stillroom.data import Dataset, load
from stillroom.data.dataset import class_names
from stillroom.data.store import home, imported, load_parts, save
from stillroom.errors import BadInput

PETS = Dataset(
    np.array([[1, 2], [3, 4], [1, 2]], dtype=np.uint8),
    [0, 1, 0],
    ("cat", "dog"),
    persons=("anna", "ben", "anna"),
)


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


def test_home_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "shared"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert home() == tmp_path / "own"
    monkeypatch.delenv("STILLROOM_HOME")
    assert home() == tmp_path / "shared" / "stillroom"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert home() == tmp_path / "me" / ".local" / "share" / "stillroom"


def test_round_trip(tmp_path: Path) -> None:
    save(PETS, "pets", tmp_path)
    read = load("pets", root=tmp_path)
    assert np.array_equal(read.x, PETS.x)
    assert read.x.dtype == np.uint8
    assert read.y.tolist() == [0, 1, 0]
    assert (read.ids, read.persons, read.classes) == (PETS.ids, PETS.persons, PETS.classes)
    assert read.name == "pets"
    assert imported(tmp_path) == ("pets",)


def test_a_selection_keeps_its_ids(tmp_path: Path) -> None:
    """The second of two equal records must not become the first by being stored alone."""
    second = PETS.select([2])
    save(second, "second", tmp_path)
    assert load("second", root=tmp_path).ids == second.ids == PETS.ids[2:]


def test_official_parts(tmp_path: Path) -> None:
    save({"train": PETS.select([0, 1]), "test": PETS.select([2])}, "pets", tmp_path)
    assert list(load_parts("pets", root=tmp_path)) == ["train", "test"]
    assert load("pets", part="test", root=tmp_path).ids == PETS.ids[2:]
    with pytest.raises(BadInput, match="part='train' or part='test'"):
        load("pets", root=tmp_path)
    save(PETS, "whole", tmp_path)
    with pytest.raises(BadInput, match="ask for no part"):
        load("whole", part="test", root=tmp_path)


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    save(PETS, "pets", tmp_path / "home")
    for path in (tmp_path / "home", *(tmp_path / "home").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_description_holds_no_figures(tmp_path: Path) -> None:
    meta = json.loads((save(PETS, "pets", tmp_path) / "meta.json").read_text())
    expected = {"version": 1, "format": "npz", "classes": ["cat", "dog"], "parts": ["all"]}
    assert meta == expected


def test_a_name_that_is_taken_is_kept(tmp_path: Path) -> None:
    save(PETS, "pets", tmp_path)
    before = everything_in(tmp_path)
    with pytest.raises(BadInput, match="--replace"):
        save(PETS.select([0]), "pets", tmp_path)
    assert everything_in(tmp_path) == before
    save({"train": PETS.select([0]), "test": PETS.select([1])}, "pets", tmp_path, replace=True)
    assert len(load("pets", part="train", root=tmp_path)) == 1
    assert not (tmp_path / "data" / "pets" / "all.npz").exists()


@pytest.mark.parametrize(
    "name", ["", "../pets", "a/b", ".pets", "Pets", "digits", "mnist", "x" * 65, "pets\n"]
)
def test_names_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        save(PETS, name, tmp_path / "home", replace=True)
    assert caught.value.remedy
    assert not (tmp_path / "home").exists()


def test_parts_must_be_alike(tmp_path: Path) -> None:
    other = Dataset([[1, 2]], [0], class_names(3))
    with pytest.raises(BadInput, match="differ"):
        save({"train": PETS, "test": other}, "pets", tmp_path)
    assert everything_in(tmp_path) == {}


def test_a_crash_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: Path, **arrays: object) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", crash)
    with pytest.raises(KeyboardInterrupt):
        save(PETS, "pets", tmp_path)
    assert list((tmp_path / "data").iterdir()) == []


def test_unknown_names_get_a_suggestion(tmp_path: Path) -> None:
    save(PETS, "visits", tmp_path)
    for wrong, near in (("visit", "visits"), ("fashionmnist", "fashion-mnist"), ("mnits", "mnist")):
        with pytest.raises(BadInput) as caught:
            load(wrong, root=tmp_path)
        assert f"did you mean {near!r}" in caught.value.remedy
        assert "cifar-10, digits, fashion-mnist, mnist, visits" in caught.value.remedy
    with pytest.raises(BadInput, match="check the name or the path"):
        load("no/such/file.xyz", root=tmp_path)


def test_known_but_not_yet_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="stillroom data import mnist"):
        load("mnist", root=tmp_path)


def test_classes_of_a_name_are_compared(tmp_path: Path) -> None:
    save(PETS, "pets", tmp_path)
    for agreed in (None, 2, ("cat", "dog"), ["cat", "dog"]):
        assert load("pets", agreed, root=tmp_path).classes == ("cat", "dog")
    for wrong in (3, ("dog", "cat"), ("0", "1")):
        with pytest.raises(BadInput, match="names of its own"):
            load("pets", wrong, root=tmp_path)


@pytest.mark.parametrize(
    "meta",
    ["", "{}", "[]", '{"version": 2, "format": "npz", "classes": ["a", "b"], "parts": ["all"]}'],
)
def test_a_description_that_is_not_understood(meta: str, tmp_path: Path) -> None:
    (save(PETS, "pets", tmp_path) / "meta.json").write_text(meta)
    with pytest.raises(BadInput, match="--replace"):
        load("pets", root=tmp_path)


def test_files_are_read_by_what_they_hold(tmp_path: Path) -> None:
    np.savez(tmp_path / "pets.npz", x=PETS.x, y=PETS.y, persons=PETS.persons)
    (tmp_path / "pets.npz").rename(tmp_path / "pets")
    (tmp_path / "pets.csv").write_text("a,b,label\n1,2,cat\n3,4,dog\n")
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4]))
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 0, 1]))
    from_npz = load(tmp_path / "pets", PETS.classes, root=tmp_path)
    assert from_npz.ids == PETS.ids
    from_csv = load(str(tmp_path / "pets.csv"), PETS.classes, root=tmp_path)
    from_idx = load(images, PETS.classes, labels=labels, root=tmp_path)
    assert from_csv.ids == from_idx.ids
    with pytest.raises(BadInput, match="--labels"):
        load(images, PETS.classes, root=tmp_path)
    with pytest.raises(BadInput, match="classes are not known"):
        load(tmp_path / "pets", root=tmp_path)
