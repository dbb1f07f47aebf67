"""From 5,000 files to answers: pictures of 64 px, with persons, through the installed command.

Each phase is a command as a user gives it. Where a command can estimate its own time, the estimate
stands beside what it took.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from PIL import Image

from commands import Taken, taken_by
from measuring import append, result_line
from stillroom.data import load

PICTURES, ASKED, SIDE, PER_PERSON = 5000, 1000, 64, 5
EPSILON, MOST_SECONDS = 3, 600
PATTERN = "^(person[0-9]+)_"

RECIPE = f"""
purpose = "benchmark"
[data]
source = "scans"
size = {SIDE}
mode = "grey"
person_pattern = "{PATTERN}"
unit = "person"
max_records_per_person = {PER_PERSON}
declared_size = {PICTURES // PER_PERSON}
test = "1/5"
test_is_public = true
[features]
name = "scattering"
[training]
rate = 1
steps = 100
clip = "3/10"
learning_rate = 60.0
momentum = 0.9
[privacy]
epsilon = {EPSILON}
"""


def make_files(folder: Path) -> None:
    """Clothes of Fashion-MNIST, enlarged, in class folders; and some more without."""
    train, test = (load("fashion-mnist", part=part) for part in ("train", "test"))
    for number in range(PICTURES):
        place = folder / "scans" / train.classes[train.y[number]].replace("/", " or ")
        place.mkdir(parents=True, exist_ok=True)
        name = f"person{number // PER_PERSON}_{number % PER_PERSON}.png"
        Image.fromarray(train.x[number]).resize((SIDE, SIDE)).save(place / name)
    (folder / "new").mkdir()
    for number in range(ASKED):
        # Of another size and mode, as they come.
        picture = Image.fromarray(test.x[number]).resize((2 * SIDE, SIDE + 30)).convert("RGB")
        picture.save(folder / "new" / f"{number:04}.jpg")


def estimate(recipe: Path, home: Path, to: Path) -> dict[str, object]:
    """What the command expects of its own time; empty where it expects nothing."""
    words = ["release", recipe, "-o", recipe.with_name("never"), "--dry-run", "--json"]
    taken_by(words, home, to)
    told = json.loads(to.read_text())
    return {name: told[name] for name in ("seconds", "estimate", "phases") if name in told}


def walked(folder: Path) -> tuple[dict[str, Taken], dict[str, object], dict[str, object]]:
    """What each phase took; the estimate; and what the release says of itself."""
    home, told, recipe = folder / "home", folder / "told", folder / "recipe.toml"
    bundle = folder / "bundle"
    recipe.write_text(RECIPE)
    release = ["release", recipe, "-o", bundle, "--json"]
    budget = ["ledger", "budget", "set", folder / "ledger.sqlite", "--epsilon", EPSILON]
    person = ["--for", "person/add-or-remove", "--reason", "benchmark"]
    show = ["data", "show", folder / "scans", "--size", SIDE, "--mode", "grey"]
    found = {"look at the pictures": taken_by(show, home, told)}
    expected = estimate(recipe, home, told)
    found["release, until it asks for a budget"] = taken_by(release, home, told, code=2)
    taken_by([*budget, *person], home, told)
    found["release"] = taken_by(release, home, folder / "facts.json")
    found["verify"] = taken_by(["verify", bundle], home, told)
    found[f"predict, {ASKED:,} pictures"] = taken_by(
        ["predict", bundle, folder / "new", "--csv"], home, told
    )
    assert told.read_text().count("\n") == ASKED + 1, "an answer is missing"
    facts = json.loads((folder / "facts.json").read_text())
    return found, expected, facts


def main() -> None:
    """Walk the path, and append one line per phase."""
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as name:
        folder = Path(name)
        make_files(folder)
        phases, expected, facts = walked(folder)
    print(f"accuracy {facts['accuracy']:.1%} at epsilon {facts['epsilon']:.3f} per person")
    rows = []
    for phase, taken in phases.items():
        estimated = expected if phase == "release" else {}
        print(
            f"{phase}: {taken.seconds:.1f} s, {taken.cpu_seconds:.1f} s of processor time,", end=""
        )
        print(f" {taken.peak_mb} MB {estimated or ''}")
        rows.append(
            result_line(
                "whole-path",
                ["numpy", "torch", "onnxruntime", "pillow"],
                dataset=f"{PICTURES:,} pictures of {SIDE} px",
                method="direct",
                unit="person",
                epsilon=facts["epsilon"],
                delta=facts["delta"],
                metric="seconds of processor time",
                mean=round(taken.cpu_seconds, 1),
                draws=1,
                seconds=round(taken.seconds, 1),
                peak_mb=taken.peak_mb,
                phase=phase,
                accuracy=facts["accuracy"],
                estimate=estimated or None,
                lines=[line for line in taken.lines if line[1].strip()] if estimated else None,
            )
        )
    append("whole-path", rows)
    whole = sum(taken.seconds for taken in phases.values())
    print(f"all: {whole:.0f} s")
    if whole > MOST_SECONDS:
        raise SystemExit(f"the whole path takes {whole:.0f} s, not {MOST_SECONDS}")


if __name__ == "__main__":
    main()
