"""DPDFD with source plain, from recipe to bundle: what it is charged, and what it says."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.torch import save_file

from features.enlarged import pictures
from methods.pictures import charged
from stillroom.errors import BadInput
from stillroom.gate import Budget
from stillroom.methods.registry import parse
from stillroom.models import build
from stillroom.pipeline.pricing import price
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify
from stillroom.sources import Facts
from stillroom.vocabulary import CHANGED_LABEL

HEAD = """method = "dpdfd"
mode = "{mode}"
source = "plain"
purpose = "benchmark"
[data]
source = "scans.npz"
classes = 10
test_is_public = true
declared_size = 300
{data}
[engine]
kind = "serial"
[features]
full_scale = 16
[privacy]
epsilon = {epsilon}
[dpdfd]
student = "mlp"
{generator}
[published]
iterations = 3
batch = 4
{published}
"""
GENERATOR = (
    '[generator]\nmodel = "mlp"\nlatent = 4\nwidth = 8\n[plain]\nteacher = "mlp"\nepochs = 1'
)


def recipe_in(folder, mode="certified", published="", data="", epsilon=5, generator=GENERATOR):
    x, y = pictures(None)
    ids = np.array([f"scan {i}" for i in range(400)])
    np.savez(folder / "scans.npz", x=x[:400], y=y[:400], ids=ids)
    text = HEAD.format(
        mode=mode, published=published, data=data, epsilon=epsilon, generator=generator
    )
    (folder / "recipe.toml").write_text(text)
    return folder / "recipe.toml"


def released(folder, *given, pair=None, **more):
    budget = Budget(30.0, 1e-5) if pair is None else Budget(30.0, 1e-5, pair)
    made = release(recipe_in(folder, *given, **more), folder / "out", budget=budget)
    verify(folder / "out")
    return made


def test_one_teacher_certified(tmp_path):
    made = released(tmp_path)
    assert made["headline"]["epsilon"] == pytest.approx(5, rel=0.01)
    assert made["headline"]["epsilon"] <= 5
    units = {line["unit"] for line in made["parties"][0]["guarantees"]}
    assert units == {"record", "entity"}
    assert charged(tmp_path) == (1, 3)
    assert [one["kind"] for one in made["artefacts"]] == ["classifier", "generator"]
    assert made["sections"]["published"]["epsilon"] is None
    assert "does not hold" in made["sections"]["published"]["status"]
    assert (tmp_path / "out.run" / "samples" / "iteration-3.png").exists()


@pytest.mark.slow
def test_as_published_says_both_figures(tmp_path):
    made = released(tmp_path, "as-published", 'reading = "per-sample"\nsigma = 20')
    claim = made["sections"]["published"]
    assert float(claim["epsilon"]) < 0.01 < 1 < made["headline"]["epsilon"]
    true = float(claim["status"].rpartition(": ")[2])
    assert true == pytest.approx(made["headline"]["epsilon"], rel=1e-3)
    (teacher,) = made["sections"]["controls"]["models"]
    assert teacher["name"] == "teacher"


@pytest.mark.usefixtures("quick_exporter")
def test_labels_alone_are_said_loudly(tmp_path):
    made = released(
        tmp_path, published='direct = true\nreading = "per-sample"', data='unit = "label"',
        generator="", pair=CHANGED_LABEL,
    )  # fmt: skip
    assert {line["unit"] for line in made["parties"][0]["guarantees"]} == {"label"}
    assert made["unit"] == "label"
    assert made["warnings"][0].startswith("LABELS ONLY.")
    card = (tmp_path / "out" / "card.html").read_text()
    assert "the class of one record, of which all else is public" in card
    assert "the records themselves: their content, and that they were used" in card
    assert [one["kind"] for one in made["artefacts"]] == ["classifier"]


def test_the_noise_is_found_for_the_recipes_epsilon(tmp_path):
    facts = Facts((16, 16), tuple("abcdefghij"))
    for epsilon in (1, 5):
        recipe = parse(recipe_in(tmp_path, epsilon=epsilon).read_text())
        assert price(recipe, facts).epsilon == pytest.approx(epsilon, rel=0.01)


def test_several_teachers_of_a_file_are_refused(tmp_path):
    text = recipe_in(tmp_path, "as-published", 'teachers = 2\nreading = "per-sample"').read_text()
    for old in ('source = "scans.npz"', "declared_size = 300\n", "test_is_public = true\n"):
        text = text.replace(old, 'source = "model"\nshape = [16, 16]' if "scans" in old else "")
    text = text.replace('teacher = "mlp"\nepochs = 1', 'teacher = "mlp"\nfile = "m.safetensors"')
    save_file(build("mlp", (1, 16, 16), 10, seed=0).state_dict(), tmp_path / "m.safetensors")
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(BadInput, match="one model in a file"):
        release(tmp_path / "recipe.toml", tmp_path / "out")
