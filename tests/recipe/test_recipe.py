"""Recipes: every fault is named with its place and what to do; every default can be seen."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from stillroom.errors import BadInput
from stillroom.methods.registry import parse, read
from stillroom.methods.wording import promise_warnings
from stillroom.pipeline.release import load_parts_of
from stillroom.recipe import Recipe
from stillroom.recipe.reading import explain

SMALL = """
[data]
source = "digits"
declared_size = 1440
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
        (SMALL + "[features]\nname = 'eyes'", "no features 'eyes'"),
        (SMALL + "[training]\nmomentum = 1.0", "training.momentum"),
        (SMALL.replace("epsilon = 2", "epsilon = 0"), "privacy.epsilon"),
        (SMALL.replace("epsilon = 2", "epsilon = nan"), "privacy.epsilon"),
        (SMALL + "delta = 1.0", "privacy.delta"),
        (SMALL + "tuning = 'a bit'", "privacy.tuning"),
        ("method = 'magic'\n" + SMALL, "method"),
        (SMALL.replace("declared_size = 1440", ""), "data.declared_size: is missing"),
        (SMALL.replace("declared_size", "public_size"), "is now called 'data.declared_size'"),
        (SMALL.replace("epsilon = 2", "epsilon = 101"), "less than or equal to 100"),
        (SMALL.replace("1440", str(2**63)), "less than or equal to 1000000000"),
        (SMALL + "[training]\nsteps = 100001", "less than or equal to 100000"),
        (SMALL + "[training]\nsteps = 20001\nrate = '1/1001'", "takes too long to compute"),
        (SMALL + "[training]\nrate = '1e999999999'", "training.rate"),
        (SMALL + f"[training]\nrate = '1/{'3' * 40}'", "at most 40 characters"),
        (SMALL + "[training]\nclip = 1e13", "between 1e-12 and 1e12"),
        (SMALL + f"[training]\nsteps = {'9' * 5000}", "too long a number"),
        ("a = " + "[" * 9999, "nested too deep"),
        (".".join("a" * 9999) + " = 1", "ten or more parts"),
        ("".join(f"k{i} = 1\n" for i in range(99)), "and 81 more"),
    ],
)
def test_faults_name_their_place(text, says):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert says in caught.value.what
    assert caught.value.remedy


NETWORK = SMALL + "[training]\nmodel = 'student-10k'\n"
SKETCH = "[sketch]\nmu = '1/10'\n"
PERSON = SMALL.replace("[privacy]", "unit = 'person'\n[privacy]")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SMALL + "[features]\nname = 'eyes'", "no features 'eyes'"),
        (NETWORK + "[features]\nname = 'edges'", "looks at the pictures themselves"),
        (NETWORK + "[features]\nsize = 32", "looks at the pictures themselves"),
        (SMALL + "[training]\nema = 0.9", "training.ema: only for a network"),
        (SMALL + "[training]\nviews = 2\nshift = 1", "training.shift, training.views: only for"),
        (SMALL + "[training]\nmirror = true", "training.mirror: only"),
        (SMALL + "[training]\nghost = true", "training.ghost: only"),
        (SMALL + "[training]\nweights = 'a'", "training.weights: only"),
        (SMALL + "[training]\npublic_source = 'a'", "training.public_source: only"),
        (NETWORK + "normalise = true", "clips, not normalise"),
        (SMALL + "[training]\nclass_weights = [1, 0.1]\nnormalise = true", "normalise makes every"),
        (SMALL + "[training]\nclass_weights = [1, 1.1]", "less than or equal to 1"),
        (SMALL + "[training]\nclass_weights = [1, 0]", "greater than 0"),
        (SMALL + "[training]\nclass_weights = [1]", "at least 2 items"),
        (NETWORK + "average_from = 3", "ema, not average_from"),
        (SMALL + "[features]\nname = 'pixels'\nsize = 32", "features.size belongs to a backbone"),
        (SMALL + "[features]\nname = 'scattering'\nsize = 32", "features.size belongs"),
        (SMALL + "[features]\nname = 'package:net'", "a backbone to a features.size"),
        (SMALL + "[features]\nname = 'scattering'\ncomponents = 9", "belong together"),
        (SMALL + "[features]\nname = 'scattering'\nfitted_on = 'digits'", "belong together"),
        (SMALL + "[features]\ncomponents = 9\nfitted_on = 'digits'", "`edges` is used as it is"),
        (
            SMALL + "[features]\nname = 'scattering'\ncomponents = 9\nfitted_on = 'sketch'",
            "there is no [sketch]",
        ),
        (SMALL + "[student]\nepochs = 2", "learns from a [sketch]"),
        (SMALL + SKETCH.replace("1/10", "0"), "sketch.mu"),
        (SMALL + "[sketch]\ncentres = 2", "sketch.mu: is missing"),
        (SMALL + SKETCH + "center = 2", "nearest known one is 'centres'"),
        (SMALL + SKETCH + "[student]\nepoch = 2", "nearest known one is 'epochs'"),
    ],
)
def test_keys_that_do_not_go_together(text, says):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert says in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        NETWORK + "ema = 0.9\nviews = 2\nshift = 1\nmirror = true\n[features]\nfull_scale = 16",
        NETWORK + SKETCH + "[student]\n",
        NETWORK + "class_weights = [1, '1/9']\n",
        SMALL + SKETCH,
        SMALL + SKETCH + "[features]\nname = 'scattering'\ncomponents = 9\nfitted_on = 'sketch'",
        SMALL + "[features]\nname = 'package.module:net'\nsize = 32",
        PERSON,
    ],
)
def test_keys_that_go_together(text):
    recipe = parse(text)
    assert all(about for _, _, _, about in explain(recipe))


