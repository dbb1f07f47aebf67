"""Releases of whole networks: from its recipe to a bundle, and what may go wrong on the way."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from methods.pictures import BUDGET, NETWORK, Cut, charged, recipe_in
from stillroom.data import Dataset
from stillroom.data.store import save
from stillroom.errors import BadInput
from stillroom.gate import Budget, Ledger
from stillroom.gate.ledger import verify
from stillroom.methods.registry import read
from stillroom.pipeline.release import load_parts_of, release
from stillroom.release import verify_bundle
from stillroom.release.predict import predict
from stillroom.sources import Progress
from stillroom.vocabulary import Pair


def network(folder, *, steps=4, more="", **parts):
    return recipe_in(folder, training=NETWORK.format(steps=steps) + "\n" + more, **parts)


def test_a_network_from_recipe_to_bundle(tmp_path, networks):
    recipe = network(
        tmp_path, steps=25, more="ema = 0.9\nviews = 2\nshift = 1", epsilon=1.5, records=900
    )
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert 1.49 < made["headline"]["epsilon"] <= 1.5
    assert made["headline"]["for"] == "record/add-or-remove"
    assert "assumed" in made["assumptions"]["real arithmetic"]
    assert made["public_knowledge"] == ["random first weights"]
    assert made["artefacts"][0]["about"] == "network `own_networks:tiny`"
    assert made["artefacts"][0]["parameters"] == 65 * 12 + 13 * 10
    # Six trainings gave 76 % on average and 6 points of spread.
    assert made["sections"]["evaluation"]["accuracy"] > 0.25
    report = verify_bundle(tmp_path / "out")
    assert report["drawn"] == report["reserved"] == 25
    verify(Ledger.open(tmp_path / "ledger.sqlite"))
    # Whoever gets the bundle gives it raw records, and it does as well as the certificate says.
    test = load_parts_of(read(recipe)[0], tmp_path).test
    labels, _ = predict(tmp_path / "out", test.x)
    accuracy = float((labels == test.y).mean())
    assert accuracy == pytest.approx(made["sections"]["evaluation"]["accuracy"], abs=0.02)


@pytest.mark.usefixtures("quick_exporter")
def test_a_network_of_the_zoo_and_ghost_clipping(tmp_path, quick):
    training = 'model = "student-10k"\nclip = 1\nghost = true\nsteps = 1\nlearning_rate = 1.0'
    recipe = recipe_in(tmp_path, training=training, records=200)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert made["artefacts"][0]["about"] == "network `student-10k`"
    verify_bundle(tmp_path / "out")


@pytest.mark.usefixtures("quick_exporter")
def test_a_cut_off_network_goes_on(tmp_path, networks, quick):
    more = "momentum = 0.5\nema = 0.8\nshift = 1"
    recipe = network(tmp_path, steps=6, more=more, records=200)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=Progress(step=Cut(4, 6)))
    assert charged(tmp_path) == (1, 4)
    rest = Cut(None, 6)
    made = release(recipe, tmp_path / "out", progress=Progress(step=rest))
    assert rest.steps == [5, 6]
    assert (made["parties"][0]["blocks"][0]["drawn"], made["parties"][0]["blocks"][0]["lost"]) == (
        6,
        0,
    )
    assert charged(tmp_path) == (1, 6)
    verify_bundle(tmp_path / "out")
    # Momentum and averages are the answers' own: replayed from the first, they are the same.
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "out")
    release(recipe, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights
    assert charged(tmp_path) == (1, 6)


def diverging(folder, rate):
    """Four layers whose weights are so large after a step that their product is no number."""
    recipe = network(folder, records=200)
    text = recipe.read_text().replace("learning_rate = 2.0", "learning_rate = 1e12")
    recipe.write_text(text.replace("tiny", "steep").replace("rate = 1\n", f"rate = '{rate}'\n", 1))
    return recipe


@pytest.mark.usefixtures("quick_exporter")
def test_weights_that_have_grown_too_large_are_named_with_their_step(tmp_path, networks, quick):
    recipe = diverging(tmp_path, "1")
    for _ in range(2):
        with pytest.raises(BadInput, match="not even a blank record") as caught:
            release(recipe, tmp_path / "out", budget=BUDGET)
        assert caught.value.exit_code == 2
        assert caught.value.where == "step 2"
        assert "learning rate" in caught.value.remedy
        # One step was taken, the next one fell before its draw; the same call draws no more.
        assert charged(tmp_path) == (1, 1)
    verify(Ledger.open(tmp_path / "ledger.sqlite"))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("quick_exporter")
def test_a_sample_that_was_drawn_stays_charged(tmp_path, networks, quick):
    with pytest.raises(BadInput, match="stays charged") as caught:
        release(diverging(tmp_path, "1/2"), tmp_path / "out", budget=BUDGET)
    assert caught.value.where == "step 2"
    # That step's sample was drawn, and it is gone (L2).
    assert charged(tmp_path) == (1, 2)


ODD = """
import torch
from torch import nn
from torch.nn import functional as F

