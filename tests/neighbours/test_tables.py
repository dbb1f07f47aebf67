"""Neighbouring tables: what is clamped, unknown or missing shows in no byte that leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.visits import STRANGE, csv_text, schema_text, strange, visits
from neighbours.harness import Tape, everything
from stillroom.data import Schema
from stillroom.data.loading import load_split

RECIPE = """
[data]
source = "data.csv"
declared_size = 40
test = "1/4"
test_is_public = false
{data}
[features]
name = "table"
pairs = "all"
[engine]
kind = "serial"
{method}
[privacy]
epsilon = 4
{privacy}
"""
TRAINING = "[training]\nsteps = 2\nrate = 1\n"
PG = '[collection]\nmodels = 5\nshard_cap = 12\nstart = "common"\n[pg]\nrounds = 2\n'
PERSONS = 'unit = "person"\nmax_records_per_person = 3'
USUAL = visits(48)


def put(rows) -> None:
    Path("data.csv").write_text(csv_text(rows))
    Path("data.csv").chmod(0o600)


def part_of(tmp_path: Path, name: str) -> str:
    """The part that a record, or a person, of that name falls into."""
    (tmp_path / "a.csv").write_text(csv_text([(name, name, "north", "1", "no", "99", "ill")]))
    (tmp_path / "a.toml").write_text(schema_text())
    split = load_split(
        "a.csv", tmp_path, schema=Schema.read(tmp_path / "a.toml"), key="stillroom", public=0,
        test="1/4",
    )  # fmt: skip
    return "test" if len(split.test) else "sensitive"


def newcomer(tmp_path: Path, part: str) -> str:
    return next(n for n in map("new {}".format, range(99)) if part_of(tmp_path, n) == part)


def neighbours(tmp_path: Path, *, persons: bool):
    """Tables that differ from the usual one by one record, or by one person with four."""
    inside, tested = newcomer(tmp_path, "sensitive"), newcomer(tmp_path, "test")
    if persons:
        own = [strange(kind, f"w{n}", inside) for n, kind in enumerate(STRANGE)]
        return {"a person who is strange in every way": [*own[:2], *USUAL, *own[2:]]}
    found = {kind: [*USUAL, strange(kind, inside)] for kind in STRANGE}
    gone = next(n for n, row in enumerate(USUAL) if part_of(tmp_path, row[0]) == "sensitive")
    changed = (*USUAL[gone][:2], *STRANGE["beyond all ranges"], "well")
    return {
        **found,
        "removed": USUAL[:gone] + USUAL[gone + 1 :],
        "changed": [*USUAL[:gone], changed, *USUAL[gone + 1 :]],
        "tested": [strange("unknown", tested), *USUAL],
    }


WORLDS = {
    "linear": (TRAINING, "", False),
    "persons": (TRAINING, PERSONS, True),
    "pg": (PG, "", False),
}


@pytest.mark.parametrize("name", WORLDS)
def test_neighbours_cannot_be_told_apart(tmp_path, name):
    method, data, persons = WORLDS[name]
    schema = Schema.of(_toml(schema_text(persons=persons))).toml()
    privacy = "evaluation_records_per_person = 2" if persons else ""
    head = 'method = "pg"\npurpose = "benchmark"\n' if name == "pg" else ""
    recipe = head + RECIPE.format(data=data, method=method, privacy=privacy) + schema
    tape = Tape()
    with pytest.MonkeyPatch.context() as patch:
        first = everything(tmp_path / "first", patch, tape, [USUAL], recipe, put=put)
    assert not any(first.codes[1:]), first.said
    found = neighbours(tmp_path, persons=persons)
    if name == "pg":
        found = {kind: found[kind] for kind in ("unknown", "missing")}
    for number, (kind, rows) in enumerate(found.items()):
        tape.played = 0
        with pytest.MonkeyPatch.context() as patch:
            other = everything(tmp_path / f"{number}", patch, tape, [rows], recipe, put=put)
        assert first.differences(other) == [], kind
        assert tape.played == len(tape.answers)


def _toml(text: str):
    import tomllib

    return tomllib.loads(text)
