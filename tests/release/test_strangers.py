"""A stranger verifies without the training packages and predicts without this package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

import stillroom
from release.making import linear, make
from stillroom.cli import keys, predict, verify
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Budget
from stillroom.pipeline.release import release
from stillroom.release import write_bundle
from stillroom.release.predict import predict as use

RECIPE = """
[data]
source = "digits"
test_is_public = true
declared_size = 1440
[training]
steps = 8
[privacy]
epsilon = 1
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    model = linear("edges", (8, 8), 10)
    made = make(folder, model=model, classes=tuple("0123456789"), evaluation=None)
    write_bundle(made, folder / "bundle")
    return model, folder / "bundle"


@pytest.fixture
def bundle(made):
    return made[1]


def run(code: str, folder: Path, poison: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    home = folder / "poison"
    home.mkdir()
    for name in poison:
        (home / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    source = Path(stillroom.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{source}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A bundle with a recipe that is really its own."""
    folder = tmp_path_factory.mktemp("released")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLROOM_HOME", str(folder / "home"))
        (folder / "recipe.toml").write_text(RECIPE)
        release(folder / "recipe.toml", folder / "bundle", budget=Budget(4.0, 1e-5))
    return folder / "bundle"


TRAINING = (
    *("torch", "onnx", "onnxruntime", "safetensors", "sklearn", "numba", "joblib", "opacus", "PIL"),
)


def test_verify_needs_no_training_package(released, tmp_path):
    code = f"from stillroom.cli import run; raise SystemExit(run(['verify', {str(released)!r}]))"
    done = run(code, tmp_path, TRAINING)
    assert done.returncode == 0, done.stderr
    assert "verifies: direct" in done.stdout


def test_a_new_card_needs_no_training_package(released, tmp_path):
    words = ["card", str(released), "-o", str(tmp_path / "card.html")]
    done = run(
        f"from stillroom.cli import run; raise SystemExit(run({words!r}))", tmp_path, TRAINING
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "card.html").read_bytes() == (released / "card.html").read_bytes()


def test_a_bundle_predicts_without_stillroom(made, bundle, tmp_path):
    x = (np.arange(5 * 64).reshape(5, 8, 8) % 17).astype(np.float32)
    shutil.copytree(bundle, tmp_path / "copy")
    np.save(tmp_path / "x.npy", x)
    code = (
        "import numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession('copy/model.onnx')\n"
        "logits, label = session.run(['logits', 'label'], {'x': numpy.load('x.npy')})\n"
        "numpy.save('logits.npy', logits); numpy.save('label.npy', label)"
    )
    done = run(code, tmp_path, ("stillroom", "onnx", "safetensors", "torch", "sklearn"))
    assert done.returncode == 0, done.stderr
    labels, logits = use(bundle, x)
    assert np.array_equal(np.load(tmp_path / "label.npy"), labels)
    assert np.allclose(np.load(tmp_path / "logits.npy"), logits, atol=1e-5)
    assert np.allclose(made[0].logits(x), logits, atol=1e-4)


def test_predict_refuses_what_it_cannot_use(bundle, tmp_path):
    with pytest.raises(BadInput, match="shape"):
        use(bundle, np.zeros((2, 7, 7)))
    with pytest.raises(BadInput, match="finite"):
        use(bundle, np.full((2, 8, 8), np.nan))
    with pytest.raises(BadInput, match="no record"):
        use(bundle, np.zeros((0, 8, 8)))
    changed = Path(shutil.copytree(bundle, tmp_path / "changed"))
    (changed / "model.onnx").write_bytes(b"another model")
    with pytest.raises(DoesNotVerify, match=r"model\.onnx"):
        use(changed, np.zeros((2, 8, 8)))


def command(function, *words):
    app = typer.Typer()
    app.command()(function)
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None, done.exception
    return done.stdout


def test_the_verify_command(released):
    said = command(verify.verify, released)
    assert "verifies: direct" in said
    assert "the releaser's word, which no bundle proves: what the ledger reserved" in said
    assert "whoever rewrites all its files passes" in said
    assert json.loads(command(verify.verify, released, "--json"))["verifies"]
    assert "Example" in command(verify.verify, "--help")


def test_the_predict_command(bundle, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 8, 8)))
    lines = command(predict.predict, bundle, tmp_path / "x.npy").splitlines()
    labels = [line.split("\t")[1] for line in lines]
    assert len(labels) == 3
    answer = json.loads(command(predict.predict, bundle, tmp_path / "x.npy", "--json"))
    assert answer["labels"] == labels
    assert len(command(predict.predict, bundle, "digits").splitlines()) == 1797
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 8, 8)), y=np.zeros(4, dtype=int))
    assert len(command(predict.predict, bundle, tmp_path / "x.npz").splitlines()) == 4


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3)], ids=str)
def test_a_folder_of_pictures_is_read_with_the_models_classes(tmp_path, shape):
    """It holds only two of the model's three classes, and that is no matter."""
    model = linear("edges", shape)
    made = make(tmp_path, model=model, classes=("apple", "pear", "plum"))
    write_bundle(made, tmp_path / "bundle")
    pictures = (np.arange(4 * np.prod(shape)).reshape(4, *shape) % 251).astype(np.uint8)
    for place, name in enumerate(["pear", "plum", "plum", "pear"]):
        (tmp_path / "fruit" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pictures[place]).save(tmp_path / "fruit" / name / f"{place}.png")
    answer = json.loads(command(predict.predict, tmp_path / "bundle", tmp_path / "fruit", "--json"))
    expected = model.logits(pictures[[0, 3, 1, 2]])
    assert np.allclose(np.sort(answer["logits"], axis=0), np.sort(expected, axis=0), atol=1e-4)
    assert set(answer["labels"]) <= {"apple", "pear", "plum"}


def test_a_name_comes_before_a_folder_of_that_name(bundle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert len(command(predict.predict, bundle, "digits").splitlines()) == 1797


def test_the_keys_command(tmp_path):
    done = CliRunner().invoke(keys.app, ["make", str(tmp_path / "release.key")])
    assert done.exit_code == 0
    assert (tmp_path / "release.key.pub").is_file()
