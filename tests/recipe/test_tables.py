"""A schema in a recipe, or beside it; and what tables do not go together with."""

from __future__ import annotations

import tomllib

import pytest

from data.visits import schema_text
from stillroom.data import Schema
from stillroom.errors import BadInput
from stillroom.methods.registry import method_named, parse, read
from stillroom.pipeline.pricing import nominal_facts, requests_of

SCHEMA = Schema.of(tomllib.loads(schema_text()))
TEXT = """{head}
[data]
source = "visits.csv"
declared_size = 60
{data}
[features]
name = "{features}"
{pairs}
[privacy]
epsilon = 2
{more}
"""


def text(head="", data="", features="table", pairs="", more="", schema=SCHEMA):
    whole = TEXT.format(head=head, data=data, features=features, pairs=pairs, more=more)
    return whole + ("" if schema is None else schema.toml())


def test_a_recipe_may_hold_its_schema():
    recipe = parse(text(pairs='pairs = [["age", "ward"]]'))
    assert recipe.data.table == SCHEMA
    assert recipe.table.pairs == (("age", "ward"),)
    facts = nominal_facts(recipe)
    assert facts.shape == (4,)
    assert facts.classes == ("well", "ill")
    plan = method_named("direct").plan(recipe, facts)
    assert requests_of(recipe, plan, facts)
    assert '"age"' in recipe.model_dump_json()


def test_a_schema_beside_the_recipe_becomes_part_of_its_text(tmp_path):
    (tmp_path / "visits-schema.toml").write_text(schema_text())
    named = text(data='schema = "visits-schema.toml"  # public', schema=None)
    (tmp_path / "recipe.toml").write_text(named)
    recipe, whole = read(tmp_path / "recipe.toml")
    assert recipe.data.table == SCHEMA
    # Whoever gets the text alone reads the same recipe, and another schema is another text.
    assert parse(whole) == recipe
    (tmp_path / "visits-schema.toml").write_text(schema_text().replace("high = 100", "high = 99"))
    assert read(tmp_path / "recipe.toml")[1] != whole


ODD = {
    "a key in quotes": ('"schema" = "s.toml"', "on a line of its own"),
    "three quotes": ('schema = """s.toml"""', "three quotes"),
    "an inline table": ("", "on a line of its own"),
    "twice": ('schema = "s.toml"\n[engine]\nschema = "s.toml"', "on a line of its own"),
}


@pytest.mark.parametrize("way", ODD)
def test_a_schema_that_is_named_in_an_odd_way_is_refused(tmp_path, way):
    named, says = ODD[way]
    (tmp_path / "s.toml").write_text(schema_text())
    whole = text(data=named, schema=None)
    if way == "an inline table":
        whole = whole.replace("[data]", "").replace("[features]", "[features]", 1)
        whole = 'data = {source = "a.csv", schema = "s.toml", declared_size = 60}\n' + (
            whole.replace('source = "visits.csv"\ndeclared_size = 60\n', "")
        )
    (tmp_path / "recipe.toml").write_text(whole)
    with pytest.raises(BadInput, match=says):
        read(tmp_path / "recipe.toml")


def test_remarks_around_a_schema_change_nothing(tmp_path):
    (tmp_path / "s.toml").write_text(schema_text())
    named = "  schema   =\t's.toml' # \"schema\" = 'x'"
    (tmp_path / "recipe.toml").write_text(text(data=named, schema=None))
    recipe, whole = read(tmp_path / "recipe.toml")
    assert recipe.data.table == SCHEMA
    assert parse(whole) == recipe


def test_a_schema_that_is_missing_or_a_draft_is_refused(tmp_path):
    (tmp_path / "recipe.toml").write_text(text(data='schema = "s.toml"', schema=None))
    with pytest.raises(BadInput, match="cannot be read"):
        read(tmp_path / "recipe.toml")
    (tmp_path / "s.toml").write_text(schema_text().replace("low = 0", 'low = "fill in"'))
    with pytest.raises(BadInput, match="age: low still say"):
        read(tmp_path / "recipe.toml")
    with pytest.raises(BadInput, match="belongs to a recipe in a file"):
        parse(text(data='schema = "s.toml"', schema=None))


SKETCH = "[sketch]\nmu = 1\n"
MISFITS = {
    "pixels": (text(features="pixels"), 'write name = "table"'),
    "edges": (text(features="edges"), 'write name = "table"'),
    "scattering": (text(features="scattering"), 'write name = "table"'),
    "no schema": (text(schema=None), "needs a [data.schema]"),
    "classes twice": (text(data="classes = 2"), "data.classes: the schema names"),
    "ids twice": (text(data='id_column = "a"'), "data.id_column: the schema names"),
    "a pair of nothing": (text(pairs='pairs = [["age", "weight"]]'), "features.pairs: a pair"),
    "pairs of pixels": (text(features="pixels", pairs='pairs = "all"', schema=None), "only for"),
    "a network": (text(more='[training]\nmodel = "mlp"\n'), "networks look at pictures"),
    "a sketch": (text(more=SKETCH), "sketch: its basis"),
    "persons nobody names": (text(data='unit = "person"'), "names no person column"),
    "a test file in no split": (text(data='test_file = "a.csv"'), 'split = "as-given"'),
    "rona": (
        text('method = "rona"', data="public = 0.5", more="[rona]\n"),
        "networks look at pictures",
    ),
    "votes": (
        text(
            'method = "votes"\npurpose = "benchmark"',
            data="public = 0.5\ntest_is_public = true",
            more="[entities]\ncount = 3\nlargest = 40\n",
        ),
        "networks look at pictures",
    ),
    "dpdfd": (
        text('method = "dpdfd"\nsource = "sketch"', more=SKETCH + "[dpdfd]\n"),
        "networks look at pictures",
    ),
    "pg of networks": (
        text('method = "pg"', more='[collection]\nmodel = "mlp"\nmodels = 3\nshard_cap = 9\n'),
        "networks look at pictures",
    ),
    "a schema that is none": (text(schema=None, data="schema = 3"), "data.schema: "),
}  # fmt: skip


@pytest.mark.parametrize("fault", MISFITS)
def test_what_makes_no_sense_for_a_table_is_refused_by_its_recipe(fault):
    recipe, says = MISFITS[fault]
    with pytest.raises(BadInput) as caught:
        parse(recipe)
    assert says in caught.value.what
