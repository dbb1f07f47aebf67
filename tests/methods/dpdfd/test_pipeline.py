"""Method dpdfd, certified: every source, runs that were cut off, refusals before payment."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from features.enlarged import pictures
from methods import pictures as small
from methods.pictures import charged
from quick_onnx import use_quick_exporter
from stillroom.errors import BadInput
from stillroom.gate import Budget
from stillroom.methods.dpdfd import job
from stillroom.methods.registry import read
from stillroom.models import checkpoints
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify
from stillroom.sources import Progress
from stillroom.vocabulary import Pair, Unit

SKETCH = small.SKETCH.replace("1/5", "1")
WHITENED = SKETCH.replace("centres = 2", "centres = 1\nwhitened = 1")
BUDGET = Budget(8.0, 1e-5)
HEAD = """
method = "dpdfd"
source = "{source}"
[data]
source = "scans.npz"
classes = 10
test_is_public = true
declared_size = 1400
[engine]
kind = "serial"
[features]
full_scale = 16
name = "pixels"
[privacy]
epsilon = 8
[dpdfd]
student = "mlp"
rounds = 3
samples = {samples}
structured = {structured}
mixed = {mixed}
generated = {generated}
epochs = 3
batch = 50
frequencies = 40
bank = 2000
"""
TRAINING = '[training]\nsteps = 20\nclip = "1"\nlearning_rate = 4.0\nrate = 1\n'
TEACHERS = "[teachers]\ncount = 40\nshard_cap = 100\nvotes = 90\n"
NONE = "samples = 0\nstructured = 0\nmixed = 0"
GENERATOR = '[generator]\nmodel = "mlp"\nlatent = 8\nwidth = 16\nsteps = 9\n'


@pytest.fixture(autouse=True)
def quick(monkeypatch, request):
    if "generator" not in request.node.name:  # the quick one splits its norms into pieces
        use_quick_exporter(monkeypatch)


def recipe_in(
    folder, source="trained", more="", *, samples=150, structured=100, mixed=60, generated=0
):
    """A recipe beside its records."""
    if not (folder / "scans.npz").exists():
        x, y = pictures(None)
        np.savez(folder / "scans.npz", x=x, y=y)
    parts = {"samples": samples, "structured": structured, "mixed": mixed, "generated": generated}
    # A sketch alone spends all of epsilon.
    alone = WHITENED.replace('mu = "1"', "")
    own = {"trained": TRAINING + SKETCH, "sketch": alone, "ensemble": TEACHERS}[source]
    file = folder / "recipe.toml"
    file.write_text(HEAD.format(source=source, **parts) + own + more)
    return file


def accuracy(made):
    return made["sections"]["evaluation"]["accuracy"]


@pytest.mark.parametrize(
    ("source", "more", "parts", "least"),
    [
        ("trained", "", {}, 0.6),
        ("sketch", "", {"samples": 1000, "structured": 0, "mixed": 0}, 0.6),
        ("ensemble", WHITENED, {"samples": 1000, "structured": 0, "mixed": 0}, 0.6),
    ],
)
def test_a_student_that_saw_no_real_picture(tmp_path, source, more, parts, least):
    recipe = recipe_in(tmp_path, source, more, **parts)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    verify(tmp_path / "out")
    assert accuracy(made) > least
    kinds = [artefact["kind"] for artefact in made["artefacts"]]
    assert sorted(kinds) == ["classifier", "generator"]
    assert made["headline"]["epsilon"] <= 8
    (student,) = [one for one in made["artefacts"] if one["kind"] == "classifier"]
    assert "never saw a real picture" in student["about"]
    sheets = sorted(file.name for file in (tmp_path / "out.run" / "samples").glob("*.png"))
    taught_before = ["sketch"] if source == "ensemble" else []
    assert sheets == [
        f"{by}-{number}.png" for by in ("round", *taught_before) for number in (1, 2, 3)
    ]


@pytest.mark.slow
def test_a_generator_takes_turns_and_is_released(tmp_path):
    recipe = recipe_in(tmp_path, "trained", GENERATOR, generated=50)
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    verify(tmp_path / "out")
    (generator,) = [one for one in made["artefacts"] if one["kind"] == "generator"]
    assert generator["make"] == "network"
    sheets = {file.stem for file in (tmp_path / "out.run" / "samples").glob("*.png")}
    assert {"generator-1", "generator-3", "round-3"} <= sheets


@pytest.mark.slow
def test_paid_answers_with_a_generator_alone(tmp_path):
    """DPDFD-E without a sketch: queries are structured, or the generator's."""
    recipe = recipe_in(tmp_path, "ensemble", GENERATOR, mixed=0, generated=50)
    recipe.write_text(recipe.read_text().replace("samples = 150\n", ""))
    made = release(recipe, tmp_path / "out", budget=BUDGET)
    verify(tmp_path / "out")
    assert charged(tmp_path) == (1, 90)
    assert made["parties"][0]["blocks"][0]["wishes"][0]["drawn"] == 90


