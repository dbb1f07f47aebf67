"""Recipes of method rona: what makes no sense is refused before anything is paid for."""

from __future__ import annotations

import numpy as np
import pytest

from methods.pictures import SKETCH, charged
from methods.rona.recipes import BUDGET, SOURCES, recipe_in
from stillroom.errors import BadInput
from stillroom.methods.registry import parse, read
from stillroom.pipeline.release import release
from stillroom.recipe.reading import explain

DIRECT = '[data]\nsource = "digits"\ndeclared_size = 1440\n{data}[privacy]\nepsilon = 2\n'
OWN = """
from torch import nn

class Odd(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(64, classes))

    def forward(self, x):
        return self.inner(x)
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (DIRECT.format(data="") + "[rona]\n", "rona: unknown key"),
        (DIRECT.format(data="") + "[teachers]\nshard_cap = 9\n", "teachers: unknown key"),
        (DIRECT.format(data="") + "[published]\n", "published: unknown key"),
        (DIRECT.format(data="") + "[plain]\n", "plain: unknown key"),
        ("source = 'ensemble'\n" + DIRECT.format(data=""), "source: input should be 'trained'"),
        (DIRECT.format(data="public = 0.4\n"), "data.public: unknown key"),
        (
            DIRECT.format(data="labelled = 0.4\nsensitive_classes = ['1']\n"),
            "data.labelled: unknown key",
        ),
        (
            DIRECT.format(data="labelled = 0.4\nsensitive_classes = ['1']\n"),
            "data.sensitive_classes: unknown key",
        ),
        ("mode = 'as-published'\n" + DIRECT.format(data=""), "direct has no as-published form"),
        (DIRECT.format(data="") + "[features]\nname = 'auxiliary'\n", "a method with a public"),
        (
            DIRECT.format(data="")
            + "[features]\nname = 'scattering'\ncomponents = 9\nfitted_on = 'public'\n",
            "a method with a public part",
        ),
    ],
)
def test_ronas_keys_belong_to_rona(text, says):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert says in caught.value.what
    assert caught.value.remedy


def test_rona_has_defaults_for_all_that_is_its_own():
    recipe = parse("method = 'rona'\n" + DIRECT.format(data="public = 0.4\n"))
    assert (recipe.source, recipe.rona.student) == ("trained", "student-10k")


@pytest.mark.parametrize(
    ("kind", "old", "new", "says"),
    [
        ("trained", "declared_size", "public_size", ("data.public_size", "data.declared_size")),
        ("trained", "[rona]", "[rona]\nsource = 'dp-trained'", ("rona.source", "source")),
        ("ensemble", "[rona]", "[rona]\nsource = 'ensemble'", ("rona.source", "source")),
        ("plain", "[plain]", "[published]", ("published.teacher", "plain.teacher")),
        (
            "plain",
            "",
            "[published]\nteacher_epochs = 1\n",
            ("published.teacher_epochs", "plain.epochs"),
        ),
    ],
)
def test_old_keys_are_refused_and_name_the_new_ones(tmp_path, kind, old, new, says):
    text = recipe_in(tmp_path, kind).read_text()
    assert old in text
    with pytest.raises(BadInput) as caught:
        parse(text.replace(old, new, 1) if old else text + new)
    assert f"{says[0]}: is now called {says[1]!r}" in caught.value.what
    assert caught.value.exit_code == 2


def test_a_recipe_of_before_names_all_its_old_keys_at_once(tmp_path):
    text = recipe_in(tmp_path, "plain").read_text()
    text = text.replace("declared_size", "public_size").replace(
        "[rona]", "[rona]\nsource = 'plain'"
    )
    text = text.replace("[plain]", "[published]").replace("\nepochs", "\nteacher_epochs")
    with pytest.raises(BadInput) as caught:
        parse(text)
    for new in ("data.declared_size", "source", "plain.teacher", "plain.epochs"):
        assert f"is now called {new!r}" in caught.value.what


def test_the_old_name_of_a_source_is_none(tmp_path):
    text = recipe_in(tmp_path).read_text().replace('"trained"', '"dp-trained"')
    with pytest.raises(BadInput, match="source: input should be 'trained'"):
        parse(text)


@pytest.mark.parametrize(
    ("kind", "old", "new", "says"),
    [
        ("trained", 'public = "2/5"', "", "data.public: method rona needs a public part"),
        ("plain", "[features]", "unit = 'person'\n[features]", "algorithm protects records"),
        ("trained", "", SKETCH + "[student]\n", "student: unknown key"),
        ("trained", "steps = 6", "model = 'mlp'", "teacher of method rona is linear"),
        ("trained", '"certified"', '"as-published"', "has no source plain, and the paper's has no"),
        ("plain", '"as-published"', '"certified"', "has no source plain, and the paper's has no"),
        ("plain", '"as-published"', '"certified"', "plain promises nothing and belongs to mode"),
        ("trained", 'source = "trained"', 'source = "sketch"', "learns from trained, ensemble or"),
        ("trained", "", "[published]\n", "published: only for source plain"),
        ("trained", "", "[plain]\n", "plain: only for source plain"),
        ("trained", "", "[teachers]\nshard_cap = 9\n", "teachers: only for source ensemble"),
        ("ensemble", SOURCES["ensemble"][1], "", "teachers: source ensemble needs a [teachers]"),
        ("ensemble", "", "[training]\nsteps = 6\n", "training: only for source trained"),
        ("plain", "", SKETCH, "sketch: only for source trained"),
        ("ensemble", '"pixels"', '"auxiliary"', "features.name: auxiliary is for source trained"),
        ("trained", "[rona]", "[rona]\nsamples = 9", "rona.samples: there is no [sketch]"),
        ("trained", "[rona]", "[rona]\nhint_epochs = 1", "name hint_layer and guided_layer"),
        ("hinted", "hint_layer = 3", "", "name hint_layer and guided_layer"),
        ("hinted", "hints = 30", "", "teachers.hints and rona.hint_epochs belong together"),
        ("ensemble", "votes = 60", "hints = 9", "teachers.hints and rona.hint_epochs belong"),
        ("ensemble", "votes = 60", "asked = 9", "teachers.threshold_noise: there is no threshold"),
        ("ensemble", "votes = 60", "threshold_noise = 9", "there is no threshold"),
        ("ensemble", "votes = 60", "threshold = 0.5\ngrouped = true", "groups have no threshold"),
        ("plain", "[features]", "labelled = 0.5\n[features]", "labels of all public records"),
        ("plain", "[plain]\n", "[plain]\nbatch = 9\n", "plain.batch"),
        ("ensemble", "[rona]", "[rona]\ncomposites = 9", "rona.composites: only for source tr"),
        ("trained", "[rona]", "[rona]\nqueries = 0.1", "rona.queries: only for source plain"),
        # One key alone out of its range.
        ("trained", 'public = "2/5"', "public = 1", "data.public"),
        ("trained", "[features]", "labelled = 0\n[features]", "data.labelled"),
        ("trained", "[rona]", "[rona]\nrounds = 0", "rona.rounds"),
        ("trained", "[rona]", "[rona]\nbatch = 1", "rona.batch"),
        ("trained", "[rona]", "[rona]\nscale = 1", "rona.scale"),
        ("trained", "[rona]", "[rona]\nlearning_rate = inf", "rona.learning_rate"),
        ("trained", '"trained"', '"magic"', "source: "),
        ("trained", "[rona]", "[rona]\nstudnet = 'mlp'", "nearest known one is 'student'"),
        ("ensemble", "shard_cap = 80", "", "teachers.shard_cap: is missing"),
        ("ensemble", "votes = 60", "threshold = 2", "teachers.threshold"),
        ("hinted", "hints = 30", "hints = 30\nhint_share = 1", "teachers.hint_share"),
        ("plain", "", "[published]\nsigma = 0\n", "published.sigma"),
        ("plain", "", "[published]\nreading = 'loud'\n", "published.reading"),
    ],
)
def test_misfits_name_their_place(tmp_path, kind, old, new, says):
    text = recipe_in(tmp_path, kind).read_text()
    assert old in text
    with pytest.raises(BadInput) as caught:
        parse(text.replace(old, new, 1) if old else text + new)
    assert says in caught.value.what
    assert caught.value.exit_code == 2
    assert caught.value.remedy


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_has_a_recipe_that_is_explained(tmp_path, kind):
    recipe, _ = read(recipe_in(tmp_path, kind))
    assert all(about for _, _, _, about in explain(recipe))


@pytest.fixture
def odd(tmp_path, monkeypatch):
    (tmp_path / "own_odd.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("kind", "old", "new", "says"),
    [
        ("trained", 'student = "mlp"', 'student = "tanh-cnn"', "at least 14x14"),
        ("ensemble", 'student = "mlp"', 'student = "none:net"', "none"),
        ("trained", 'auxiliary = "mlp"', 'auxiliary = "mlpp"', "mlpp"),
        ("plain", 'teacher = "linear"', 'teacher = "tanh-cnn"', "at least 14x14"),
        ("plain", 'teacher = "linear"', 'teacher = "own_odd:Odd"', "no sequence of blocks"),
        ("plain", 'student = "mlp"', 'student = "own_odd:Odd"', "no sequence of blocks"),
        ("plain", "batch = 64", "batch = 600", "do not fill a batch"),
        ("ensemble", '"pixels"', '"scattering"', "at least 12x12"),
        ("trained", '"pixels"', '"scattering"', "at least 12x12"),
        ("hinted", "hint_layer = 3", "hint_layer = 9", "needs a layer"),
        ("hinted", "guided_layer = 2", "guided_layer = 9", "needs a layer"),
        (
            "trained",
            "[rona]",
            "[rona]\nhint_epochs = 1\nhint_layer = 9\nguided_layer = 2",
            "needs a layer",
        ),
        ("trained", "[features]", "labelled = 1e-9\n[features]", "no labelled public records"),
        ("trained", "[features]", "sensitive_classes = ['x']\n[features]", "class"),
        ("trained", '"pixels"', '"auxiliary"', "no sequence of blocks"),
    ],
)
def test_what_cannot_work_costs_nothing(tmp_path, odd, small, kind, old, new, says):
    file = recipe_in(tmp_path / "work", kind)
    text = file.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    if new == '"auxiliary"':
        text = text.replace('auxiliary = "mlp"', 'auxiliary = "own_odd:Odd"')
    file.write_text(text)
    with pytest.raises(BadInput, match=says):
        release(file, tmp_path / "work" / "out", budget=BUDGET)
    assert charged(tmp_path / "work") == (0, 0)
    assert not (tmp_path / "work" / "out").exists()


def test_groups_need_a_student_of_blocks(tmp_path, odd, small):
    file = recipe_in(tmp_path / "work", "ensemble", part="[teachers]\nshard_cap = 80\n")
    text = file.read_text().replace('student = "mlp"', 'student = "own_odd:Odd"')
    file.write_text(text + "grouped = true\n")
    with pytest.raises(BadInput, match="no sequence of blocks"):
        release(file, tmp_path / "work" / "out", budget=BUDGET)
    assert charged(tmp_path / "work") == (0, 0)


def test_rows_have_no_views(tmp_path, small):
    y = np.arange(300) % 3
    x = np.random.default_rng(0).normal(size=(300, 6)) + y[:, None]
    folder = tmp_path / "work"
    file = recipe_in(folder, rona="views = 2\nshift = 0.1\n")
    np.savez(folder / "rows.npz", x=x.astype(np.float32), y=y)
    file.write_text(
        file.read_text().replace('source = "digits"', 'source = "rows.npz"\nclasses = 3', 1)
    )
    with pytest.raises(BadInput, match="views are of pictures"):
        release(file, folder / "out", budget=BUDGET)
    assert charged(folder) == (0, 0)
    file.write_text(file.read_text().replace("views = 2", "views = 1"))
    assert release(file, folder / "rows", budget=BUDGET)["headline"]["epsilon"] <= 3
