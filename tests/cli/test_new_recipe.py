"""A draft of a recipe is one that a check accepts, and tells no count."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

from stillroom.cli import run as stillroom
from stillroom.data import digits
from stillroom.methods.registry import read
from stillroom.pipeline.checking import check
from stillroom.pipeline.release import release
from stillroom.vocabulary import Budget, Pair


@pytest.fixture(autouse=True)
def here(request, tmp_path, monkeypatch):
    if "priced" not in request.fixturenames:
        request.getfixturevalue("quick")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return folder


def scans(folder, count=100, size=lambda number: (16, 16), mode=lambda number: "L"):
    for number in range(count):
        label = "ill" if number % 2 else "well"
        place = folder / "scans" / label / f"person{number // 3}_{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode(number), size(number), 9 * (number % 20)).save(place)


def table(folder, header="visit,person,age,dose,label"):
    lines = [f"{n},{n // 2},{n % 7},{n % 11},{n % 2}" for n in range(200)]
    (folder / "visits.csv").write_text("\n".join([header, *lines]) + "\n")


def arrays(folder):
    data = digits()
    np.savez(folder / "scans.npz", x=data.x[:300], y=data.y[:300])


def official(folder):
    data = digits()
    parts = {"x_train": data.x[:300], "y_train": data.y[:300]}
    np.savez(folder / "parts.npz", **parts, x_test=data.x[300:400], y_test=data.y[300:400])


BASE = ["--declared-size", "80", "--epsilon", "3", "-o", "recipe.toml"]
RECORDS = ["--unit", "record", *BASE]
PEOPLE = ["--unit", "person", "--max-records", "3", *BASE]
CASES = {
    "name": ("digits", None, RECORDS),
    "pictures": ("scans", scans, RECORDS),
    "pictures of persons": (
        "scans",
        scans,
        [*PEOPLE, "--person-pattern", "^(person[0-9]+)_"],
    ),
    "a table": (
        "visits.csv",
        table,
        [*RECORDS, "--classes", "2", "--id-column", "visit", "--person-column", "person"],
    ),
    "a table of persons": (
        "visits.csv",
        table,
        [*PEOPLE, "--classes", "2", "--id-column", "visit", "--person-column", "person"],
    ),
    "arrays": ("scans.npz", arrays, [*RECORDS, "--classes", "10"]),
    "official parts": ("parts.npz", official, [*RECORDS, "--classes", "10"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_check_accepts_every_draft(here, case):
    source, make, flags = CASES[case]
    if make is not None:
        make(here)
    assert stillroom(["recipe", "new", "--data", source, *flags]) == 0
    recipe, text = read(here / "recipe.toml")
    report = check(here / "recipe.toml")
    assert report.could_start, report.misfits
    assert recipe.data.unit == flags[1]
    assert recipe.data.declared_size == 80
    assert recipe.privacy.epsilon == 3
    if case == "official parts":
        assert recipe.data.split == "as-given"
    # Every line that says something says what it means.
    said = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert {line for line in said if "#" not in line} <= {"[data]", "[privacy]"}


@pytest.mark.parametrize("unit", ["record", "person"])
@pytest.mark.parametrize(
    "flags",
    [
        "--method direct",
        "--method dpdfd",
        "--method pg --test-is-public",
        "--method rona --public 2/5",
        "--method votes --public 1/2 --entities 30 --test-is-public",
    ],
)
def test_every_method_has_drafts_that_a_check_accepts(here, flags, unit):
    data = digits()
    persons = np.arange(len(data)) // 2
    np.savez(here / "visits.npz", x=data.x, y=data.y, persons=persons)
    words = ["--data", "visits.npz", "--classes", "10", "--unit", unit, *flags.split()]
    size = ["--declared-size", "700", "--epsilon", "3", "-o", "recipe.toml"]
    assert stillroom(["recipe", "new", *words, *size, "--full-scale", "16"]) == 0
    report = check(here / "recipe.toml")
    assert report.could_start, report.misfits


@pytest.fixture
def priced():
    """With the noise that a release would have."""


@pytest.mark.parametrize("epsilon", ["0.1", "3"])
def test_a_small_epsilon_gets_more_noise_on_its_test(here, epsilon, priced):
    flags = ["--unit", "record", "--declared-size", "500", "--epsilon", epsilon, "-o", "r.toml"]
    assert stillroom(["recipe", "new", "--data", "digits", *flags]) == 0
    report = check(here / "r.toml")
    assert report.could_start
    assert 0.95 * float(epsilon) < report.facts["epsilon"] <= float(epsilon)


def test_no_count_is_written(here, capsys):
    scans(here, count=137)
    flags = ["--unit", "record", *BASE]
    assert stillroom(["recipe", "new", "--data", "scans", *flags]) == 0
    numbers = set(re.findall(r"\d+", (here / "recipe.toml").read_text()))
    assert not numbers & {"137", "69", "68"}
    assert "looked at: names of class folders" in capsys.readouterr().out


def test_pictures_of_several_sizes_get_one(here, capsys):
    scans(here, size=lambda n: (70 + n, 66), mode=lambda n: "RGB" if n % 3 else "L")
    flags = ["--size", "64", "--mode", "grey", *RECORDS]
    assert stillroom(["recipe", "new", "--data", "scans", *RECORDS]) == 0
    data = read(here / "recipe.toml")[0].data
    assert (data.size, data.mode) == (64, "colour")
    assert check(here / "recipe.toml").could_start
    assert "brought to size = 64" in capsys.readouterr().out
    (here / "recipe.toml").unlink()
    assert stillroom(["recipe", "new", "--data", "scans", *flags]) == 0
    assert read(here / "recipe.toml")[0].data.mode == "grey"
    assert check(here / "recipe.toml").facts["shape"] == [64, 64]


def test_without_a_terminal_the_missing_flags_are_named(here, capsys):
    assert stillroom(["recipe", "new", "--data", "digits"]) == 2
    told = capsys.readouterr().err
    assert "not said: --unit, --declared-size, --epsilon, -o" in told
    assert stillroom(["recipe", "new"]) == 2
    assert "--data" in capsys.readouterr().err
    table(here)
    assert stillroom(["recipe", "new", "--data", "visits.csv", *PEOPLE]) == 2
    told = capsys.readouterr().err
    assert "--classes" in told
    assert "--person-column, --person-pattern or --persons" in told
    assert not (here / "recipe.toml").exists()


def test_a_recipe_is_never_overwritten(here, capsys):
    (here / "recipe.toml").write_text("mine")
    assert stillroom(["recipe", "new", "--data", "digits", *RECORDS]) == 2
    assert "already a file" in capsys.readouterr().err
    assert (here / "recipe.toml").read_text() == "mine"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_at_a_terminal_it_asks(here, monkeypatch, capsys):
    scans(here)
    answers = [
        *("scans", "", "people", "person", "^(person[0-9]+)_", "3"),
        *("many", "30", "2", "perhaps", "no", "recipe.toml"),
    ]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(answers) + "\n"))
    assert stillroom(["recipe", "new"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Who is protected") == 2
    data = read(here / "recipe.toml")[0].data
    assert (data.unit, data.max_records_per_person, data.declared_size) == ("person", 3, 30)
    assert not data.test_is_public
    assert check(here / "recipe.toml").could_start


def test_a_proposed_size_has_one_digit_and_must_be_confirmed(here, monkeypatch, capsys):
    scans(here, count=137)
    answers = ["scans", "", "record", "", "3", "", "recipe.toml"]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(answers) + "\n"))
    assert stillroom(["recipe", "new"]) == 0
    assert "never the count) [80]" in capsys.readouterr().out
    assert read(here / "recipe.toml")[0].data.declared_size == 80


def test_answers_that_end_too_early(here, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Terminal("digits\n"))
    assert stillroom(["recipe", "new"]) == 2
    assert "--method" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--method", "direct", "--public", "1/2"], "has no public part"),
        (["--method", "rona", "--public", "2"], "no number between 0 and 1"),
        (["--method", "rona", "--public", "half"], "no number between 0 and 1"),
        (["--method", "rona"], None),
        (["--method", "votes", "--entities", "9"], "needs a public test part"),
    ],
)
def test_the_public_share(here, capsys, flags, told):
    code = stillroom(["recipe", "new", "--data", "digits", *RECORDS, *flags])
    assert code == (0 if told is None else 2)
    assert told is None or told in capsys.readouterr().err


def test_tables_that_need_more_than_numbers(here, capsys):
    words = ["recipe", "new", "--data", "visits.csv", *RECORDS, "--classes", "2"]
    table(here, "visit,person,age,dose,state")
    assert stillroom(words) == 2
    assert "'label'" in capsys.readouterr().err
    (here / "visits.csv").write_text("ward,age,label\nnorth,5,0\nsouth,7,1\n")
    assert stillroom(words) == 2
    told = capsys.readouterr().err
    assert "columns hold text: ward" in told
    assert "north" not in told


SCHEMA = """
id = "visit"
person = "patient"
[label]
column = "state"
classes = ["well", "ill"]
[numbers]
age = {low = 0, high = 100}
[categories]
ward = ["north", "south"]
"""


@pytest.mark.parametrize("unit", ["record", "person"])
def test_a_table_with_its_schema(here, unit):
    rows = [
        f"v{n},p{n // 2},{20 + n % 60},{'north' if n % 3 else 'south'},{'ill' if n % 2 else 'well'}"
        for n in range(200)
    ]
    (here / "visits.csv").write_text("\n".join(["visit,patient,age,ward,state", *rows]) + "\n")
    (here / "schema.toml").write_text(SCHEMA)
    flags = ["--schema", "schema.toml", "--unit", unit, "--max-records", "2", *BASE]
    assert stillroom(["recipe", "new", "--data", "visits.csv", *flags]) == 0
    report = check(here / "recipe.toml")
    assert report.could_start, report.misfits
    assert read(here / "recipe.toml")[0].features.name == "table"


def test_a_draft_lies_in_another_folder_than_its_data(here):
    scans(here)
    (here / "recipes").mkdir()
    flags = ["--unit", "record", "--declared-size", "80", "--epsilon", "3"]
    assert stillroom(["recipe", "new", "--data", "scans", *flags, "-o", "recipes/a.toml"]) == 0
    assert read(here / "recipes" / "a.toml")[0].data.source == "../scans"
    assert check(here / "recipes" / "a.toml").could_start


@pytest.mark.slow
def test_a_draft_is_released(here, priced):
    data = digits()
    persons = np.arange(len(data)) // 2
    np.savez(here / "visits.npz", x=data.x, y=data.y, persons=persons)
    words = ["--data", "visits.npz", "--classes", "10", "--unit", "person", "--max-records", "2"]
    flags = ["--declared-size", "700", "--epsilon", "8", "-o", "r.toml", "--test-is-public"]
    assert stillroom(["recipe", "new", *words, *flags]) == 0
    budget = Budget(8.0, 1e-5, Pair.parse("person/add-or-remove"))
    made = release(here / "r.toml", here / "model", budget=budget)
    assert made["sections"]["evaluation"]["accuracy"] > 0.8
