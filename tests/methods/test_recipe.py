"""Recipes: every fault is named with its place and what to do; every default can be seen."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from stillroom.errors import BadInput
from stillroom.methods.recipe import Recipe, explain, parse, person_warnings, read

SMALL = """
[data]
source = "digits"
public_size = 1440
[privacy]
epsilon = 2
"""


def test_defaults_are_filled_in_and_shown():
    recipe = parse(SMALL)
    assert recipe.training.rate == Fraction(1, 2)
    lines = {key: (value, origin) for key, value, origin, _ in explain(recipe)}
    assert lines["privacy.epsilon"] == ("2.0", "given")
    assert lines["training.clip"] == ("1/2", "default")
    assert all(about for _, _, _, about in explain(recipe))


def test_shares_mean_what_is_written():
    assert parse(SMALL + "[training]\nrate = 0.1\n").training.rate == Fraction(1, 10)
    assert parse(SMALL + "[training]\nrate = '1/7'\n").training.rate == Fraction(1, 7)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "data: is missing"),
        ("[data", "not TOML"),
        (SMALL + "[trainnig]\nsteps = 3", "nearest known one is 'training'"),
        (SMALL + "[training]\nstep = 3", "nearest known one is 'steps'"),
        (SMALL + "[training]\nsteps = 'many'", "training.steps"),
        (SMALL + "[training]\nsteps = 0", "training.steps"),
        (SMALL + "[training]\nrate = 'half'", "training.rate"),
        (SMALL + "[training]\nrate = true", "training.rate"),
        (SMALL + "[training]\nfeatures = 'eyes'", "no features 'eyes'"),
        (SMALL + "[training]\nmomentum = 1.0", "training.momentum"),
        (SMALL.replace("epsilon = 2", "epsilon = 0"), "privacy.epsilon"),
        (SMALL.replace("epsilon = 2", "epsilon = nan"), "privacy.epsilon"),
        (SMALL + "delta = 1.0", "privacy.delta"),
        (SMALL + "tuning = 'a bit'", "privacy.tuning"),
        ("method = 'magic'\n" + SMALL, "method"),
        (SMALL.replace("public_size = 1440", ""), "data.public_size: is missing"),
    ],
)
def test_faults_name_their_place(text, says):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert says in caught.value.what
    assert caught.value.remedy


def test_all_faults_are_named_at_once():
    with pytest.raises(BadInput) as caught:
        parse(SMALL + "[training]\nsteps = 0\nclip = 'x'\nwings = 2")
    for place in ("training.steps", "training.clip", "training.wings"):
        assert place in caught.value.what


def test_an_unreadable_recipe(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read(tmp_path / "none.toml")


def test_the_example_is_a_recipe():
    recipe, _ = read(Path(__file__).parents[2] / "examples" / "direct.toml")
    assert recipe.privacy.epsilon == 2.0


def test_impossible_splits(tmp_path):
    with pytest.raises(BadInput, match="shares"):
        parse(SMALL.replace("[privacy]", "test = '3/2'\n[privacy]")).split(tmp_path)
    with pytest.raises(BadInput, match="no sensitive part"):
        parse(SMALL.replace("[privacy]", "test = 1\n[privacy]")).split(tmp_path)
    with pytest.raises(BadInput, match="official train and test"):
        parse(SMALL.replace("[privacy]", "split = 'as-given'\n[privacy]")).split(tmp_path)


def csv(path, rows, header="a,b,who,label"):
    path.write_text("\n".join([header, *rows]) + "\n")


def file_recipe(extra="") -> Recipe:
    return parse(
        "[data]\nsource = 'visits.csv'\nclasses = ['well', 'ill']\npublic_size = 4\n"
        f"person_column = 'who'\n{extra}[training]\nfeatures = 'pixels'\n[privacy]\nepsilon = 2\n"
    )


def test_a_file_beside_the_recipe(tmp_path):
    csv(
        tmp_path / "visits.csv",
        [f"{i},{i % 3},p{i % 4},{'ill' if i % 2 else 'well'}" for i in range(20)],
    )
    split = file_recipe().split(tmp_path)
    assert len(split.sensitive) + len(split.test) == 20
    assert not set(split.sensitive.persons) & set(split.test.persons)
    assert "single records only" in person_warnings(file_recipe(), split.sensitive)[0]
    assert person_warnings(file_recipe("unit = 'person'\n"), split.sensitive) == ()


def test_labels_outside_the_recipes_classes(tmp_path):
    csv(tmp_path / "visits.csv", ["1,2,p1,well", "3,4,p2,dead"])
    with pytest.raises(BadInput) as caught:
        file_recipe().split(tmp_path)
    assert "dead" not in str(caught.value)


def test_nan_features(tmp_path):
    csv(tmp_path / "visits.csv", ["1,2,p1,well", "nan,4,p2,ill"])
    with pytest.raises(BadInput):
        file_recipe().split(tmp_path)
