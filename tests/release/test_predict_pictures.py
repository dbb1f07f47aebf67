"""Pictures of any size for a model that was trained on pictures of any size; some are broken."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from methods.forging import forge
from stillroom.cli import run
from stillroom.data import PictureForm, digits
from stillroom.data.pictures import picture_in
from stillroom.errors import DoesNotVerify
from stillroom.gate import Budget
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify
from stillroom.release import files
from stillroom.release.predict import predict

FORM = PictureForm((8, 6), "grey")
RECIPE = """
purpose = "benchmark"
[data]
source = "scans"
size = [8, 6]
mode = "grey"
test_is_public = true
declared_size = 160
[features]
name = "pixels"
[training]
steps = 3
rate = 1
[privacy]
epsilon = 5
"""


def scans(folder: Path, count: int, classes: bool) -> Path:
    """Digits in several sizes, modes and formats."""
    for number, (x, y) in enumerate(zip(digits().x[:count], digits().y, strict=False)):
        within = folder / ("odd" if y % 2 else "even") if classes else folder
        within.mkdir(parents=True, exist_ok=True)
        side = (8, 8 + number % 9)
        mode = ("L", "RGB", "RGBA", "P")[number % 4]
        ending = ("png", "bmp", "png", "tiff")[number % 4]
        picture = Image.fromarray(x * 15).resize(side).convert(mode)
        picture.save(within / f"{number:03}.{ending}")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    scans(folder / "scans", 200, classes=True)
    (folder / "r.toml").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLROOM_HOME", str(folder / "home"))
        release(folder / "r.toml", folder / "out", budget=Budget(6, 1e-5))
    return folder / "out"


@pytest.fixture
def asked(tmp_path, made, capsys):
    """Ask the model about files; what it says on both streams."""

    def ask(*inputs, code=0, style="--csv"):
        words = ["predict", str(made), *map(str, inputs), *([style] if style else [])]
        assert run(words) == code
        said = capsys.readouterr()
        found = said.out if style != "--csv" else list(csv.DictReader(io.StringIO(said.out)))
        return found, said.err

    return ask


def wanted(bundle, paths):
    labels, _ = predict(bundle, np.stack([picture_in(path, FORM) for path in paths]))
    return [("even", "odd")[label] for label in labels]


def test_pictures_of_any_size_are_brought_to_the_form_of_the_recipe(asked, made, tmp_path):
    folder = scans(tmp_path / "new", 40, classes=False)
    found, said = asked(folder)
    paths = sorted(folder.iterdir())
    assert [one["name"] for one in found] == [path.name for path in paths]
    assert [one["class"] for one in found] == wanted(made, paths)
    assert len({one["class"] for one in found}) == 2
    assert said == ""


def test_the_certificate_says_the_form_and_verify_derives_it(made, tmp_path):
    assert verify(made)["verifies"]
    document = json.loads((made / "certificate.json").read_text())
    assert document["artefacts"][0]["pictures"] == FORM.to_json()
    honest = (made / "recipe.toml").read_text()
    for old, new in (
        ("size = [8, 6]", "size = [8, 7]"),
        ("size = [8, 6]\n", ""),
        ('mode = "grey"', 'mode = "colour"'),
        ('mode = "grey"\n', ""),
        ('size = [8, 6]\nmode = "grey"\n', ""),
    ):
        assert old in honest
        folder = Path(shutil.copytree(made, tmp_path / "bundle"))
        (folder / "recipe.toml").write_text(honest.replace(old, new))
        changed = {**document, "recipe": files.sha256((folder / "recipe.toml").read_bytes())}
        forge(folder, changed, None)
        with pytest.raises(DoesNotVerify, match=r"recipe\.toml comes to: artefacts"):
            verify(folder)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "said",
    [
        None,
        {"size": [8, 6], "mode": "grey", "rules": 2},
        {"size": [6, 8], "mode": "grey", "rules": 1},
        {"size": [8, 6], "mode": "colour", "rules": 1},
        {"size": [1 << 20, 6], "mode": "grey", "rules": 1},
        "grey",
    ],
)
def test_another_form_on_the_certificate_does_not_verify(made, tmp_path, said):
    folder = Path(shutil.copytree(made, tmp_path / "bundle"))
    document = json.loads((folder / "certificate.json").read_text())
    document["artefacts"][0]["pictures"] = said
    forge(folder, document, None)
    with pytest.raises(DoesNotVerify):
        verify(folder)
    if said is not None:
        assert run(["predict", str(folder), str(tmp_path)]) in (2, 4)


def break_(folder):
    """A broken one in the middle, and all else that a folder may hold."""
    (folder / "020.png").write_bytes((folder / "000.png").read_bytes()[:-40])
    (folder / "021.gif").write_bytes(b"GIF89a")
    (folder / "022.jpg").symlink_to("nowhere")
    os.mkfifo(folder / "023.png")
    return {"020.png", "021.gif", "022.jpg", "023.png"}


def test_a_broken_picture_is_left_out_and_all_others_are_answered(asked, tmp_path):
    folder = scans(tmp_path / "new", 40, classes=False)
    for number in range(20, 24):
        next(folder.glob(f"0{number}.*")).unlink()
    broken = break_(folder)
    found, said = asked(folder, code=2)
    assert len(found) == 36
    assert not {one["name"] for one in found} & broken
    assert all(f"left out: {folder / name}: " in said for name in broken)
    assert "4 of 40 records have no answer" in said
    assert "what to do" in said
    text, _ = asked(folder, code=2, style="--json")
    told = json.loads(text)
    assert set(told["left_out"]) == broken
    assert len(told["names"]) == len(told["logits"]) == 36


def test_thousands_of_broken_pictures_are_counted_only(asked, tmp_path):
    folder = scans(tmp_path / "new", 3, classes=False)
    for number in range(100, 200):
        (folder / f"{number}.png").touch()
    found, said = asked(folder, code=2)
    assert len(found) == 3
    assert said.count("left out: ") == 21
    assert "100 of 103 records" in said


def test_only_one_picture_and_it_is_broken(asked, tmp_path):
    (tmp_path / "x.png").write_bytes(b"no")
    _, said = asked(tmp_path / "x.png", code=2)
    assert "no readable picture" in said
    assert str(tmp_path / "x.png") in said


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is open to root")
def test_a_closed_folder_is_named(asked, tmp_path):
    folder = scans(tmp_path / "new", 3, classes=False)
    (folder / "closed").mkdir(mode=0)
    found, said = asked(folder, code=2)
    assert len(found) == 3
    assert "closed: a folder cannot be listed" in said


def test_links_are_followed_once(asked, tmp_path):
    folder = scans(tmp_path / "new", 3, classes=False)
    (folder / "again").symlink_to("..")
    (folder / "self").symlink_to(".")
    (folder / "link.png").symlink_to("000.png")
    scans(tmp_path / "more", 2, classes=False)
    found, _ = asked(folder)
    names = {one["name"] for one in found}
    assert {"000.png", "link.png", "again/more/000.png"} <= names
    assert len(found) == 6


def test_names_that_are_no_text(asked, tmp_path):
    folder = scans(tmp_path / "new", 1, classes=False)
    os.rename(folder / "000.png", os.fsencode(folder) + b"/\xff\n.png")
    found, _ = asked(folder)
    assert [one["name"] for one in found] == ["\\udcff\\n.png"]
    text, _ = asked(folder, style="--json")
    assert json.loads(text)["names"] == ["\udcff\n.png"]


def test_of_several_folders_each_name_says_which(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for day in ("monday", "tuesday"):
        scans(tmp_path / day, 2, classes=False)
    found, _ = asked("monday", "tuesday/001.bmp")
    assert [one["name"] for one in found] == ["monday/000.png", "monday/001.bmp", "tuesday/001.bmp"]


def test_a_wrong_name_is_told_before_anything_is_answered(asked, tmp_path):
    folder = scans(tmp_path / "new", 2, classes=False)
    found, said = asked(folder, "nowhere.png", code=2)
    assert found == []
    assert "nowhere.png" in said


def test_a_folder_called_like_a_data_set(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scans(tmp_path / "digits", 2, classes=False)
    found, said = asked("./digits")
    assert [one["name"] for one in found] == ["000.png", "001.bmp"]
    assert said == ""
    _, said = asked("digits", code=2)
    assert "./digits" in said
