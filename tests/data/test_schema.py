"""A schema says what every cell means, or is refused with every fault named."""

from __future__ import annotations

import copy
import json
import tomllib

import pytest

from data.visits import schema_text
from stillroom.data import Schema
from stillroom.data.columns import Unusable
from stillroom.errors import BadInput

WHOLE = {
    "id": "visit",
    "person": "patient",
    "ignored": ["note"],
    "missing_cells": ["", "?", "-1"],
    "label": {"column": "state", "classes": ["well", "ill"], "aliases": {"ill.": "ill"}},
    "numbers": {"age": {"low": 0, "high": 100, "edges": [18, 65.5]}, "b": {"low": -1, "high": 1e6}},
    "categories": {"ward": ["north", "south wing"], "c": {"values": ["1"], "fill": "other"}},
}


def changed(**parts):
    return {**copy.deepcopy(WHOLE), **parts}


def test_it_is_the_same_after_every_way_it_travels():
    schema = Schema.of(WHOLE)
    assert schema.columns == ("age", "b", "ward", "c")
    assert Schema.of(schema.document) == schema
    assert Schema.of(tomllib.loads(schema.toml())["data"]["schema"]) == schema
    assert Schema.of(tomllib.loads(schema.toml(""))) == schema
    # A certificate sorts the keys of its objects, and columns must stay in their order.
    assert Schema.of(json.loads(json.dumps(schema.document, sort_keys=True))) == schema


def test_a_policy_for_all_columns_is_written_to_each():
    schema = Schema.of(changed(missing="refuse"))
    assert [column.missing for column in schema.of_records] == ["refuse"] * 3 + ["fill"]
    assert Schema.of(schema.document) == schema


