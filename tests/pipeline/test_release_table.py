"""A table, from its file to a stranger's answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from data.visits import HEADER, csv_text, schema_text, visits
from stillroom.cli import run
from stillroom.data import Schema, read_table
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Budget
from stillroom.pipeline.release import release
from stillroom.pipeline.verify import verify
from stillroom.release.artefacts import artefacts_in
from stillroom.release.predict import predict
from stillroom.vocabulary import Pair

RECIPE = """
purpose = "benchmark"
{head}
[data]
source = "visits.csv"
schema = "schema.toml"
declared_size = 300
{data}
[features]
name = "table"
{features}
[engine]
kind = "serial"
[privacy]
epsilon = 8
{more}
"""
TRAINING = "[training]\nsteps = 12\nrate = 1\n"
ROWS = visits(400)


def put(folder: Path, *, persons: bool = False, **parts: str) -> Path:
    """Data, schema and recipe."""
    told = {"head": "", "data": "test_is_public = true", "features": "", "more": TRAINING}
    (folder / "visits.csv").write_text(csv_text(ROWS))
    (folder / "schema.toml").write_text(schema_text(persons=persons))
    (folder / "recipe.toml").write_text(RECIPE.format(**{**told, **parts}))
    return folder / "recipe.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLROOM_HOME", str(folder / "home"))
        recipe = put(folder, features='pairs = [["age", "smoker"]]')
        release(recipe, folder / "bundle", budget=Budget(20, 1e-5))
    return folder


def answers(bundle: Path, file: Path, capsys) -> dict[str, str]:
    assert run(["predict", str(bundle), str(file)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    return {name: label for name, label, _ in lines}


def test_it_learns_and_verifies(made):
    assert verify(made / "bundle")["recipe"] == "comes to what the certificate says"
    certificate = json.loads((made / "bundle" / "certificate.json").read_text())
    assert certificate["sections"]["evaluation"]["accuracy"] > 0.75
    (model,) = certificate["artefacts"]
    schema = Schema.read(made / "schema.toml")
    assert Schema.of(model["schema"]) == schema
    assert model["columns"] == list(schema.columns)
    assert model["shape"] == [4]


def test_predict_finds_columns_by_name_in_any_order(made, tmp_path, capsys):
    whole = answers(made / "bundle", made / "visits.csv", capsys)
    assert list(whole) == [row[0] for row in ROWS]
    x = read_table(made / "visits.csv", Schema.read(made / "schema.toml")).x
    labels, _ = predict(made / "bundle", x)
    assert list(whole.values()) == [("well", "ill")[label] for label in labels]
    # Without labels, persons and ids, other columns between, turned around: the same answers.
    kept = [3, 5, 2, 4]
    few = [(*(row[i] for i in kept), "a remark") for row in ROWS]
    (tmp_path / "few.csv").write_text(csv_text(few, (*(HEADER[i] for i in kept), "remark")))
    assert list(answers(made / "bundle", tmp_path / "few.csv", capsys).values()) == list(
        whole.values()
    )


def test_predict_clamps_and_takes_the_unknown_as_other(made, tmp_path, capsys):
    def label(ward, age, smoker, pressure):
        row = ("v", "p", ward, age, smoker, pressure, "")
        (tmp_path / "one.csv").write_text(csv_text([row]))
        return answers(made / "bundle", tmp_path / "one.csv", capsys)["v"]

    assert label("north", "1e400", "yes", "-inf") == label("north", "100", "yes", "60")
    assert label("mars", "50", "?!", "120") == label("venus", "50", "often", "?")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (("v", "p", "north", "old", "yes", "120", ""), "not a number"),
        (("v", "p", "north", "nan", "yes", "120", ""), "not a number"),
        (("v", "p", "north", "50", "", "120", ""), "a cell is missing"),
    ],
)
def test_predict_refuses_what_training_refused(made, tmp_path, capsys, cells, says):
    (tmp_path / "one.csv").write_text(csv_text([cells]))
    assert run(["predict", str(made / "bundle"), str(tmp_path / "one.csv")]) == 2
    assert says in capsys.readouterr().err


def test_predict_names_the_columns_that_are_missing(made, tmp_path, capsys):
    (tmp_path / "few.csv").write_text("age,ward\n5,north\n")
    assert run(["predict", str(made / "bundle"), str(tmp_path / "few.csv")]) == 2
    told = capsys.readouterr().err
    assert "blood pressure" in told
    assert "smoker" in told


def test_another_schema_in_the_onnx_file_does_not_verify(made, tmp_path):
    from methods.forging import forge, rehash

    folder = Path(shutil.copytree(made / "bundle", tmp_path / "bundle"))
    graph = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(graph.replace(b"south wing", b"north wing"))
    assert graph != (folder / "model.onnx").read_bytes()
    rehash(folder)
    document = json.loads((folder / "certificate.json").read_text())
    forge(folder, document, None)
    with pytest.raises(DoesNotVerify, match="cannot be read with certainty"):
        verify(folder)
    contents = {f.name: f.read_bytes() for f in folder.glob("model.*")}
    with pytest.raises(ValueError, match="another schema"):
        artefacts_in(contents)


def test_a_recipe_with_another_schema_does_not_verify(made, tmp_path):
    from methods.forging import forge
    from stillroom.release.files import sha256

    folder = Path(shutil.copytree(made / "bundle", tmp_path / "bundle"))
    recipe = folder / "recipe.toml"
    for old, new in (
        ("high = 100", "high = 99"),
        ("south wing", "south"),
        ("bins = 4", "bins = 5"),
    ):
        honest = (made / "bundle" / "recipe.toml").read_text()
        assert old in honest
        recipe.write_text(honest.replace(old, new))
        document = json.loads((made / "bundle" / "certificate.json").read_text())
        document["recipe"] = sha256(recipe.read_bytes())
        forge(folder, document, None)
        with pytest.raises(DoesNotVerify, match=r"recipe\.toml comes to: artefacts"):
            verify(folder)


PG = """
[collection]
models = 9
shard_cap = 60
start = "common"
[pg]
rounds = 2
"""


@pytest.mark.usefixtures("quick_exporter")
def test_pg_publishes_heads_over_tables(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    recipe = put(tmp_path, head='method = "pg"', more=PG)
    release(recipe, tmp_path / "bundle", budget=Budget(20, 1e-5))
    assert verify(tmp_path / "bundle")["recipe"] == "comes to what the certificate says"


def test_persons_are_named_by_the_schema(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    recipe = put(tmp_path, persons=True, data='unit = "person"\nmax_records_per_person = 2')
    budget = Budget(20, 1e-5, Pair.parse("person/add-or-remove"))
    certificate = release(recipe, tmp_path / "bundle", budget=budget)
    assert certificate["unit"] == "person"
    assert certificate["facts"]["persons"] is True


def test_train_and_test_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    own = 'test_is_public = true\nsplit = "as-given"\ntest_file = "test.csv"'
    recipe = put(tmp_path, data=own)
    (tmp_path / "visits.csv").write_text(csv_text(ROWS[:300]))
    (tmp_path / "test.csv").write_text(csv_text(ROWS[300:]))
    certificate = release(recipe, tmp_path / "bundle", budget=Budget(20, 1e-5))
    assert np.sum(certificate["sections"]["evaluation"]["confusion"]) == 100


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (csv_text([(*ROWS[0], "1")], (*HEADER, "weight")), "weight"),
        (csv_text(ROWS[:9], (*HEADER[:6], "status")), "state"),
        (csv_text([*ROWS[:9], (*ROWS[9][:3], "old", *ROWS[9][4:])]), "line 11"),
    ],
)
def test_nothing_is_stored_where_the_file_does_not_fit(tmp_path, monkeypatch, text, says):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    recipe = put(tmp_path)
    (tmp_path / "visits.csv").write_text(text)
    with pytest.raises(BadInput, match=says):
        release(recipe, tmp_path / "bundle", budget=Budget(20, 1e-5))
    assert not (tmp_path / "ledger.sqlite").exists()
    assert not (tmp_path / "bundle").exists()
