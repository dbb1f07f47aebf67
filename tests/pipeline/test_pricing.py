"""Prices: known from the recipe alone, with all parts of a release in them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from dp_accounting import get_epsilon_gaussian

from methods.pictures import NETWORK, SCATTERED, SKETCH, recipe_in
from stillroom.cli.release import show_cost
from stillroom.data.dataset import class_names
from stillroom.errors import BadInput
from stillroom.gate.accounting import price as price_of
from stillroom.methods.registry import parse, read
from stillroom.pipeline.pricing import EVALUATION, price
from stillroom.private import Clip
from stillroom.private.network_clip import NetworkClip
from stillroom.sources import Facts
from stillroom.vocabulary import RECORD, Pair


def facts_of(classes=10, shape=(16, 16), width=None):
    return Facts(shape, class_names(classes), width=width)


def recipe_of(folder, **parts):
    file = recipe_in(folder, records=50, **parts)
    return file, read(file)[0]


def test_a_sketch_is_in_the_price(tmp_path):
    _, recipe = recipe_of(tmp_path, features=SCATTERED, more=SKETCH)
    cost = price(recipe)
    assert 0.99 < cost.epsilon <= 1
    lines = [line for mechanism, count in cost.wishes.values() for line in mechanism.lines(count)]
    assert price_of(lines, RECORD).epsilon(1e-5) == cost.epsilon
    assert [count for _, count in cost.wishes.values()] == [12, 1, 1, 1, 1]
    # The twin that forgets to pay for the sketch, or for the training, shows in the price.
    for part in (lines[:1], lines[1:]):
        assert price_of(part, RECORD).epsilon(1e-5) < cost.epsilon - 0.05


def test_a_charged_evaluation_comes_last(tmp_path, quick):
    file, _ = recipe_of(tmp_path, more=SKETCH)
    file.write_text(file.read_text().replace("test_is_public = true\n", ""))
    cost = price(read(file)[0])
    assert [mechanism.name for mechanism, _ in cost.wishes.values()] == ["gaussian-sum"] * 5 + [
        "noisy-counts"
    ]


def test_a_sketch_needs_pictures(tmp_path):
    _, recipe = recipe_of(tmp_path, more=SKETCH)
    for shape in ((64,), (32, 32, 4)):
        with pytest.raises(BadInput, match="a sketch needs pictures"):
            price(recipe, facts_of(shape=shape))
    assert price(recipe, facts_of(shape=(32, 32, 3))).epsilon <= recipe.privacy.epsilon
    basis = recipe.sketch.basis((16, 16))
    assert (recipe.sketch.mu, recipe.features.full_scale) == (Fraction(1, 5), 16.0)
    assert (basis.height, basis.width) == (16, 16)


def test_the_clip_is_that_of_the_model(tmp_path):
    _, linear = recipe_of(tmp_path)
    _, network = recipe_of(tmp_path, training=NETWORK.format(steps=3))
    assert isinstance(linear.training.clipping, Clip)
    assert network.training.clipping == NetworkClip(Fraction(1))
    # A network declares one per cent more than its clip.
    clip = network.training.clipping
    assert network.training.mechanism(10, Fraction(2)).squared_norm > clip.steps**2


OF_THE_ZOO = NETWORK.format(steps=3).replace("own_networks:tiny", "tanh-cnn")


@pytest.mark.parametrize("more", [{"training": OF_THE_ZOO}, {"features": SCATTERED}])
def test_a_dry_run_prints_draws_and_every_phase(tmp_path, quick, capsys, more):
    sketched = {} if "training" in more else {"more": SKETCH}
    file, _ = recipe_of(tmp_path, **more, **sketched)
    (tmp_path / "scans.npz").unlink()  # no record is looked at
    show_cost(file, json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["draws"] == {"gaussian-sum": 16 if sketched else 3}
    assert facts["seconds"] == pytest.approx(sum(facts["phases"].values()), rel=0.1, abs=0.1)
    assert facts["trial_seconds"] > 0
    show_cost(file, json=False)
    shown = capsys.readouterr().out
    assert all(name in shown for name in facts["phases"])
    assert "all of it" in shown


def test_a_dry_run_says_where_time_cannot_be_tried(tmp_path, quick, capsys):
    # A network for pictures of its own size does not fit the size that is assumed.
    file, _ = recipe_of(tmp_path, training=NETWORK.format(steps=3))
    show_cost(file, json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["seconds"] is facts["phases"] is None
    show_cost(file, json=False)
    assert "cannot be tried here" in capsys.readouterr().out


def planned_at(tmp_path, capsys, epsilon, *, json_too=True):
    file = tmp_path / "recipe.toml"
    file.write_text(
        "[data]\nsource = 'digits'\ndeclared_size = 1440\ntest_is_public = true\n"
        f"[training]\nsteps = 1\nrate = 1\n[privacy]\nepsilon = {epsilon}\n"
    )
    show_cost(file, json=json_too)
    return file, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("width", [650, 10**5])
def test_a_dry_run_says_what_it_does_not_know(tmp_path, capsys, width):
    """At 66 the tables' error counts, and it depends on a size that the recipe does not tell."""
    file, out = planned_at(tmp_path, capsys, 66)
    planned = json.loads(out)
    certified = price(read(file)[0], facts_of(width=width)).epsilon
    assert planned["epsilon"] < certified <= planned["epsilon_at_most"]


def test_where_sizes_matter_a_dry_run_prints_a_range(tmp_path, capsys, monkeypatch):
    file, out = planned_at(tmp_path, capsys, 3)
    planned = json.loads(out)
    certified = price(read(file)[0], facts_of(width=650)).epsilon
    assert planned["epsilon"] == planned["epsilon_at_most"] == certified
    monkeypatch.setattr("stillroom.cli.release.SIZES_MATTER_FROM", 1.0)
    _, out = planned_at(tmp_path, capsys, 3, json_too=False)
    assert "to 3.000" in out
    assert "depends on how many weights" in out


PERSONS = """
[data]
source = "digits"
declared_size = 300
unit = "person"
max_records_per_person = 10
[training]
steps = 5
rate = 1
[privacy]
epsilon = {epsilon}
{privacy}
"""


def test_several_tested_records_of_a_person_cost_their_square():
    """Ten of them at sigma 6 were charged as ten unit steps: 3.000 was stated, 8.41 was true."""
    person = Pair.parse("person/add-or-remove")
    two = facts_of(classes=2)
    usual = price(parse(PERSONS.format(epsilon=3, privacy="")), two)
    counts, _ = usual.wishes[EVALUATION]
    assert (counts.records, usual.epsilon <= 3) == (1, True)
    ten = "evaluation_records_per_person = 10\n"
    with pytest.raises(BadInput, match="alone would cost more"):
        price(parse(PERSONS.format(epsilon=3, privacy=ten)), two)
    counts, _ = price(parse(PERSONS.format(epsilon=20, privacy=ten)), two).wishes[EVALUATION]
    # One Gaussian moved by ten: what the exact formula gives for noise of 6.
    alone = price_of(counts.lines(1), person).epsilon(1e-5)
    assert get_epsilon_gaussian(6 / 10, 1e-5) <= alone <= get_epsilon_gaussian(5.6 / 10, 1e-5)


def test_tested_records_per_person_belong_to_persons():
    one = PERSONS.replace('unit = "person"\nmax_records_per_person = 10\n', "")
    with pytest.raises(BadInput, match="only for unit person"):
        parse(one.format(epsilon=3, privacy="evaluation_records_per_person = 2\n"))
