"""A folder is read as what it holds, in its official parts, or it says what is missing."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from stillroom.data import read_folder
from stillroom.data.cifar import BATCHES, THINGS
from stillroom.data.store import load_parts, save
from stillroom.errors import BadInput

NAMES = [name for names in BATCHES.values() for name in names]


def batches(folder: Path, ending: str) -> Path:
    folder.mkdir()
    for number, name in enumerate(NAMES):
        pixels = np.full((1, 3072), number, dtype=np.uint8)
        python = pickle.dumps({b"labels": [number], b"data": pixels}, 4)
        binary = bytes([number]) + pixels.tobytes()
        (folder / f"{name}{ending}").write_bytes(binary if ending else python)
    (folder / "batches.meta").write_text("names")
    return folder


def pictures(folder: Path, *classes: str) -> Path:
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        Image.new("L", (3, 2), number).save(folder / name / "1.png")
    return folder


@pytest.mark.parametrize("ending", ["", ".bin"])
def test_cifar_batches(tmp_path: Path, ending: str) -> None:
    folder = batches(tmp_path / "things", ending)
    parts = load_parts(folder, root=tmp_path)
    assert {part: data.y.tolist() for part, data in parts.items()} == {
        "train": [0, 1, 2, 3, 4],
        "test": [5],
    }
    assert {data.classes for data in parts.values()} == {THINGS}
    (folder / f"data_batch_3{ending}").unlink()
    with pytest.raises(BadInput, match=rf"lacks data_batch_3{ending} "):
        read_folder(folder)


def test_svhn(tmp_path: Path) -> None:
    for part, label in (("train", 10), ("test", 4), ("extra", 7)):
        x = np.zeros((32, 32, 3, 1), dtype=np.uint8)
        savemat(tmp_path / f"{part}_32x32.mat", {"X": x, "y": [[label]]})
    parts = load_parts(tmp_path, root=tmp_path)
    assert {part: data.y.tolist() for part, data in parts.items()} == {"train": [0], "test": [4]}
    single = load_parts(tmp_path / "extra_32x32.mat", root=tmp_path)
    assert {part: data.y.tolist() for part, data in single.items()} == {"all": [7]}
    (tmp_path / "test_32x32.mat").unlink()
    with pytest.raises(BadInput, match=r"lacks test_32x32\.mat"):
        read_folder(tmp_path)


def test_pictures_whole(tmp_path: Path) -> None:
    (data,) = load_parts(pictures(tmp_path / "pets", "dog", "cat"), root=tmp_path).values()
    assert (data.classes, data.x[:, 0, 0].tolist()) == (("cat", "dog"), [1, 0])


def test_pictures_in_parts_share_their_classes(tmp_path: Path) -> None:
    pictures(tmp_path / "pets" / "train", "cat", "eel")
    pictures(tmp_path / "pets" / "test", "dog", "eel")
    parts = load_parts(tmp_path / "pets", root=tmp_path)
    assert list(parts) == ["train", "test"]
    assert {data.classes for data in parts.values()} == {("cat", "dog", "eel")}
    assert (parts["train"].y.tolist(), parts["test"].y.tolist()) == ([0, 2], [1, 2])
    given = load_parts(tmp_path / "pets", ("eel", "dog", "cat"), root=tmp_path)
    assert given["train"].y.tolist() == [0, 2]
    save(parts, "pets", tmp_path / "home")
    again = load_parts("pets", root=tmp_path / "home")
    assert {part: data.ids for part, data in again.items()} == {
        part: data.ids for part, data in parts.items()
    }
    with pytest.raises(BadInput, match="not among the given"):
        read_folder(tmp_path / "pets", ("cat", "dog"))
    pictures(tmp_path / "pets" / "more", "cat")
    with pytest.raises(BadInput, match="beside train and test"):
        read_folder(tmp_path / "pets")


def test_classes_may_be_called_train_and_test(tmp_path: Path) -> None:
    (data,) = read_folder(pictures(tmp_path / "pets", "train", "test")).values()
    assert data.classes == ("test", "train")


def test_folders_that_hold_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("4242")
    with pytest.raises(BadInput, match="no data files of a known kind") as caught:
        load_parts(tmp_path, root=tmp_path)
    assert "4242" not in str(caught.value)
    with pytest.raises(BadInput, match="cannot be read"):
        load_parts(tmp_path, 2, labels=tmp_path / "notes.txt", root=tmp_path)
    with pytest.raises(BadInput, match="cannot be listed"):
        read_folder(tmp_path / "nowhere")
