"""Releases with a sketch: directions and students from sanitised pictures, paid for once."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from methods.pictures import (
    BUDGET,
    SCATTERED,
    SKETCH,
    Cut,
    charged,
    recipe_in,
)
from stillroom.data.store import save
from stillroom.errors import BadInput
from stillroom.features import feature_map
from stillroom.features.feature_map import FeatureMap
from stillroom.gate import Budget, Ledger
from stillroom.gate.accounting import price as price_of
from stillroom.gate.ledger import verify
from stillroom.methods.registry import read
from stillroom.pipeline import run
from stillroom.pipeline.pricing import price
from stillroom.pipeline.release import load_parts_of, release
from stillroom.release import verify_bundle
from stillroom.sources import Progress
from stillroom.vocabulary import RECORD

STUDENT = '[student]\nmodel = "own_networks:tiny"\nsamples = 200\nepochs = 1\n'


def test_scattering_over_directions_of_the_sketch(tmp_path, monkeypatch):
    recipe = recipe_in(tmp_path, features=SCATTERED, more=SKETCH, records=1200)
    planned = []

    def noted(*given, **named):
        planned.append(price(*given, **named))
        return planned[-1]

    monkeypatch.setattr(run, "price", noted)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert 0.99 < planned[0].epsilon <= 1
    assert made["headline"]["epsilon"] == pytest.approx(planned[0].epsilon, abs=1e-9)
    # Twelve sums, and means, moment, one step of Lloyd's and covariances.
    assert charged(tmp_path) == (1, 16)
    assert [
        wish["mechanism"]["mechanism"] for wish in made["parties"][0]["blocks"][0]["wishes"]
    ] == ["gaussian-sum"] * 5
    assert "samples of the sketch" in made["public_knowledge"][1]
    # Four trainings gave 76 % on average and 3 points of spread.
    assert made["sections"]["evaluation"]["accuracy"] > 0.5
    assert verify_bundle(tmp_path / "out")["drawn"] == 16
    verify(Ledger.open(tmp_path / "ledger.sqlite"))
    assert (tmp_path / "out" / "card.html").exists()


def test_a_student_of_the_sketch(tmp_path, networks, quick):
    student = STUDENT.replace("epochs = 1", "epochs = 3")
    recipe = recipe_in(tmp_path, features='name = "pixels"', more=SKETCH + student, records=500)
    epochs = []
    made = release(
        recipe,
        tmp_path / "out",
        budget=BUDGET,
        progress=Progress(step=lambda step, of: epochs.append(step) if of == 3 else None),
    )
    assert epochs == [1, 2, 3]
    assert "student" in made["artefacts"][0]["about"]
    assert "own_networks:tiny" in made["artefacts"][0]["about"]
    assert "student that saw only samples" in made["public_knowledge"][-1]
    verify_bundle(tmp_path / "out")
    # The student is free: nothing but the training and the sketch was drawn.
    assert charged(tmp_path) == (1, 16)


def test_a_cut_off_run_goes_on_with_the_same_directions(tmp_path, quick, monkeypatch):
    recipe = recipe_in(tmp_path, features=SCATTERED, more=SKETCH, records=500)
    cut = Cut(5, 12)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=Progress(step=cut))
    (directions,) = (tmp_path / "out.run").glob("directions-*.npz")
    kept = directions.read_bytes()
    assert charged(tmp_path) == (1, 4 + 5)

    def again(*given):
        raise AssertionError("the directions were fitted again")

    monkeypatch.setattr(feature_map, "fit_projection", again)
    rest = Cut(None, 12)
    made = release(recipe, tmp_path / "out", progress=Progress(step=rest))
    assert rest.steps == list(range(6, 13))
    assert directions.read_bytes() == kept
    assert charged(tmp_path) == (1, 16)
    assert (made["parties"][0]["blocks"][0]["drawn"], made["parties"][0]["blocks"][0]["lost"]) == (
        16,
        0,
    )
    verify_bundle(tmp_path / "out")
    # What was made depends on the ledger's answers alone: made again, it is the same.
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "out")
    release(recipe, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights
    assert charged(tmp_path) == (1, 16)


def test_a_sketch_that_was_cut_off_goes_on(tmp_path, quick, monkeypatch):
    recipe = recipe_in(tmp_path, features='name = "pixels"', more=SKETCH)
    honest, left = FeatureMap.fit, [1]

    def cut(self, drawn, kept):
        if left.pop():
            raise KeyboardInterrupt
        honest(self, drawn, kept)

    monkeypatch.setattr(FeatureMap, "fit", cut)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert charged(tmp_path) == (1, 4)
    left.append(0)
    release(recipe, tmp_path / "out")
    assert charged(tmp_path) == (1, 16)


def test_stopping_where_the_budget_ends_keeps_the_sketch(tmp_path, quick):
    recipe = recipe_in(tmp_path, features='name = "pixels"', more=SKETCH)
    lines = [line for wish, n in price(read(recipe)[0]).wishes.values() for line in wish.lines(n)]
    enough = price_of(lines, RECORD).epsilon(1e-5)
    stop = recipe_in(
        tmp_path, features='name = "pixels"', privacy='on_exhausted = "stop"', more=SKETCH
    )
    steps = []
    made = release(
        stop,
        tmp_path / "out",
        budget=Budget(0.93 * enough, 1e-5),
        progress=Progress(step=lambda step, of: steps.append((step, of))),
    )
    (block,) = made["parties"][0]["blocks"]
    counts = [wish["reserved"] for wish in block["wishes"]]
    assert 1 <= counts[0] < 12
    assert counts[1:] == [1, 1, 1, 1]
    assert steps[-1] == (counts[0], counts[0])
    assert block["drawn"] == block["reserved"] == sum(counts)
    assert made["headline"]["epsilon"] <= made["parties"][0]["data_set"]["totals"][0]["budget"]
    verify_bundle(tmp_path / "out")


def test_a_sketch_dearer_than_the_recipe(tmp_path):
    recipe = recipe_in(tmp_path, more=SKETCH.replace("1/5", "1"))
    with pytest.raises(BadInput, match="sketch alone") as caught:
        price(read(recipe)[0])
    assert "sketch.mu" in caught.value.where


@pytest.mark.parametrize(
    ("features", "more", "says"),
    [
        (SCATTERED.replace("20", "1297"), SKETCH.replace("150", "2000"), "of 1296 features"),
        (SCATTERED.replace("20", "150"), SKETCH, "of 150 pictures"),
        ('name = "no_such_package:net"\nsize = 16', "", "cannot be made"),
        (SCATTERED.replace("scattering", "no_such_package:net") + "\nsize = 16", SKETCH, "made"),
        ('name = "pixels"', SKETCH + STUDENT.replace("tiny", "wide"), r"not \(2, 10\)"),
        ('name = "pixels"', SKETCH + STUDENT.replace("tiny", "none"), "no callable"),
        ('name = "pixels"', SKETCH.replace("directions = 8", "directions = 65"), "directions"),
    ],
)
def test_what_cannot_work_costs_nothing(tmp_path, networks, quick, features, more, says):
    recipe = recipe_in(tmp_path, features=features, more=more)
    with pytest.raises(BadInput, match=says) as caught:
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert caught.value.exit_code == 2
    assert charged(tmp_path) == (0, 0)


def test_directions_of_public_pictures(tmp_path, quick):
    recipe = recipe_in(
        tmp_path,
        features=SCATTERED.replace('"sketch"', '"open"'),
        training="steps = 2",
        records=500,
    )
    parts = load_parts_of(read(recipe)[0], tmp_path)
    sensitive = parts.sensitive.open_sealed()
    for part in (sensitive, parts.test):
        save(part.select(np.arange(30)), "open", replace=True)
        with pytest.raises(BadInput, match="overlap") as caught:
            release(recipe, tmp_path / "out", budget=BUDGET)
        assert caught.value.where == "features.fitted_on"
    assert charged(tmp_path) == (0, 0)
    save(_negatives(sensitive, 30), "open", replace=True)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert "the public data set open" in made["public_knowledge"][1]


def _negatives(data, count):
    """Pictures that nobody has."""
    part = data.select(np.arange(count))
    return type(part)(16 - part.x, part.y, part.classes)


def test_directions_of_pictures_of_another_shape(tmp_path, quick):
    recipe = recipe_in(tmp_path, features=SCATTERED.replace('"sketch"', '"digits"'))
    with pytest.raises(BadInput, match=r"\(8, 8\)"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert charged(tmp_path) == (0, 0)
