"""PG, PGP and PGC as published: what is drawn, what leaves, what is cut off and what it says."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from quick_onnx import use_quick_exporter
from stillroom.errors import BadInput
from stillroom.gate import Budget, Ledger
from stillroom.methods.pg import published, requests
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify

WEIGHTS = 650
RECIPE = """
method = "pg"
source = "plain"
mode = "as-published"
purpose = "benchmark"
[data]
source = "digits"
test = "1/4"
test_is_public = true
declared_size = 1350
[engine]
kind = "serial"
[features]
full_scale = 16
[collection]
model = "linear"
parameters = 650
models = {models}
shard_cap = 1400
epochs = 6
batch = 64
learning_rate = 0.02
[pg]
publisher = "{publisher}"
[published]
{published}
[privacy]
epsilon = 8
"""
BUDGET = Budget(1e12, 1e-5)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    use_quick_exporter(monkeypatch)
    for room in (requests, published):
        monkeypatch.setattr(room, "TOGETHER", 200)


def recipe_in(folder, text="", publisher="pg", models=6):
    file = folder / "recipe.toml"
    file.write_text(RECIPE.format(published=text, publisher=publisher, models=models))
    return file


def released(folder, text="", publisher="pg", **more):
    made = release(recipe_in(folder, text, publisher, **more), folder / "out", budget=BUDGET)
    assert verify(folder / "out")["recipe"] == "comes to what the certificate says"
    return made


def rows(folder):
    with closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
        blocks = list(ledger.store.rows("kind = 'block'"))
        drawn = list(ledger.store.rows("kind = 'draw'"))
    names = [wish["name"] for wish in blocks[0].body["wishes"]]
    found = dict.fromkeys(names, 0)
    for row in drawn:
        found[names[row.body["wish"]]] += row.body["count"]
    return found


def accuracy(made):
    return made["sections"]["evaluation"]["accuracy"]


SOUND = 'grid = "public"\nradius = 1.0\nsensitivity = "true"\n'


@pytest.mark.parametrize(
    ("publisher", "text", "least"),
    [
        ("pg", "epsilon = 10", 0.7),
        ("pg", SOUND + "epsilon = 10\n", 0.5),
        ("pgp", "epsilon = 10\nresidual_epsilon = 20", 0.5),
        ("pgc", "epsilon = 10\nresidual_bits = 6\ncodebook_bits = 6", 0.5),
    ],
)
def test_every_weight_is_drawn_and_both_figures_are_told(tmp_path, publisher, text, least):
    made = released(tmp_path, text, publisher)
    assert accuracy(made) > least
    (one,) = made["sections"]["controls"]["models"]
    assert (one["name"], one["private"]) == ("one model", True)
    claimed = {"pg": 10, "pgp": 21, "pgc": 10}[publisher]
    assert made["sections"]["published"]["epsilon"] == claimed
    assert "does not hold" in made["sections"]["published"]["status"]
    drawn = rows(tmp_path)
    selected = 130 if publisher == "pgp" else 0
    assert drawn["parameters"] == WEIGHTS - selected
    sound = "public" in text
    assert ("extremes" in drawn) != sound
    epsilon = made["headline"]["epsilon"]
    assert (epsilon == "infinite") != sound
    if publisher == "pgp":
        assert (drawn["clusters"], drawn["residuals"]) == (5, 1)
    assert ("compact" in [a["name"] for a in made["artefacts"]]) == (publisher == "pgc")


def test_a_public_test_may_reject_and_every_try_is_charged(tmp_path):
    made = released(tmp_path, SOUND + 'epsilon = "1/100"\nthreshold = 0.99\ntries = 3\n')
    assert made["facts"]["tries"] == 4
    assert any("None of 3 tries" in warning for warning in made["warnings"])
    assert rows(tmp_path)["parameters"] == 3 * WEIGHTS
    assert made["headline"]["epsilon"] > 1


def test_a_passed_test_ends_the_tries(tmp_path):
    made = released(tmp_path, SOUND + "epsilon = 10\nthreshold = 0.05\ntries = 3\n")
    assert made["facts"]["tries"] == 1
    assert rows(tmp_path)["parameters"] == WEIGHTS
    assert not any("tries" in warning for warning in made["warnings"])


@pytest.mark.parametrize("publisher", ["pg", "pgp"])
def test_a_cut_off_run_goes_on_with_the_same_models(tmp_path, monkeypatch, publisher):
    file = recipe_in(tmp_path, "epsilon = 10", publisher)
    honest, seen = published.Publishing._drawn, []

    def dying(self, number, places, within):
        seen.append(int(places[0]))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return honest(self, number, places, within)

    monkeypatch.setattr(published.Publishing, "_drawn", dying)
    with pytest.raises(KeyboardInterrupt):
        release(file, tmp_path / "out", budget=BUDGET)
    before = rows(tmp_path)["parameters"]
    made = release(file, tmp_path / "out", budget=BUDGET)
    verify(tmp_path / "out")
    assert 0 < before < rows(tmp_path)["parameters"] == WEIGHTS - (130 if publisher == "pgp" else 0)
    assert accuracy(made) > 0.4


def test_a_collection_is_trained_once_for_many_budgets(tmp_path, monkeypatch):
    from stillroom.private import parameter_collection

    trained, honest = [], parameter_collection.train_unit
    monkeypatch.setattr(
        parameter_collection,
        "train_unit",
        lambda *given: trained.append(1) or honest(*given),
    )
    for name, epsilon in (("a", 1), ("b", 10)):
        (tmp_path / name).mkdir()
        released(tmp_path / name, f"epsilon = {epsilon}")
    assert len(trained) == 6


def test_the_number_of_weights_is_checked_before_anything_is_trained(tmp_path):
    file = recipe_in(tmp_path)
    file.write_text(file.read_text().replace("parameters = 650", "parameters = 649"))
    with pytest.raises(BadInput, match="has 650 weights, and the recipe says 649"):
        release(file, tmp_path / "out", budget=BUDGET)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_full_disk_is_told_before_anything_is_paid_for(tmp_path, monkeypatch):
    import errno
    import os

    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(BadInput, match="for want of room"):
        release(recipe_in(tmp_path), tmp_path / "out", budget=BUDGET)
    with closing(Ledger.open(tmp_path / "ledger.sqlite")) as ledger:
        assert not list(ledger.store.rows("kind = 'block'"))


def test_generated_weights_stand_between_the_models(tmp_path):
    """On an observed grid every weight lies between the extremes of its slice."""
    from stillroom.parameters import ParameterGrid
    from stillroom.private.parameter_slices import UNITS, ParameterSlices

    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(5, 30)).astype(np.float32)
    slices, grid = ParameterSlices(matrix, 1), ParameterGrid(1.0, 9, 0.3)
    within = slices.extremes(slice(0, 30), 60).open_bounded().reshape(-1, 2) / UNITS
    entries = slices.entries(slice(0, 30), grid, within).open_bounded()
    low, high = within.T
    values = (low + high) / 2 + grid.values[entries].T * (high - low) / 2
    assert np.abs(values - matrix).max() <= (high - low).max() / 16 + 1e-6
