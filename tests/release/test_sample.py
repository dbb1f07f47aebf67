"""Draw from a bundle: same seed same bytes, classes as asked for, whole files or none, no torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import stillroom
from release.generators import CLASSES, bundles, network, sketch
from release.making import certificate_of, make
from stillroom.cli import run
from stillroom.cli import sample as command
from stillroom.data import read_npz
from stillroom.errors import BadInput
from stillroom.release import LinearModel, npz, write_bundle
from stillroom.release import sample as sampling
from stillroom.release.predict import predict
from stillroom.release.sample import Wish, sample

SHAPE = (6, 6)


def brightness():
    """A classifier that gives dark, middle and light pictures the classes of the sketch."""
    weights = np.zeros((3, 37), np.float32)
    weights[:, :36] = np.array([-1.0, 0.0, 1.0], np.float32)[:, None]
    weights[:, 36] = [0, 6, -6]
    return LinearModel(weights, "pixels", SHAPE)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Bundles by what they draw from."""
    generators = {
        "sketch": sketch(),
        "bytes": sketch(full_scale=255.0),
        "network": network(full_scale=255.0),
        "unconditional": network(conditional=False),
        "colour": network((6, 6, 3), 255.0),
        "rows": network((4,), 1.0, model="mlp"),
        "nothing": None,
    }
    return bundles(tmp_path_factory, generators, sketch=brightness())


def drawn(bundle, path, count=50, **wish):
    told = sample(bundle, path, Wish(count, **wish))
    with np.load(path) as arrays:
        return told, dict(arrays)


DRAWERS = ("sketch", "bytes", "network", "unconditional", "colour", "rows")


@pytest.mark.parametrize("name", DRAWERS)
def test_records_as_a_data_set_stores_them(made, tmp_path, name):
    told, arrays = drawn(made[name], tmp_path / "x.npz")
    line = certificate_of(made[name])["artefacts"][1]
    x = arrays["x"]
    assert x.shape == (50, *line["shape"])
    assert x.dtype == (np.uint8 if line["full_scale"] == 255 else np.float32)
    assert 0 <= x.min() < x.max() <= line["full_scale"]
    assert told["samples"] == 50
    if name == "unconditional":
        assert set(arrays) == {"x"}
        assert told["classes"] is told["labels"] is None
        return
    assert set(arrays) == {"x", "y", "classes"}
    assert arrays["classes"].tolist() == list(CLASSES)
    counts = np.bincount(arrays["y"], minlength=3)
    assert told["classes"] == dict(zip(CLASSES, counts.tolist(), strict=True))
    assert (counts > 5).all()
    data = read_npz(tmp_path / "x.npz", 3)
    assert np.array_equal(data.x, x)
    assert np.array_equal(data.y, arrays["y"])


def test_the_sketch_is_drawn_class_by_class(made, tmp_path):
    """Its classes differ in brightness: what was drawn for a class is of that class."""
    _, arrays = drawn(made["sketch"], tmp_path / "x.npz", 300)
    means = [arrays["x"][arrays["y"] == c].mean() for c in range(3)]
    assert means[0] < means[1] - 1 < means[2] - 2


@pytest.mark.parametrize("name", ["sketch", "network"])
def test_the_seed_decides_every_byte(made, tmp_path, name):
    for file, seed in (("a", 1), ("b", 1), ("c", 2)):
        sample(made[name], tmp_path / file, Wish(70, seed, "model"))
    first, same, other = ((tmp_path / file).read_bytes() for file in "abc")
    assert first == same
    assert first != other


@pytest.mark.parametrize("name", ["sketch", "network"])
def test_a_longer_file_begins_with_the_shorter_one(made, tmp_path, monkeypatch, name):
    monkeypatch.setattr(sampling, "TOGETHER", 16)
    _, few = drawn(made[name], tmp_path / "few", 20)
    _, many = drawn(made[name], tmp_path / "many", 50)
    for array in ("x", "y"):
        assert np.array_equal(few[array], many[array][:20])
    assert len(np.unique(many["x"].reshape(50, -1), axis=0)) == 50, "a turn was drawn twice"


def test_the_models_classes_and_scores(made, tmp_path):
    _, arrays = drawn(made["bytes"], tmp_path / "x.npz", labels="model")
    labels, logits = predict(made["bytes"], arrays["x"])
    assert np.array_equal(arrays["y"], labels)
    assert np.allclose(arrays["scores"], logits)
    assert arrays["scores"].shape == (50, 3)