AGE = {"low": 0, "high": 100}
FAULTS = {
    "no table": (3, "no table"),
    "no columns": (changed(numbers={}, categories={}), "no column to learn from"),
    "unknown key": (changed(colums=[]), "unknown key 'colums'"),
    "no label": (changed(label=None), "label: is no table"),
    "one class": (changed(label={"column": "a", "classes": ["b"]}), "fewer than two classes"),
    "an alias of nothing": (
        changed(label={"column": "a", "classes": ["b", "c"], "aliases": {"d": "e"}}),
        "aliases",
    ),
    "an alias that is no text": (
        changed(label={"column": "a", "classes": ["b", "c"], "aliases": {"d": ["b"]}}),
        "aliases",
    ),
    "two roles": (changed(id="age"), "age: named twice"),
    "a range without end": (changed(numbers={"a": {"low": 0}}), "numbers.a: high is missing"),
    "a range upside down": (changed(numbers={"a": {"low": 2, "high": 1}}), "low must lie below"),
    "a range of nothing": (changed(numbers={"a": {"low": 1, "high": 1}}), "low must lie below"),
    "an endless range": (changed(numbers={"a": {"low": 0, "high": float("inf")}}), "beyond"),
    "no number": (changed(numbers={"a": {"low": 0, "high": float("nan")}}), "no number"),
    "a truth": (changed(numbers={"a": {"low": False, "high": True}}), "low is no number"),
    "too narrow": (changed(numbers={"a": {"low": 1.6e9, "high": 1.6e9 + 9}}), "too narrow"),
    "bins and edges": (changed(numbers={"a": {**AGE, "bins": 3, "edges": [5]}}), "say the same"),
    "one bin": (changed(numbers={"a": {**AGE, "bins": 1}}), "from 2 to"),
    "edges that fall": (changed(numbers={"a": {**AGE, "edges": [9, 5]}}), "must rise"),
    "an edge outside": (changed(numbers={"a": {**AGE, "edges": [100]}}), "must rise"),
    "edges too close": (changed(numbers={"a": {**AGE, "edges": [50, 50 + 1e-9]}}), "must rise"),
    "a fill outside": (changed(numbers={"a": {**AGE, "fill": 101}}), "outside of low and high"),
    "two policies": (changed(numbers={"a": {**AGE, "fill": 1, "missing": "own"}}), "leave missing"),
    "an odd policy": (changed(numbers={"a": {**AGE, "missing": "drop"}}), "own or refuse"),
    "other on the list": (changed(categories={"a": ["b", "other"]}), "always there"),
    "missing on the list": (changed(categories={"a": ["b", "?"]}), "missing_cells"),
    "twice on the list": (changed(categories={"a": ["b", "b"]}), "twice"),
    "an empty list": (changed(categories={"a": []}), "from 1 to"),
    "spaces around": (changed(categories={"a": [" b"]}), "spaces around"),
    "a column that rules the terminal": (changed(categories={"a\x1b[2J": ["b"]}), "line breaks"),
    "a fill that is not listed": (
        changed(categories={"a": {"values": ["b"], "fill": "c"}}),
        "not on the list",
    ),
    "columns without end": (
        changed(numbers={f"a{n}": {} for n in range(10_001)}),
        "numbers: more than 10000 columns",
    ),
    "classes without end": (
        changed(label={"column": "a", "classes": [f"c{n}" for n in range(10_001)]}),
        "more than 10000",
    ),
    "left open": (changed(numbers={"a": {"low": "fill in", "high": 3}}), "a: low still say"),
    "a list left open": (changed(categories={"a": ["fill in"]}), "categories.a: values still say"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_is_refused(fault):
    table, says = FAULTS[fault]
    with pytest.raises(BadInput) as caught:
        Schema.of(table)
    assert says in caught.value.what
    assert "\x1b" not in str(caught.value)
    assert caught.value.remedy


def test_all_faults_are_named_at_once():
    with pytest.raises(BadInput) as caught:
        Schema.of(changed(numbers={"a": {}, "b": {"low": 3, "high": 2}}, categories={"c": 3}))
    assert all(name in caught.value.what for name in ("numbers.a", "numbers.b", "categories.c"))


def test_cells_become_numbers_one_by_one():
    schema = Schema.of(tomllib.loads(schema_text()))
    age, pressure = schema.numbers
    ward, smoker = schema.categories
    cells = ["50", "-3", "1e400", "", "?", " 7", "1e-400"]
    told = [50, 0, 100, -100, -100, 7, 0]
    assert age.stored(cells).tolist() == told
    assert [age.stored([cell])[0] for cell in cells] == told
    assert pressure.stored(["?", "9", "-inf", "inf"]).tolist() == [120, 60, 60, 220]
    assert ward.stored(["north", "south wing", "East", "?", "NORTH"]).tolist() == [0, 1, 2, 3, 2]
    assert smoker.stored(["yes", "maybe"]).tolist() == [0, 2]


@pytest.mark.parametrize("cell", ["nan", "NaN", "fifty", "5O", "0x10", "1,5"])
def test_what_is_no_number_is_refused_by_its_place(cell):
    age = Schema.of(WHOLE).numbers[0]
    with pytest.raises(Unusable) as caught:
        age.stored(["1", "-1", cell, "2"])
    assert caught.value.position == 2
    assert cell not in str(caught.value)


def test_a_missing_cell_may_be_refused():
    schema = Schema.of(changed(missing="refuse", categories={"ward": ["north"]}))
    for column in (schema.numbers[0], schema.categories[0]):
        with pytest.raises(Unusable, match="missing") as caught:
            column.stored(["north" if column.name == "ward" else "3", "?"])
        assert caught.value.position == 1


def test_a_number_that_means_missing_is_missing():
    age = Schema.of(WHOLE).numbers[0]
    assert age.stored(["-1", "-1.0"]).tolist() == [age.absent, 0]


def test_bins_are_cut_at_equal_widths():
    bins = Schema.of(changed(numbers={"a": {"low": -1, "high": 1, "bins": 4}})).numbers[0]
    assert bins.cuts == (-0.5, 0.0, 0.5)
