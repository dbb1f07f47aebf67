"""Method rona through the command: what it says before, and what it says afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from methods.rona.recipes import certificate_of, recipe_in
from stillroom.cli import run
from stillroom.gate import Budget, Ledger
from stillroom.methods.registry import read
from stillroom.pipeline.release import load_parts_of
from stillroom.release import verify_bundle

STILLROOM = Path(sys.executable).parent / "stillroom"

PAPER = """method = "rona"
mode = "as-published"
source = "plain"
purpose = "benchmark"
[data]
source = "cifar10"
declared_size = 10000
public = "4/5"
[rona]
student = "conv-small"
auxiliary = "conv-middle"
hint_epochs = 40
hint_layer = 4
guided_layer = 7
rounds = 5
self_epochs = 8
distillation_epochs = 8
batch = 512
learning_rate = 1e-3
[plain]
teacher = "conv-middle"
[privacy]
epsilon = 8
"""


def planned(recipe, capsys, *more):
    """What a dry run prints; it must leave everything as it was."""
    before = sorted(recipe.parent.iterdir())
    code = run(["release", str(recipe), "-o", str(recipe.parent / "out"), "--dry-run", *more])
    assert code == 0
    assert sorted(recipe.parent.iterdir()) == before
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_release_from_the_command_line(tmp_path):
    """The installed command, with the least noise, the exporter and the speeds as they are."""
    recipe = recipe_in(tmp_path)
    parts = load_parts_of(read(recipe)[0], tmp_path)
    ledger = Ledger.create(tmp_path / "ledger.sqlite", parts.sensitive, purpose="benchmark")
    ledger.set_budget(Budget(3.0, 1e-5), reason="a test")
    ledger.close()
    done = subprocess.run(
        [STILLROOM, "release", recipe, "-o", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    made = certificate_of(tmp_path / "out")
    assert 2.97 < made["headline"]["epsilon"] <= 3
    first, second, third = done.stdout.splitlines()[:3]
    told = made["headline"]["epsilon"]
    assert first.startswith("certified epsilon ")
    assert float(first.split()[2]) == pytest.approx(told, abs=1e-3)
    assert second == f"accuracy {made['sections']['evaluation']['accuracy']:.2%}"
    beside = [
        f"{one['name']} {one['accuracy']:.2%}" for one in made["sections"]["controls"]["models"]
    ]
    assert third == "beside it: " + ", ".join(beside)
    for name in ("Base", "teacher on public data", "teacher", "ceiling"):
        assert name in third
    assert (
        made["sections"]["compression"]["student"]["parameters"]
        == made["artefacts"][0]["parameters"]
    )
    assert verify_bundle(tmp_path / "out")["verifies"]


@pytest.mark.parametrize(
    ("kind", "draws"),
    [
        ("trained", {"gaussian-sum": 6}),
        ("ensemble", {"gaussian-answers": 60}),
        ("hinted", {"gaussian-answers": 90}),
    ],
)
def test_dry_runs_say_what_will_be_drawn(tmp_path, quick, capsys, kind, draws):
    recipe = recipe_in(tmp_path, kind)
    facts = json.loads(planned(recipe, capsys, "--json"))
    assert facts["draws"] == draws
    assert facts["epsilon"] < 3
    assert facts["noise_multiplier"] == 20
    said = planned(recipe, capsys)
    for word in ("certified epsilon", "noise over clip", *draws):
        assert word in said
    # Noisy tables of the student and its controls are in it.
    charged = json.loads(planned(recipe_in(tmp_path, kind, public="false"), capsys, "--json"))
    assert charged["draws"]["noisy-counts"] == (4 if kind == "trained" else 3)
    assert charged["epsilon"] > facts["epsilon"]


@pytest.mark.slow
def test_the_papers_epsilon_stands_beside_infinity(tmp_path, capsys):
    """The published settings of CIFAR-10: 3125 calls by the formula, 3200 are executed."""
    recipe = tmp_path / "paper.toml"
    recipe.write_text(PAPER.replace("[rona]", "test_is_public = true\n[rona]"))
    said = " ".join(planned(recipe, capsys).split())
    assert "infinite" in said
    for word in ("3125", "38.7", "3200", "does not hold"):
        assert word in said
    facts = json.loads(planned(recipe, capsys, "--json"))
    assert facts["epsilon"] == "infinite"
    assert facts["noise_multiplier"] is None
    assert sorted(facts["draws"].values()) == [3200, 3200]


def test_the_residual_reading_has_a_price(tmp_path, capsys):
    """Twice the sensitivity, and every call: dearer than the formula's 38.7, but finite."""
    recipe = tmp_path / "paper.toml"
    text = PAPER.replace("[rona]", "test_is_public = true\n[rona]")
    recipe.write_text(
        text.replace("[privacy]", "[published]\nreading = 'residual'\nsigma = 400\n[privacy]")
    )
    facts = json.loads(planned(recipe, capsys, "--json"))
    assert 0 < facts["epsilon"] < 8
    assert list(facts["draws"].values()) == [3200]