def test_only_what_both_agree_on(made, tmp_path):
    told, arrays = drawn(made["sketch"], tmp_path / "x.npz", 2000, agreeing=True)
    assert "scores" not in arrays
    assert len(arrays["x"]) == 2000
    assert np.array_equal(predict(made["sketch"], arrays["x"])[0], arrays["y"])
    assert told["drawn"] >= 2000
    _, every = drawn(made["sketch"], tmp_path / "all.npz", 2000)
    assert not np.array_equal(predict(made["sketch"], every["x"])[0], every["y"])


def test_who_never_agrees_is_not_waited_for(tmp_path, monkeypatch):
    weights = np.zeros((3, 37), np.float32)
    weights[0, 36] = 1
    model = LinearModel(weights, "pixels", SHAPE)
    write_bundle(make(tmp_path, model=model, generator=sketch()), tmp_path / "bundle")
    monkeypatch.setattr(sampling, "LEAST_TRIES", 3000)
    with pytest.raises(BadInput, match="only 0 could be kept"):
        sample(tmp_path / "bundle", tmp_path / "x.npz", Wish(5, agreeing=True, only=("two",)))
    assert not list(tmp_path.glob("*x.npz*"))
    assert drawn(tmp_path / "bundle", tmp_path / "x.npz", 5, agreeing=True, only=("<b>",))


@pytest.mark.parametrize("name", ["sketch", "network"])
def test_some_classes_only(made, tmp_path, name):
    told, arrays = drawn(made[name], tmp_path / "x.npz", only=("three", "<b>", "three"))
    assert set(arrays["y"]) == {0, 2}
    assert told["classes"]["two"] == 0


def test_a_generator_that_is_told_no_class(made, tmp_path):
    _, arrays = drawn(made["unconditional"], tmp_path / "all.npz", labels="model")
    found = int(arrays["y"][0])
    _, some = drawn(
        made["unconditional"], tmp_path / "some.npz", labels="model", only=(CLASSES[found],)
    )
    assert set(some["y"]) == {found}
    for wish in ({"labels": "drawn"}, {"agreeing": True}, {"only": ("two",)}):
        with pytest.raises(BadInput, match="not told classes"):
            sample(made["unconditional"], tmp_path / "x.npz", Wish(5, **wish))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"count": 0}, "out of range"),
        ({"count": -1}, "out of range"),
        ({"count": 10**12}, "out of range"),
        ({"count": 5, "labels": "guessed"}, "unknown"),
        ({"count": 5, "only": ("four",)}, "no class 'four'"),
    ],
)
def test_wishes_that_cannot_be(made, tmp_path, wish, said):
    with pytest.raises(BadInput, match=said):
        sample(made["sketch"], tmp_path / "x.npz", Wish(**wish))
    assert not list(tmp_path.iterdir())


def test_a_bundle_without_a_generator(made, tmp_path):
    with pytest.raises(BadInput, match="no generator") as caught:
        sample(made["nothing"], tmp_path / "x.npz", Wish(5))
    assert "[sketch]" in caught.value.remedy
    assert "a method that makes a generator" in caught.value.remedy
    with pytest.raises(BadInput, match="no bundle"):
        sample(tmp_path / "none", tmp_path / "x.npz", Wish(5))
    older = Path(__file__).parent / "older" / "v4-record"
    with pytest.raises(BadInput, match="no generator"):
        sample(older, tmp_path / "x.npz", Wish(5))


# -- files ----------------------------------------------------------------------------------------


def test_a_file_is_never_overwritten(made, tmp_path):
    (tmp_path / "x.npz").write_text("mine")
    (tmp_path / "link.npz").symlink_to(tmp_path / "nowhere")
    for name in ("x.npz", "link.npz"):
        with pytest.raises(BadInput, match="already there"):
            sample(made["sketch"], tmp_path / name, Wish(5))
    assert (tmp_path / "x.npz").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(BadInput, match="cannot be written"):
        sample(made["sketch"], tmp_path / "nowhere" / "x.npz", Wish(5))


