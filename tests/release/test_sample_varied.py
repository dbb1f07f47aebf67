"""Varied pictures of a bundle: made of what its generator draws, labelled by its classifier."""

from __future__ import annotations

import json

import numpy as np
import pytest

from release.generators import bundles, network, sketch
from stillroom.cli import run
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.release import sample as sampling
from stillroom.release.predict import predict
from stillroom.release.sample import Wish, sample


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Bundles by what they draw from."""
    generators = {
        "sketch": sketch(full_scale=255.0),
        "colour": network((6, 6, 3), 4.0),
        "unconditional": network(conditional=False),
        "rows": network((4,), 1.0, model="mlp"),
    }
    return bundles(tmp_path_factory, generators)


def varied(bundle, path, count=60, seed=0):
    told = sample(bundle, path, Wish(count, seed, "model", varied=True))
    with np.load(path) as arrays:
        return told, dict(arrays)


@pytest.mark.parametrize("name", ["sketch", "colour", "unconditional"])
def test_the_model_labels_pictures_in_range(made, tmp_path, name):
    told, arrays = varied(made[name], tmp_path / "a.npz")
    labels, logits = predict(made[name], arrays["x"])
    assert np.array_equal(arrays["y"], labels)
    assert np.allclose(arrays["scores"], logits, atol=1e-5)
    assert arrays["x"].min() >= 0
    assert arrays["x"].max() <= {"sketch": 255, "colour": 4}.get(name, 16)
    assert sum(told["classes"].values()) == 60
    assert len(np.unique(arrays["x"].reshape(60, -1), axis=0)) > 50


def test_the_seed_decides_and_a_longer_file_begins_with_the_shorter(made, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "TOGETHER", 16)
    _, few = varied(made["sketch"], tmp_path / "few", 20)
    _, many = varied(made["sketch"], tmp_path / "many", 50)
    _, other = varied(made["sketch"], tmp_path / "other", 20, seed=1)
    assert np.array_equal(few["x"], many["x"][:20])
    assert not np.array_equal(few["x"], other["x"])


def test_large_pictures_are_made_one_by_one(made, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "NUMBERS_TOGETHER", 1)
    told, arrays = varied(made["sketch"], tmp_path / "a.npz", 5)
    assert (told["drawn"], len(arrays["x"])) == (5, 5)


def test_they_are_more_than_the_sketch_draws(made, tmp_path):
    """Random shapes have edges that a few directions of a sketch cannot have."""
    _, lessons = varied(made["sketch"], tmp_path / "a.npz", 1000)
    sample(made["sketch"], tmp_path / "b.npz", Wish(1000))
    with np.load(tmp_path / "b.npz") as arrays:
        plain = arrays["x"]

    def beyond(pictures):
        """The share of the variance outside the first eight of the sketch's own directions."""
        rows, own = (each.reshape(len(each), -1).astype(float) for each in (pictures, plain))
        _, _, axes = np.linalg.svd(own - own.mean(axis=0), full_matrices=False)
        rows = rows - rows.mean(axis=0)
        return 1 - ((rows @ axes[:8].T) ** 2).sum() / (rows**2).sum()

    assert beyond(lessons["x"]) > 2 * beyond(plain)


@pytest.mark.parametrize(
    "wish",
    [{}, {"labels": "drawn"}]
    + [{"labels": "model", **more} for more in ({"agreeing": True}, {"only": ("two",)})],
)
def test_their_classes_are_the_models(wish):
    with pytest.raises(BadInput, match="drawn for no class"):
        Wish(5, varied=True, **wish)


def test_only_pictures_can_be_varied(made, tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="shape 4 cannot be varied"):
        varied(made["rows"], tmp_path / "a.npz")
    monkeypatch.setattr(sampling, "MOST_PIXELS", 35)
    with pytest.raises(BadInput, match="6 x 6 cannot be varied"):
        varied(made["sketch"], tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_a_strangers_sketch_of_no_numbers(made, tmp_path, monkeypatch):
    from stillroom.release.drawing import GeneratorBundle

    def drawer(self, among, stack):
        return lambda seed, count: (np.full((count, 6, 6), np.nan, np.float32), None)

    monkeypatch.setattr(GeneratorBundle, "drawer", drawer)
    with pytest.raises(DoesNotVerify, match="not finite"):
        varied(made["sketch"], tmp_path / "a.npz")


def test_the_command(made, tmp_path, capsys):
    words = ["sample", str(made["sketch"]), "-n", "40", "-o", str(tmp_path / "a.npz"), "--varied"]
    assert run(words) == 2
    assert "--labels model" in capsys.readouterr().err
    assert run([*words, "--labels", "model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == "model"
