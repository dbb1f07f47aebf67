"""Features of tables: one record at a time, never longer than 1, and the same in ONNX."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import onnx
import pytest

from data.visits import STRANGE, csv_text, schema_text, strange, visits
from stillroom.data import Schema, read_table
from stillroom.errors import BadInput
from stillroom.features import TableFeatures
from stillroom.release.model import LinearModel, check_onnx, checked_onnx
from stillroom.release.onnx_metadata import metadata_of
from stillroom.release.predict import run_onnx

VISITS = Schema.of(tomllib.loads(schema_text()))
LABEL = {"column": "state", "classes": ["well", "ill"]}
FEATURES = {
    "all columns": TableFeatures(VISITS),
    "all pairs": TableFeatures(VISITS, "all"),
    "named pairs": TableFeatures(VISITS, (("age", "smoker"), ("blood pressure", "ward"))),
    "one number": TableFeatures(
        Schema.of({"label": LABEL, "numbers": {"a": {"low": -3, "high": 5, "fill": 0}}})
    ),
    "numbers": TableFeatures(
        Schema.of(
            {
                "label": LABEL,
                "numbers": {
                    "large": {"low": 1e9, "high": 1.001e9, "bins": 7},
                    "small": {"low": -1e-12, "high": 1e-12, "edges": [0]},
                    "huge": {"low": -1e30, "high": 1e30},
                },
            }
        ),
        (("large", "small"),),
    ),
    "one category": TableFeatures(Schema.of({"label": LABEL, "categories": {"a": ["b"]}})),
}


def records(features: TableFeatures, count: int = 300) -> np.ndarray:
    """Anything that is a number."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(count, len(features.schema.columns))) * 10.0 ** generator.integers(
        -3, 40, size=(count, 1)
    )
    x[:50] = generator.integers(-2, 5, size=(50, x.shape[1]))
    return np.concatenate([x, features.examples(), np.full((1, x.shape[1]), 1e300)])


@pytest.mark.parametrize("name", FEATURES)
def test_no_row_is_longer_than_one(name):
    features = FEATURES[name]
    rows = features(records(features))
    assert rows.shape[1] == features.width == features.layout.width
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    assert lengths.max() <= 1
    assert lengths.max() > 0.9  # the bound is no longer than it must be


@pytest.mark.parametrize("name", FEATURES)
def test_a_row_depends_on_its_own_record_alone(name):
    features = FEATURES[name]
    x = records(features)
    rows = features(x)
    for place in range(0, len(x), 7):
        assert np.array_equal(features(x[place : place + 1])[0], rows[place])


@pytest.mark.parametrize("name", FEATURES)
def test_the_graph_gives_what_numpy_gives(name):
    features = FEATURES[name]
    weights = np.random.default_rng(2).normal(size=(3, features.width)).astype(np.float32)
    model = LinearModel(weights, "table", features.shape, features)
    content = checked_onnx(model, ("a", "b", "c"))
    x = records(features).clip(-3e38, 3e38).astype(np.float32)
    logits, labels = run_onnx(content, x)
    assert np.allclose(logits, model.logits(x), atol=1e-5)
    assert np.array_equal(labels, logits.argmax(axis=1))
    said = metadata_of(content)
    assert Schema.of(json.loads(said["schema"])) == features.schema
    props = {p.key: p.value.encode() for p in onnx.load_from_string(content).metadata_props}
    assert said == props


def test_a_graph_with_an_edge_elsewhere_is_found():
    """The records that a file is compared on reach every edge."""
    honest = FEATURES["all columns"]
    text = schema_text().replace("bins = 4", "edges = [25, 50, 75.0001]")
    other = TableFeatures(Schema.of(tomllib.loads(text)))
    weights = np.random.default_rng(2).normal(size=(3, honest.width)).astype(np.float32)
    content = LinearModel(weights, "table", honest.shape, other).onnx(("a", "b", "c"))
    with pytest.raises(Exception, match="different answers"):
        check_onnx(content, LinearModel(weights, "table", honest.shape, honest))


def test_every_cell_has_its_feature(tmp_path):
    features = FEATURES["all columns"]
    rows = [
        ("v1", "p", "north", "0", "yes", "60", "ill"),
        ("v2", "p", "south wing", "25", "no", "140", "ill"),
        ("v3", "p", "mars", "100", "?!", "220", "ill"),
        ("v4", "p", "?", "?", "no", "?", "ill"),
    ]
    (tmp_path / "a.csv").write_text(csv_text(rows))
    found = features(read_table(tmp_path / "a.csv", VISITS).x)
    # age, pressure; age missing; four bins; north, south, missing; yes, no; other ward, smoker
    wanted = [
        [-1, -1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0],
        [-0.5, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0],
        [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1],
        [0, -0.25, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0],
    ]
    assert np.allclose(found[:, :-1] / features.layout.scale, wanted, atol=1e-6)
    assert (found[:, -1] == found[0, -1]).all()


def test_products_are_those_of_the_columns(tmp_path):
    single, both = FEATURES["all columns"], FEATURES["named pairs"]
    rows = [*visits(30), *(strange(kind, kind) for kind in STRANGE)]
    (tmp_path / "a.csv").write_text(csv_text(rows))
    x = read_table(tmp_path / "a.csv", VISITS).x
    one, two = single(x)[:, :-1] / single.layout.scale, both(x)[:, :-1] / both.layout.scale
    assert np.allclose(two[:, :14], one, atol=1e-6)
    age, smoker = one[:, 2:7], one[:, [10, 11, 13]]
    products = (age[:, :, None] * smoker[:, None, :]).reshape(len(x), -1)
    assert np.allclose(two[:, 14 : 14 + 15], products, atol=1e-6)
    pressure, ward = one[:, [1]], one[:, [7, 8, 9, 12]]
    assert np.allclose(two[:, 29:], pressure * ward, atol=1e-6)


@pytest.mark.parametrize(
    "pairs", [(("age", "age"),), (("age", "weight"),), (("age", "ward"), ("ward", "age"))]
)
def test_pairs_that_are_none_are_refused(pairs):
    with pytest.raises(BadInput, match="pair"):
        TableFeatures(VISITS, pairs)


def test_too_many_features_are_refused_before_they_are_made():
    wide = {"label": LABEL, "numbers": {n: {"low": 0, "high": 1, "bins": 900} for n in "ab"}}
    with pytest.raises(BadInput, match="more than 65,536"):
        TableFeatures(Schema.of(wide), "all")
    # Fifty million pairs would take all memory before they are counted.
    many = {"label": LABEL, "categories": {f"c{n}": ["a"] for n in range(10_000)}}
    with pytest.raises(BadInput, match="more than 65,536"):
        TableFeatures(Schema.of(many), "all")
