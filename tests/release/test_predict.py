"""Records for a model as they come: pictures, tables, arrays; each answer under its name."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hostile.making import COLUMNS, FEATURES, honest
from stillroom.cli import run
from stillroom.data import digits
from stillroom.gate import Budget
from stillroom.pipeline.release import release
from stillroom.release.predict import predict

RECIPE = """
purpose = "benchmark"
[data]
source = "digits"
test_is_public = true
declared_size = 1400
[features]
name = "pixels"
full_scale = 16
[training]
steps = 3
rate = 1
[privacy]
epsilon = 5
"""


@pytest.fixture(scope="module")
def of_pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "r.toml").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLROOM_HOME", str(folder / "home"))
        release(folder / "r.toml", folder / "out", budget=Budget(6, 1e-5))
    return folder / "out"


@pytest.fixture
def table(tmp_path):
    """A bundle of a model that was trained on columns with names."""
    return Path(shutil.copytree(honest() / "bundle", tmp_path / "bundle"))


def answers(capsys, bundle, *inputs, code=0):
    assert run(["predict", str(bundle), *map(str, inputs), "--csv"]) == code
    said = capsys.readouterr()
    return list(csv.DictReader(io.StringIO(said.out))) if code == 0 else said.err


def save(path, x):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(x).save(path)


def test_folders_with_and_without_sub_folders_and_single_pictures(of_pictures, tmp_path, capsys):
    x = digits().x[:5]
    names = ["a.png", "later/b.bmp", "later/c.tiff", "later/still/d.png", "z.PNG"]
    for name, picture in zip(names, x, strict=True):
        save(tmp_path / "scans" / name, picture)
    (tmp_path / "scans" / "notes.txt").write_text("not a picture")
    (tmp_path / "scans" / ".hidden.png").write_text("not looked at")
    labels, _ = predict(of_pictures, x)
    wanted = {name: str(label) for name, label in zip(names, labels, strict=True)}
    found = answers(capsys, of_pictures, tmp_path / "scans")
    assert {one["name"]: one["class"] for one in found} == wanted
    two = [tmp_path / "scans" / name for name in names[:2]]
    found = answers(capsys, of_pictures, *two)
    assert [one["name"] for one in found] == [str(path) for path in two]
    assert [one["class"] for one in found] == [wanted[name] for name in names[:2]]


def test_text_csv_and_json_say_the_same(of_pictures, capsys):
    words = ["predict", str(of_pictures), "digits"]
    assert run(words) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert run([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run([*words, "--csv"]) == 0
    table = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert table == [["name", "class", "probability"], *lines]
    assert [line[0] for line in lines] == told["names"] == [str(n) for n in range(1797)]
    assert [line[1] for line in lines] == told["labels"]
    logits = np.array(told["logits"])
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert shares.max(axis=1) == pytest.approx(told["probabilities"], rel=1e-4)
    assert [float(line[2]) for line in lines] == pytest.approx(told["probabilities"], abs=6e-5)


def test_npz_needs_no_labels(of_pictures, tmp_path, capsys):
    x = digits().x[:3]
    np.savez(tmp_path / "x.npz", x=x, ids=["Ann", "Bob", "Cas"])
    found = answers(capsys, of_pictures, tmp_path / "x.npz")
    assert [one["name"] for one in found] == ["Ann", "Bob", "Cas"]
    np.savez(tmp_path / "y.npz", y=[1])
    assert "no array x" in answers(capsys, of_pictures, tmp_path / "y.npz", code=2)
    np.savez(tmp_path / "x.npz", x=x, ids=["Ann"])
    assert "as many ids" in answers(capsys, of_pictures, tmp_path / "x.npz", code=2)


def test_a_table_needs_its_columns_and_no_label(table, tmp_path, capsys):
    rows = np.random.default_rng(1).integers(0, 17, (300, FEATURES))
    labels, _ = predict(table, rows.astype(np.float64))
    lines = [",".join([*COLUMNS[::-1], "remark"])]
    lines += [",".join([*map(str, row[::-1]), "fine"]) for row in rows]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    found = answers(capsys, table, tmp_path / "x.csv")
    assert [one["name"] for one in found] == [str(n) for n in range(300)]
    classes = json.loads((table / "certificate.json").read_text())["artefacts"][0]["classes"]
    assert [one["class"] for one in found] == [classes[label] for label in labels]
    (tmp_path / "x.csv").write_text("\n".join([*lines[:3], "1,2"]))
    assert "line 4" in answers(capsys, table, tmp_path / "x.csv", code=2)


@pytest.mark.parametrize("style", ["--csv", "--json"])
@pytest.mark.parametrize(
    ("line", "words"),
    [("1,2", "as many cells"), ("1,x" + ",1" * (FEATURES - 2), "not a number"), ("n", "finite")],
)
def test_a_broken_line_takes_no_answer_back(table, tmp_path, capsys, style, line, words):
    rows = np.random.default_rng(1).integers(0, 17, (500, FEATURES))
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
    lines[401] = line if line != "n" else ",".join(["nan"] * FEATURES)
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert run(["predict", str(table), str(tmp_path / "x.csv"), style]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert "line 402" in said.err
    found = json.loads(said.out)["names"] if style == "--json" else said.out.splitlines()[1:]
    assert len(found) == 400


def test_what_does_not_fit_is_named(of_pictures, tmp_path, capsys):
    save(tmp_path / "scans" / "small.png", np.zeros((4, 4), dtype=np.uint8))
    said = answers(capsys, of_pictures, tmp_path / "scans", code=2)
    assert "small.png" in said
    assert "(8, 8)" in said
    (tmp_path / "empty").mkdir()
    answers(capsys, of_pictures, tmp_path / "empty", code=2)
    assert run(["predict", str(of_pictures), "digits", "--csv", "--json"]) == 2


def test_the_name_of_a_picture_gives_the_terminal_no_orders(of_pictures, tmp_path, capsys):
    save(tmp_path / "scans" / "a\x1b[2J.png", digits().x[0])
    assert run(["predict", str(of_pictures), str(tmp_path / "scans")]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "a\\x1b[2J.png" in said