@pytest.mark.slow
def test_a_run_with_a_generator_goes_on_after_its_last_round(tmp_path, monkeypatch):
    recipe = recipe_in(tmp_path, "trained", GENERATOR, generated=50)
    kept = job.DpdfdJob._keep
    calls = []

    def cut(self, state):
        kept(self, state)
        calls.append(state)
        if len(calls) == 2:  # the generator's, and that of the first round
            raise KeyboardInterrupt

    monkeypatch.setattr(job.DpdfdJob, "_keep", cut)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET)
    before = charged(tmp_path)
    release(recipe, tmp_path / "out")
    assert charged(tmp_path) == before
    assert [state["lessons"]["done"] for state in calls[1:]] == [1, 2, 3]
    verify(tmp_path / "out")


@pytest.mark.slow
def test_turns_of_a_generator_go_on_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "OFTEN", 0.0)
    monkeypatch.setattr(job, "TURNS", 1)
    recipe, turns = recipe_in(tmp_path, "trained", GENERATOR, generated=50), []
    steps = read(recipe)[0].generator.steps

    class Watched:
        phase, stop = "", True

        def tell(self, line):
            self.phase = line

        def step(self, done, total):
            if self.phase == "student and generator":
                turns.append(done)
                if done == 2 and self.stop:
                    raise KeyboardInterrupt

    watched = Watched()
    told = Progress(watched.tell, watched.step)
    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "out", budget=BUDGET, progress=told)
    watched.stop = False
    release(recipe, tmp_path / "out", progress=told)
    assert turns == [*range(1, steps + 1)]
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "out")
    for state in (tmp_path / "out.run").glob("dpdfd-*"):
        state.unlink()
    release(recipe, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == weights


def test_a_generator_whose_loss_is_no_number_is_found_with_its_step(tmp_path, monkeypatch):
    from stillroom.methods.dpdfd import generator_training

    calls = []

    def broken(logits, features, alpha, beta, **more):
        calls.append(1)
        return logits.sum() * (float("nan") if len(calls) == 4 else 0.0)

    monkeypatch.setattr(generator_training, "generator_loss", broken)
    recipe = recipe_in(tmp_path, "trained", GENERATOR, generated=50)
    with pytest.raises(BadInput, match="not a number") as caught:
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert caught.value.where == "generator, step 4"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "change", "says"),
    [
        ("trained", ("generated = 0", "generated = 9"), "generated and .generator. belong"),
        ("trained", (SKETCH, ""), "there is no .sketch."),
        ("ensemble", ("votes = 90", "votes = 5000"), "fewer queries"),
        ("sketch", ("[data]", 'mode = "as-published"\n[data]'), "only source plain"),
        ("trained", ("[data]", "[published]\n[data]"), "only for source plain"),
        ("trained", ('student = "mlp"', 'student = "nobody"'), "nobody"),
        ("trained", ("steps = 20", 'model = "mlp"\nsteps = 20'), "is linear"),
        (
            "sketch",
            (
                "samples = 150\nstructured = 100\nmixed = 60",
                "samples = 0\nstructured = 0\nmixed = 0",
            ),
            "no queries",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_payment(tmp_path, source, change, says):
    recipe = recipe_in(tmp_path, source, SKETCH if source == "ensemble" else "")
    text = recipe.read_text()
    assert change[0] in text
    recipe.write_text(text.replace(*change, 1))
    with pytest.raises(BadInput, match=says):
        release(recipe, tmp_path / "out", budget=BUDGET)
    assert charged(tmp_path) == (0, 0)


def test_memory_is_flat_in_the_number_of_rounds(tmp_path):
    """The bank is bounded by the recipe, whatever the number of rounds."""
    recipe = recipe_in(tmp_path)
    recipe.write_text(recipe.read_text().replace("rounds = 3", "rounds = 8").replace("2000", "500"))
    release(recipe, tmp_path / "out", budget=BUDGET)
    (state,) = (tmp_path / "out.run").glob("dpdfd-*.pt")
    assert len(torch.load(state, weights_only=True)["lessons"]["bank"]) == 500


def test_the_state_of_another_teacher_is_never_taken_up(tmp_path, monkeypatch):
    """What another block paid for would stand on no certificate."""
    recipe = recipe_in(tmp_path)
    release(recipe, tmp_path / "out", budget=Budget(40.0, 1e-5))
    told = []
    monkeypatch.setattr(job.DpdfdJob, "_keep", lambda self, state: told.append(state))
    (tmp_path / "out.run" / "run.json").unlink()
    (tmp_path / "out.run").rename(tmp_path / "new.run")
    release(recipe, tmp_path / "new")
    assert [state["lessons"]["done"] for state in told] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["trained", "sketch", "ensemble"])
def test_persons_are_protected_with_all_their_records(tmp_path, source):
    x, y = pictures(None)
    persons = np.array([f"person {place // 2}" for place in range(len(y))])
    np.savez(tmp_path / "scans.npz", x=x, y=y, persons=persons)
    recipe = recipe_in(tmp_path, source, SKETCH if source == "ensemble" else "", structured=0)
    text = recipe.read_text().replace("declared_size = 1400", "declared_size = 700")
    own = 'unit = "person"\nmax_records_per_person = 2\n'
    recipe.write_text(text.replace("[engine]", own + "[engine]"))
    budget = Budget(8.0, 1e-5, Pair.of(Unit.PERSON))
    made = release(recipe, tmp_path / "out", budget=budget)
    verify(tmp_path / "out")
    assert made["headline"]["unit"] == "person"
    sums = [wish["mechanism"] for wish in made["parties"][0]["blocks"][0]["wishes"]]
    assert all(wish["unit"] == "person" for wish in sums)
