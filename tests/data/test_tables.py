"""Tables are read by their schema: every column accounted for, every bad line named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.visits import HEADER, STRANGE, csv_text, schema_text, strange, visits
from stillroom.data import Schema, read_table
from stillroom.data.loading import load_split
from stillroom.data.schema_draft import Draft
from stillroom.data.store import load_parts
from stillroom.errors import BadInput


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "schema.toml").write_text(schema_text())
    return Schema.read(tmp_path / "schema.toml")


@pytest.fixture
def written(tmp_path):
    def write(text: str | bytes, name: str = "visits.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_columns_may_stand_in_any_order(schema, written):
    rows = visits(20)
    usual = read_table(written(csv_text(rows)), schema)
    back = csv_text([row[::-1] for row in rows], HEADER[::-1])
    turned = read_table(written(back), schema)
    assert np.array_equal(usual.x, turned.x)
    assert np.array_equal(usual.y, turned.y)
    assert usual.ids == turned.ids == tuple(row[0] for row in rows)
    assert usual.columns == schema.columns
    assert usual.persons is None


def test_spaces_quotes_and_a_byte_order_mark_change_nothing(schema, written):
    rows = visits(20)
    usual = read_table(written(csv_text(rows)), schema)
    text = "\ufeff" + ", ".join(f'"{name}"' for name in HEADER) + "\r\n\r\n"
    text += "".join(", ".join(f'"{cell} "' for cell in row) + "\r\n" for row in rows)
    odd = read_table(written(text), schema)
    assert np.array_equal(usual.x, odd.x)
    assert usual.ids == odd.ids


def test_a_ledger_knows_rows_again_under_another_schema(schema, written):
    """Without ids: the cells decide, so that a new range is no new budget."""
    told = {name: value for name, value in schema.document.items() if name != "id"}
    told["ignored"] = [*told.get("ignored", []), "visit"]
    first = read_table(written(csv_text(visits(20))), Schema.of(told))
    number, *others = told["numbers"]
    narrow = {**told, "numbers": [{**number, "high": number["low"] + 1}, *others]}
    second = read_table(
        written(csv_text([row[::-1] for row in visits(20)], HEADER[::-1])), Schema.of(narrow)
    )
    assert not np.array_equal(first.x, second.x)
    assert first.ids == second.ids
    assert first.ids_from_content
    assert len(set(first.ids)) == 20
    changed = [*visits(20)[:-1], (*visits(20)[-1][:1], *visits(19)[-1][1:])]
    assert read_table(written(csv_text(changed)), Schema.of(told)).ids[:-1] == first.ids[:-1]


def test_other_spellings_of_a_class_are_declared(schema, written):
    read = read_table(written(csv_text([(*visits(1)[0][:-1], "ill.")])), schema)
    assert read.y.tolist() == [1]


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_cells_are_read_and_move_no_other_record(schema, written, kind):
    rows = visits(20)
    usual = read_table(written(csv_text(rows)), schema)
    more = read_table(written(csv_text([*rows, strange(kind, "new")])), schema)
    assert np.array_equal(more.x[:-1], usual.x)
    assert more.ids[:-1] == usual.ids
    low = np.array([0.0, 60.0, 0, 0]) - [100, 0, 0, 0]  # an age may be missing
    assert (more.x >= low).all()
    assert (more.x <= [100, 220, 3, 2]).all()


def test_many_rows_are_read_as_few_are(schema, written):
    rows = visits(9000)
    read = read_table(written(csv_text(rows)), schema)
    assert len(read) == 9000
    alone = read_table(written(csv_text(rows[8000:8001])), schema)
    assert np.array_equal(read.x[8000], alone.x[0])


def line(**cells: str) -> tuple[str, ...]:
    usual = dict(zip(HEADER, visits(1)[0], strict=True))
    return tuple(
        {**usual, **{name.replace("_", " "): cell for name, cell in cells.items()}}.values()
    )


SECRET = "hunter2"
REFUSED = {
    "an unknown column": (csv_text([(*line(), "1")], (*HEADER, "weight")), "column 8 ('weight')"),
    "a missing column": (csv_text([line()[1:]], HEADER[1:]), "no column called 'visit'"),
    "a column twice": (csv_text([(*line(), "1")], (*HEADER, "age")), "more than one column"),
    "no header": (csv_text([line()], line()), "no column called"),
    "a number that is text": (csv_text([line(), line(age=SECRET)]), "line 3, column 4 ('age')"),
    "a number that is none": (csv_text([line(age="nan")]), "line 2, column 4 ('age')"),
    "nothing where something must be": (csv_text([line(smoker="")]), "a cell is missing"),
    "an unknown class": (csv_text([line(state=SECRET)]), "not among the classes"),
    "a line too short": (csv_text([line()[:-1]]), "as many cells"),
    "a line too long": (csv_text([(*line(), "")]), "as many cells"),
    "an id twice": (csv_text([line(), line()]), "occurs twice"),
    "no id": (csv_text([line(visit="")]), "is empty"),
    "no record": (csv_text([]), "no records"),
    "nothing": ("", "no column called"),
    "an id that is a book": (csv_text([line(visit="x" * 2000)]), "more than 1000"),
    "an open quote": (csv_text([line(visit='"x')]), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_bad_files_are_refused_by_place_and_without_content(schema, written, fault):
    text, says = REFUSED[fault]
    with pytest.raises(BadInput) as caught:
        read_table(written(text), schema)
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_schema_is_for_csv_files(schema, tmp_path, written):
    np.savez(tmp_path / "data.npz", x=np.eye(2), y=[0, 1])
    for name in (tmp_path / "data.npz", tmp_path, "digits"):
        with pytest.raises(BadInput, match="for a CSV file"):
            load_parts(name, schema=schema)


def test_train_and_test_may_be_two_files(schema, tmp_path, written):
    rows = visits(30)
    written(csv_text(rows[:20]), "train.csv")
    written(csv_text(rows[20:]), "test.csv")
    split = load_split(
        "train.csv", tmp_path, schema=schema, test_file="test.csv", split="as-given",
        public=0, test="1/5",
    )  # fmt: skip
    assert split.sensitive.ids == tuple(row[0] for row in rows[:20])
    assert split.test.ids == tuple(row[0] for row in rows[20:])


def test_two_files_of_other_columns_are_refused(tmp_path, written):
    written("a,b,label\n1,2,0\n3,4,1\n", "train.csv")
    written("b,a,label\n1,2,0\n3,4,1\n", "test.csv")
    with pytest.raises(BadInput, match="columns of the two files differ"):
        load_split(
            "train.csv", tmp_path, classes=2, test_file="test.csv", split="as-given",
            public=0, test="1/5",
        )  # fmt: skip


def test_two_files_that_share_an_id_are_refused(schema, tmp_path, written):
    written(csv_text(visits(20)), "train.csv")
    with pytest.raises(BadInput, match="in two parts"):
        load_split(
            "train.csv", tmp_path, schema=schema, test_file="train.csv", split="as-given",
            public=0, test="1/5",
        )  # fmt: skip


def test_a_draft_names_columns_and_measures_nothing(written):
    path = written(csv_text(visits(20)))
    draft = Draft.of(path, "state", "visit", "patient")
    assert draft.numbers == ("age", "blood pressure")
    assert draft.categories == ("ward", "smoker")
    # Other rows with the same names and types give the same draft, to the letter.
    other = Draft.of(written(csv_text(visits(7, seed=9))), "state", "visit", "patient")
    assert draft.toml() == other.toml()
    with pytest.raises(BadInput) as caught:
        Schema.read(written(draft.toml(), "draft.toml"))
    for name in ("age", "blood pressure", "ward", "smoker", "label"):
        assert name in caught.value.what
    filled = draft.toml().replace('low = "fill in", high = "fill in"', "low = 0, high = 200")
    filled = filled.replace('["fill in"]', '["yes", "no"]')
    assert Schema.read(written(filled, "draft.toml")).columns == (
        "age", "blood pressure", "ward", "smoker",
    )  # fmt: skip


def test_a_draft_needs_a_header(written):
    with pytest.raises(BadInput, match="exactly one column called 'state'"):
        Draft.of(written(csv_text(visits(3), visits(1)[0])), "state")