class Masked(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.first, self.last = nn.Linear(256, 8), nn.Linear(8, classes)

    def forward(self, x):
        return self.last(F.dropout(self.first(x.flatten(1)), 0.1))

class Tied(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.first, self.last = nn.Linear(256, 16), nn.Linear(256, classes)

    def forward(self, x):
        return self.last(F.linear(torch.tanh(self.first(x.flatten(1))), self.first.weight.T))

class Squared(nn.Linear):
    def forward(self, x):
        return super().forward(x.flatten(1) ** 2)

def squared(shape, classes):
    return Squared(256, classes)

def masked(shape, classes):
    return Masked(classes)

def tied(shape, classes):
    return Tied(classes)
"""


@pytest.mark.usefixtures("quick_exporter")
def test_a_record_that_cannot_be_clipped_loses_no_draw(tmp_path, networks, quick):
    """Whether the draw is lost would tell whether the record was in the sample (K10)."""
    training = 'model = "odd_networks:squared"\nclip = 1\nlearning_rate = 0.1\nsteps = 8'
    (tmp_path / "modules" / "odd_networks.py").write_text(ODD)
    recipe = recipe_in(tmp_path, training=training, records=200)
    recipe.write_text(recipe.read_text().replace("rate = 1\n", "rate = '1/2'\n", 1))
    with np.load(tmp_path / "scans.npz") as file:
        x, y = file["x"].astype(np.float32), file["y"]
    x[:] = np.where(np.arange(len(x)) % 4 == 1, 1e37, x.T).T
    np.savez(tmp_path / "scans.npz", x=x, y=y)
    release(recipe, tmp_path / "out", budget=BUDGET)
    assert charged(tmp_path) == (1, 8)
    assert verify_bundle(tmp_path / "out")["drawn"] == 8


@pytest.mark.usefixtures("quick_exporter")
@pytest.mark.parametrize("ghost", ["true", "false"])
@pytest.mark.parametrize(
    ("model", "says"), [("masked", "draws random numbers"), ("tied", "not those of the loss")]
)
def test_gradients_that_are_not_the_records_own_cost_nothing(
    tmp_path, networks, quick, model, says, ghost
):
    (tmp_path / "modules" / "odd_networks.py").write_text(ODD)
    training = f'model = "odd_networks:{model}"\nclip = 1\nghost = {ghost}'
    recipe = recipe_in(tmp_path, training=training, records=100)
    with pytest.raises(BadInput, match=says) as caught:
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert caught.value.exit_code == 2
    assert charged(tmp_path) == (0, 0)


@pytest.mark.usefixtures("quick_exporter")
def test_public_records_beside_the_sensitive_ones(tmp_path, networks, quick):
    recipe = network(tmp_path, more='public_source = "open"\npublic_share = 0.9', records=300)
    parts = load_parts_of(read(recipe)[0], tmp_path)
    sensitive = parts.sensitive.open_sealed()
    some = np.arange(30)
    for part in (sensitive, parts.test):
        save(part.select(some), "open", replace=True)
        with pytest.raises(BadInput, match="overlap") as caught:
            release(recipe, tmp_path / "out", budget=BUDGET)
        assert caught.value.where == "training.public_source"
    part = sensitive.select(some)
    save(Dataset(part.x[:, :8, :8] + 1, part.y, part.classes), "open", replace=True)
    with pytest.raises(BadInput, match=r"has records of shape \(8, 8\)"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    save(Dataset(part.x + 1, part.y, [f"other {i}" for i in range(10)]), "open", replace=True)
    with pytest.raises(BadInput, match="other classes"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert charged(tmp_path) == (0, 0)
    # Sixteen shades lighter: other records of the same classes.
    save(Dataset(part.x + 1, part.y, part.classes), "open", replace=True)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert "labelled public records of open" in made["public_knowledge"][1]
    verify_bundle(tmp_path / "out")


@pytest.mark.usefixtures("quick_exporter")
def test_public_weights_to_start_from(tmp_path, networks, quick):
    from safetensors.torch import save_file

    from stillroom.models import build

    recipe = network(tmp_path, steps=1, more='weights = "start.safetensors"', records=200)
    with pytest.raises(BadInput, match="cannot be read"):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert charged(tmp_path) == (0, 0)
    start = build("own_networks:tiny", (1, 16, 16), 10, seed=9).state_dict()
    save_file(start, tmp_path / "start.safetensors")
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    assert made["public_knowledge"] == ["the public weights start.safetensors"]


@pytest.mark.usefixtures("quick_exporter")
@pytest.mark.parametrize(
    ("training", "says"),
    [
        ('model = "own_networks:wide"', r"not \(2, 10\)"),
        ('model = "own_networks:normed"', "mixes records"),
        ('model = "own_networks:ordered"', "an operator that is not on the list"),
        ('model = "own_networks:none"', "no callable"),
        ('model = "no_such_package:net"', "cannot be imported"),
        ('model = "resnet-9000"', "no model"),
        ('model = "own_networks:tiny"\nviews = 2', "several views need an augmentation"),
        ('model = "own_networks:tiny"\nviews = 2\nshift = 1\nghost = true', "several views"),
        ('model = "own_networks:tiny"\nshift = 16', "shift smaller"),
        ('model = "own_networks:tiny"\npublic_source = "nowhere"', "nowhere"),
        ('model = "own_networks:tiny"\nweights = "none.safetensors"', "cannot be read"),
    ],
)
def test_what_cannot_work_costs_nothing(tmp_path, networks, quick, training, says):
    recipe = recipe_in(tmp_path, training=training, records=100)
    with pytest.raises(BadInput, match=says) as caught:
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert caught.value.exit_code == 2
    assert charged(tmp_path) == (0, 0)


@pytest.mark.usefixtures("quick_exporter")
def test_persons_are_protected_by_networks(tmp_path):
    recipe = recipe_in(
        tmp_path, training=NETWORK.format(steps=2).replace("own_networks:tiny", "mlp"), records=100
    )
    with np.load(tmp_path / "scans.npz") as found:
        arrays = dict(found)
    arrays["persons"] = np.array([f"p{i // 2}" for i in range(len(arrays["y"]))])
    np.savez(tmp_path / "scans.npz", **arrays)
    unit = "classes = 10\nunit = 'person'\nmax_records_per_person = 2"
    recipe.write_text(recipe.read_text().replace("classes = 10", unit))
    budget = Budget(20, 1e-5, Pair.parse("person/add-or-remove"))
    certificate = release(recipe, tmp_path / "out", budget=budget)
    assert certificate["headline"]["for"] == "person/add-or-remove"
    assert "every person's summed gradient" in certificate["assumptions"]["clipped gradients"]
    assert verify_bundle(tmp_path / "out")["verifies"]