def test_a_file_that_appears_meanwhile_stays(made, tmp_path, monkeypatch):
    honest = npz.Rows.finish

    def late(self, more):
        (tmp_path / "x.npz").write_text("mine")
        honest(self, more)

    monkeypatch.setattr(npz.Rows, "finish", late)
    with pytest.raises(BadInput, match="exists"):
        sample(made["sketch"], tmp_path / "x.npz", Wish(5))
    assert (tmp_path / "x.npz").read_text() == "mine"
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError(28, "No space left"), BadInput("a")])
@pytest.mark.parametrize("labels", ["drawn", "model"])
def test_half_a_file_is_none(made, tmp_path, monkeypatch, fault, labels):
    monkeypatch.setattr(sampling, "TOGETHER", 16)
    honest, turns = npz.Rows.add, []

    def failing(self, rows):
        turns.append(rows)
        if len(turns) == 3:
            raise fault
        honest(self, rows)

    monkeypatch.setattr(npz.Rows, "add", failing)
    with pytest.raises((KeyboardInterrupt, BadInput)):
        sample(made["sketch"], tmp_path / "x.npz", Wish(100, labels=labels))
    assert len(turns) == 3
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_swept(made, tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for end in ("", ".y"):
        (tmp_path / f".x.npz.{child.pid}.draft{end}").write_text("half")
    sample(made["sketch"], tmp_path / "x.npz", Wish(5))
    assert os.listdir(tmp_path) == ["x.npz"]


def test_memory_does_not_grow_with_the_number(made, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "TOGETHER", 64)

    def peak(count):
        tracemalloc.start()
        sample(made["sketch"], tmp_path / f"{count}.npz", Wish(count))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(64)
    few, many = peak(256), peak(8192)
    grown = (tmp_path / "8192.npz").stat().st_size
    assert grown > 1 << 20
    assert many - few < grown / 8


def test_large_records_are_drawn_one_by_one(made, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "NUMBERS_TOGETHER", 40)
    told, arrays = drawn(made["sketch"], tmp_path / "x.npz", 7)
    assert (told["drawn"], len(arrays["x"])) == (7, 7)


# -- the command ----------------------------------------------------------------------------------


def invoked(*words):
    app = typer.Typer()
    app.command()(command.sample)
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None, done.exception
    return done.stdout


def test_the_command(made, tmp_path):
    said = invoked(made["sketch"], "-n", 40, "-o", tmp_path / "a.npz")
    assert "40 samples, 6 x 6, float32; drawn from sketch" in said
    assert "classes, as drawn for: <b>:" in said
    words = ("-n", 40, "-o", tmp_path / "b.npz", "--labels", "model", "--agreeing", "--json")
    told = json.loads(invoked(made["sketch"], *words, "--only-class", "two", "--seed", 5))
    assert told["classes"] == {"<b>": 0, "two": 40, "three": 0}
    assert told["labels"] == "model"
    assert "no classes" in invoked(made["unconditional"], "-n", 4, "-o", tmp_path / "c.npz")
    assert "Example: stillroom sample" in invoked("--help")


def test_what_goes_wrong_has_an_exit_code(made, tmp_path, capsys):
    words = ["-n", "5", "-o", str(tmp_path / "x.npz")]
    assert run(["sample", str(made["nothing"]), *words]) == 2
    assert "what to do: release with a [sketch]" in capsys.readouterr().err
    folder = Path(shutil.copytree(made["sketch"], tmp_path / "bundle"))
    (folder / "generator.safetensors").write_bytes(b"")
    assert run(["sample", str(folder), *words]) == 4
    assert run(["sample", str(made["sketch"]), *words]) == 0
    assert run(["sample", str(made["sketch"]), *words]) == 2


HEAVY = ("torch", "sklearn", "safetensors", "numba", "joblib", "opacus", "PIL", "onnxscript")
RUNS = ("onnx", "onnxruntime")


@pytest.mark.parametrize(
    ("name", "more", "absent"),
    [
        ("sketch", [], (*HEAVY, *RUNS)),
        ("sketch", ["--labels", "model"], HEAVY),
        ("sketch", ["--labels", "model", "--varied"], HEAVY),
        ("network", ["--agreeing"], HEAVY),
    ],
)
def test_sampling_needs_no_training_package(made, tmp_path, name, more, absent):
    poison = tmp_path / "poison"
    poison.mkdir()
    for package in absent:
        (poison / f"{package}.py").write_text(f"raise SystemExit('{package} was imported')\n")
    source = Path(stillroom.__file__).parents[1]
    words = ["sample", str(made[name]), "-n", "20", "-o", str(tmp_path / "x.npz"), *more]
    done = subprocess.run(
        [sys.executable, "-c", f"from stillroom.cli import run; raise SystemExit(run({words!r}))"],
        env={**os.environ, "PYTHONPATH": f"{poison}{os.pathsep}{source}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.npz").exists()
