"""A check finds all that a release would refuse, and leaves no trace."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stillroom.cli import run as stillroom
from stillroom.data import digits
from stillroom.errors import BadInput, StillroomError
from stillroom.gate import Budget, Ledger
from stillroom.pipeline import packages
from stillroom.pipeline.checking import check, memory
from stillroom.pipeline.release import release
from stillroom.vocabulary import Pair

RECIPE = """
ledger = "{ledger}"
purpose = "{purpose}"
[data]
source = "{source}"
{data}
declared_size = {declared}
test_is_public = {public}
[features]
name = "pixels"
[training]
steps = 5
rate = 1
[privacy]
epsilon = {epsilon}
"""
BUDGET = Budget(4.0, 1e-5)
USUAL = {
    "ledger": "ledger.sqlite",
    "purpose": "release",
    "source": "digits",
    "data": "",
    "declared": 1440,
    "public": "true",
    "epsilon": 1.0,
}


def recipe_in(folder, name="recipe.toml", **told):
    file = folder / name
    file.write_text(RECIPE.format(**{**USUAL, **told}))
    return file


def everything(*folders):
    """Every file below these folders: its bytes, and when it was changed."""
    files = (file for folder in folders for file in sorted(folder.rglob("*")))
    return {
        str(file): (file.read_bytes() if file.is_file() else None, file.stat().st_mtime_ns)
        for file in files
    }


def whats(report):
    return [misfit.what for misfit in report.misfits]


@pytest.fixture
def paid(tmp_path):
    """A folder with a finished release, its ledger and its home."""
    recipe = recipe_in(tmp_path)
    release(recipe, tmp_path / "model", budget=BUDGET)
    return recipe


def test_a_check_leaves_no_trace(tmp_path, paid):
    before = everything(tmp_path)
    assert str(tmp_path / "home" / "known-ledgers.sqlite") in before
    assert check(paid, tmp_path / "another").could_start
    assert check(paid, tmp_path / "model").could_start
    other = recipe_in(tmp_path, "other.toml", ledger="other.sqlite")
    assert not check(other).could_start
    (tmp_path / "other.toml").unlink()
    after = everything(tmp_path)
    assert {n: v for n, v in after.items() if before.get(n) != v}.keys() <= {str(tmp_path)}
    assert after.keys() == before.keys()


def test_a_check_of_unreadable_data_leaves_no_trace_either(tmp_path):
    (tmp_path / "visits.csv").write_text("a,label\nx,0\n1,9\n")
    recipe = recipe_in(tmp_path, source="visits.csv", data="classes = 2")
    before = everything(tmp_path)
    assert len(check(recipe, tmp_path / "model").misfits) == 2
    assert everything(tmp_path) == before


@pytest.mark.parametrize("method", ["rona", "dpdfd", "votes", "pg", "rona-ensemble"])
def test_no_method_trains_or_keeps_anything(tmp_path, monkeypatch, method):
    from stillroom.models import fit, supervised

    def trained(*given, **more):
        raise AssertionError("a check trains nothing")

    monkeypatch.setattr(supervised.SupervisedTraining, "run", trained, raising=False)
    monkeypatch.setattr(fit, "fit", trained, raising=False)
    examples = Path(__file__).parents[2] / "examples"
    recipe = tmp_path / f"{method}.toml"
    recipe.write_text((examples / f"{method}.toml").read_text())
    before = everything(tmp_path)
    report = check(recipe)
    assert report.could_start, whats(report)
    assert "epsilon" in report.facts
    assert everything(tmp_path) == before


def test_the_operator_is_told_what_is_there(tmp_path):
    report = check(recipe_in(tmp_path, public="false", declared=100))
    assert report.facts["shape"] == [8, 8]
    assert report.facts["records"]["sensitive"] == sum(report.per_class["sensitive"].values())
    assert report.facts["records"]["test"] == report.facts["tested"] > 300
    assert 0.99 < report.facts["epsilon"] <= 1.0
    notes = " ".join(report.notes)
    assert "declared_size is 100" in notes
    assert "times longer" in notes
    assert "there is no ledger" in notes


def test_every_fault_of_a_table_is_found_in_one_go(tmp_path):
    lines = ["visit,age,dose,label", "1,50,x,0", "2,,1,0", "3,nan,1,0", "4,50,1,7", "4,50,1,1"]
    (tmp_path / "visits.csv").write_text("\n".join([*lines, "5,50,1", "6,50,y,0"]) + "\n")
    recipe = recipe_in(
        tmp_path, source="visits.csv", data='classes = 2\nid_column = "visit"', declared=4
    )
    report = check(recipe)
    assert not report.could_start
    found = {misfit.what: misfit.where for misfit in report.misfits}
    assert list(found) == [
        "a feature is not a number",
        "a feature is missing",
        "a feature is not a finite number",
        "a label is not among the given classes",
        "an id occurs twice",
        "a line has not as many cells as the header has columns",
    ]
    assert found["a feature is not a number"].endswith("line 2, 8: column 3 ('dose')")
    assert all(misfit.remedy for misfit in report.misfits)
    with pytest.raises(StillroomError):
        release(recipe, tmp_path / "out", budget=BUDGET)


def picture(place, size=(8, 8), mode="L"):
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size).save(place)


def test_every_fault_of_a_folder_is_found_in_one_go(tmp_path):
    scans = tmp_path / "scans"
    for number in range(5):
        picture(scans / "ill" / f"{number}.png")
    picture(scans / "well" / "1.png", (9, 8))
    picture(scans / "well" / "2.png", mode="RGB")
    for number in range(4):
        (scans / "well" / f"broken{number}.png").write_bytes(b"no picture")
    (scans / "odd").mkdir()
    recipe = recipe_in(tmp_path, source="scans", data='classes = ["ill", "well"]')
    what = whats(check(recipe))
    assert "a sub-folder is not among the given classes" in what
    assert "a class folder holds no pictures" in what
    assert any("no readable picture" in one for one in what)
    mixed = next(one for one in what if "different sizes or modes" in one)
    assert "3 different" in mixed
    assert "5 of 8x8 uint8" in mixed
    broken = next(m for m in check(recipe).misfits if "no readable" in m.what)
    assert broken.where.endswith("and 1 more")


def test_classes_without_records_are_pointed_out(tmp_path):
    scans = tmp_path / "scans"
    for number in range(60):
        picture(scans / "ill" / f"{number}.png")
    for number in range(4):
        picture(scans / "well" / f"{number}.png")
    classes = 'classes = ["ill", "well", "gone"]\nperson_pattern = "^([0-9]+)"'
    notes = " ".join(check(recipe_in(tmp_path, source="scans", data=classes, declared=50)).notes)
    assert "no sensitive record is of class gone" in notes
    assert "sensitive records of class well" in notes


def visits(folder, people=40, each=3):
    data = digits()
    with (folder / "visits.csv").open("w") as file:
        print("person,label", *(f"p{i}" for i in range(64)), sep=",", file=file)
        for row in range(people * each):
            print(row // each, data.y[row], *data.x[row].ravel(), sep=",", file=file)


PERSONS = 'classes = 10\nperson_column = "person"\nunit = "person"\n'


def test_what_a_cap_leaves_out_is_told(tmp_path):
    visits(tmp_path)
    told = {"source": "visits.csv", "declared": 30}
    small = check(recipe_in(tmp_path, data=PERSONS + "max_records_per_person = 2", **told))
    persons = small.facts["persons"]["sensitive"]
    assert small.facts["records_left_out_by_cap"] == persons
    assert small.facts["records_of_a_person_at_most"] == 3
    assert any(f"leaves out {persons}" in note for note in small.notes)
    large = check(recipe_in(tmp_path, data=PERSONS + "max_records_per_person = 3", **told))
    assert large.facts["records_left_out_by_cap"] == 0
    assert not any("leaves out" in note for note in large.notes)


def test_a_test_part_too_small_for_its_noise_is_pointed_out(tmp_path):
    few = check(recipe_in(tmp_path, public="false", data='test = "1/10"'))
    assert any("will most likely not be told" in note for note in few.notes)
    many = check(recipe_in(tmp_path, public="false", data='test = "1/3"', declared=1200))
    assert not any("will most likely not be told" in note for note in many.notes)


def test_the_ledger_says_what_is_left(tmp_path, paid):
    ledger = check(paid).facts["ledger"]
    assert ledger["budget"] == 4.0
    assert 0 < ledger["share_used"] < 1
    assert ledger["share_needed"] == pytest.approx(ledger["share_used"], rel=0.01)
    again = check(recipe_in(tmp_path, epsilon=3.9))
    assert any("does not fit the budget" in what for what in whats(again))


def test_a_release_that_is_paid_for_goes_on(tmp_path):
    recipe = recipe_in(tmp_path)

    def cut(step, of):
        if step == 2:
            raise KeyboardInterrupt

    from stillroom.sources import Progress

    with pytest.raises(KeyboardInterrupt):
        release(recipe, tmp_path / "model", budget=Budget(1.0, 1e-5), progress=Progress(step=cut))
    before = everything(tmp_path)
    assert check(recipe, tmp_path / "model").facts["ledger"]["paid"] is True
    assert not check(recipe, tmp_path / "another").could_start
    changed = recipe_in(tmp_path, epsilon=0.9)
    assert "another recipe" in " ".join(whats(check(changed, tmp_path / "model")))
    recipe_in(tmp_path)
    after = everything(tmp_path)
    assert {n: v[0] for n, v in after.items()} == {n: v[0] for n, v in before.items()}


def no_budget(folder):
    with closing(Ledger.create(folder / "ledger.sqlite", ids=digits().ids[:20])):
        pass
    return recipe_in(folder)


def other_purpose(folder):
    release(recipe_in(folder), folder / "first", budget=BUDGET)
    return recipe_in(folder, purpose="benchmark")


def other_records(folder):
    with closing(Ledger.create(folder / "ledger.sqlite", ids=["a", "b"])) as made:
        made.set_budget(BUDGET, reason="a test")
    return recipe_in(folder)


def second_ledger(folder):
    release(recipe_in(folder), folder / "first", budget=BUDGET)
    return recipe_in(folder, ledger="second.sqlite")


def opened_test(folder):
    first = recipe_in(folder, "first.toml", public="false", epsilon=2.0)
    release(first, folder / "first", budget=BUDGET)
    return recipe_in(folder)


def other_unit(folder):
    visits(folder)
    data = 'classes = 10\nperson_column = "person"\n'
    first = recipe_in(folder, "first.toml", source="visits.csv", data=data, declared=90)
    release(first, folder / "first", budget=BUDGET)
    return recipe_in(folder, source="visits.csv", data=data + 'unit = "person"', declared=30)


def too_small_a_price(folder):
    text = RECIPE.format(**{**USUAL, "public": "false", "epsilon": 0.05})
    file = folder / "recipe.toml"
    file.write_text(text)
    return file


def no_such_data(folder):
    return recipe_in(folder, source="digit")


def unfit_features(folder):
    visits(folder)
    recipe = recipe_in(folder, source="visits.csv", data="classes = 10")
    recipe.write_text(recipe.read_text().replace('"pixels"', '"edges"'))
    return recipe


def no_persons(folder):
    return recipe_in(folder, data='unit = "person"')


def a_typo(folder):
    recipe = recipe_in(folder)
    recipe.write_text(recipe.read_text().replace("steps", "stepps"))
    return recipe


WORLDS = [
    no_budget,
    other_purpose,
    other_records,
    second_ledger,
    opened_test,
    other_unit,
    too_small_a_price,
    no_such_data,
    unfit_features,
    no_persons,
    a_typo,
]


@pytest.mark.parametrize("world", WORLDS)
def test_a_check_says_what_the_release_would_say(tmp_path, world):
    recipe = world(tmp_path)
    before = everything(tmp_path)
    report = check(recipe, tmp_path / "out")
    assert everything(tmp_path) == before
    with pytest.raises(StillroomError) as refused:
        release(recipe, tmp_path / "out", budget=None if world is no_budget else BUDGET)
    assert str(refused.value) in [str(misfit) for misfit in report.misfits]


def test_misfits_of_all_kinds_come_together(tmp_path, paid):
    (tmp_path / "model" / "recipe.toml").write_text("another")
    recipe = recipe_in(tmp_path, epsilon=3.9, data='unit = "person"')
    found = " ".join(whats(check(recipe, tmp_path / "model", sign_with=tmp_path / "no.key")))
    for part in ("already something at the output", "names no persons", "protects each record"):
        assert part in found.replace("name no", "names no"), part


def test_missing_packages_are_told_before_anything_is_paid(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "onnx" else name)
    report = check(recipe_in(tmp_path))
    (misfit,) = report.misfits
    assert misfit.what == "the package onnx is not installed"
    assert misfit.remedy == "pip install 'stillroom[train]'"
    with pytest.raises(BadInput, match="onnx"):
        release(recipe_in(tmp_path), tmp_path / "out", budget=BUDGET)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_too_little_memory_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "there", lambda: (10, 1 << 40))
    assert any("are free now" in note for note in check(recipe_in(tmp_path)).notes)
    monkeypatch.setattr(memory, "there", lambda: (10, 10))
    assert any("of memory" in what for what in whats(check(recipe_in(tmp_path))))


def test_on_the_command_line(tmp_path, capsys):
    recipe = str(recipe_in(tmp_path))
    assert stillroom(["recipe", "check", recipe, "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "A release could start." in shown
    assert "for your eyes" in shown
    assert stillroom(["recipe", "check", recipe, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["could_start"] is True
    assert told["misfits"] == []
    recipe_in(tmp_path, source="digit")
    assert stillroom(["recipe", "check", recipe, "--json"]) == 2
    assert "digits" in json.loads(capsys.readouterr().out)["misfits"][0]["remedy"]
    assert stillroom(["recipe", "check", recipe]) == 2
    assert "A release could not start: 1 misfit." in capsys.readouterr().out


def test_a_dry_run_opens_no_data(tmp_path, capsys):
    recipe = recipe_in(tmp_path, source="nowhere.csv", data="classes = 2")
    before = everything(tmp_path)
    words = ["release", str(recipe), "-o", str(tmp_path / "out"), "--dry-run", "--json"]
    assert stillroom(words) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] <= 1.0
    assert everything(tmp_path) == before


def test_a_person_in_both_parts_is_found(tmp_path):
    data = digits()
    whose = {f"persons_{part}": np.arange(100) for part in ("train", "test")}
    np.savez(
        tmp_path / "scans.npz",
        x_train=data.x[:100],
        y_train=data.y[:100],
        x_test=data.x[100:200],
        y_test=data.y[100:200],
        **whose,
    )
    recipe = recipe_in(tmp_path, source="scans.npz", data='classes = 10\nsplit = "as-given"')
    assert whats(check(recipe)) == ["a person is in two parts"]


def test_a_budget_of_another_unit_would_lapse(tmp_path):
    visits(tmp_path)
    with closing(Ledger.create(tmp_path / "ledger.sqlite", ids=["x"], unit="person")) as made:
        made.set_budget(Budget(4.0, 1e-5, Pair.parse("person/add-or-remove")), reason="a test")
    assert any(
        "and the recipe protects each record" in w for w in whats(check(recipe_in(tmp_path)))
    )