def test_several_misfits_are_named_at_once():
    with pytest.raises(BadInput) as caught:
        parse(SMALL + "[student]\nepochs = 2\n[training]\nema = 0.9")
    for place in ("training.ema", "student"):
        assert place in caught.value.what


def test_all_faults_are_named_at_once():
    with pytest.raises(BadInput) as caught:
        parse(SMALL + "[training]\nsteps = 0\nclip = 'x'\nwings = 2")
    for place in ("training.steps", "training.clip", "training.wings"):
        assert place in caught.value.what


def test_an_unreadable_recipe(tmp_path):
    with pytest.raises(BadInput, match="no such recipe"):
        read(tmp_path / "none.toml")


def test_the_example_is_a_recipe():
    recipe, _ = read(Path(__file__).parents[2] / "examples" / "direct.toml")
    assert recipe.privacy.epsilon == 2.0


def test_impossible_splits(tmp_path):
    with pytest.raises(BadInput, match="shares"):
        load_parts_of(parse(SMALL.replace("[privacy]", "test = '3/2'\n[privacy]")), tmp_path)
    with pytest.raises(BadInput, match="no sensitive part"):
        load_parts_of(parse(SMALL.replace("[privacy]", "test = 1\n[privacy]")), tmp_path)
    with pytest.raises(BadInput, match="official train and test"):
        load_parts_of(parse(SMALL.replace("[privacy]", "split = 'as-given'\n[privacy]")), tmp_path)


def csv(path, rows, header="a,b,who,label"):
    path.write_text("\n".join([header, *rows]) + "\n")


def file_recipe(extra="") -> Recipe:
    return parse(
        "[data]\nsource = 'visits.csv'\nclasses = ['well', 'ill']\ndeclared_size = 4\n"
        f"person_column = 'who'\n{extra}[features]\nname = 'pixels'\n[privacy]\nepsilon = 2\n"
    )


def test_a_file_beside_the_recipe(tmp_path):
    csv(
        tmp_path / "visits.csv",
        [f"{i},{i % 3},p{i % 4},{'ill' if i % 2 else 'well'}" for i in range(20)],
    )
    parts = load_parts_of(file_recipe(), tmp_path)
    sensitive, test = parts.sensitive.open_sealed(), parts.test.open_sealed()
    assert len(sensitive) + len(test) == 20
    assert not set(sensitive.persons) & set(test.persons)
    assert "single records only" in promise_warnings(file_recipe(), names_persons=True)[0]
    assert promise_warnings(file_recipe(), names_persons=False) == ()
    assert promise_warnings(file_recipe("unit = 'person'\n"), names_persons=True) == ()


def test_a_persons_records_are_not_split_by_class(tmp_path):
    """One more record of a sensitive class would move its owner's others out of the public part."""
    csv(
        tmp_path / "visits.csv",
        [f"{i},{i % 3},p{i % 4},{'ill' if i % 2 else 'well'}" for i in range(20)],
    )
    by_class = parse(
        "method = 'rona'\n[data]\nsource = 'visits.csv'\nclasses = ['well', 'ill']\n"
        "declared_size = 9\npublic = '1/2'\nsensitive_classes = ['ill']\nperson_column = 'who'\n"
        "[features]\nname = 'pixels'\n[rona]\nstudent = 'mlp'\n[privacy]\nepsilon = 2\n"
    )
    with pytest.raises(BadInput, match="named persons"):
        load_parts_of(by_class, tmp_path)


def test_labels_outside_the_recipes_classes(tmp_path):
    csv(tmp_path / "visits.csv", ["1,2,p1,well", "3,4,p2,dead"])
    with pytest.raises(BadInput) as caught:
        load_parts_of(file_recipe(), tmp_path)
    assert "dead" not in str(caught.value)


def test_nan_features(tmp_path):
    csv(tmp_path / "visits.csv", ["1,2,p1,well", "nan,4,p2,ill"])
    with pytest.raises(BadInput):
        load_parts_of(file_recipe(), tmp_path)
