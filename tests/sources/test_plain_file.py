"""Recipes without records: what they say, what follows, and what makes no sense in them."""

from __future__ import annotations

import pytest

from stillroom.errors import BadInput
from stillroom.methods import registry
from stillroom.methods.registry import parse
from stillroom.sources import SOURCES
from stillroom.vocabulary import Pair, Unit

RECIPE = """method = "probing"
source = "plain"
[data]
source = "model"
shape = [8, 8]
classes = 10
[plain]
file = "model.safetensors"
teacher = "mlp"
[privacy]
epsilon = 4
"""


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "probing", "pipeline.probing:PROBING")


def test_what_follows_need_not_be_said():
    short = parse(RECIPE)
    said = 'unit = "entity"\ndeclared_size = 1\ntest_is_public = true\n[plain]'
    whole = parse(RECIPE.replace("[plain]", said))
    assert short == whole
    assert short.data.pair == Pair.of(Unit.ENTITY)
    assert "unit" not in short.data.model_fields_set
    assert {"unit", "declared_size", "test_is_public"} <= whole.data.model_fields_set


def test_terms():
    plain = SOURCES["plain"]
    assert plain.terms(parse(RECIPE), {}, 1).about == "network `mlp`"
    onnx = RECIPE.replace('model.safetensors"\nteacher = "mlp"', 'model.onnx"')
    assert plain.terms(parse(onnx), {}, 1).about == "ONNX network"


REFUSED = {
    "for records": ('unit = "record"', "data.unit: .* source trained or ensemble, which need them"),
    "for persons": ('unit = "person"', "data.unit: .* the model as a whole"),
    "several": ("declared_size = 2", "declared_size, .*: there are no records"),
    "a secret test": ("test_is_public = false", "there are no records"),
    "a split": ('split = "as-given"\nkey = "k"', "data.split, data.key: there are no records"),
    "a test part": ("test = 0.1", "data.test: there are no records"),
    "columns": ('id_column = "id"', "data.id_column: there are no records"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_keys_of_records_are_refused(kind):
    keys, told = REFUSED[kind]
    with pytest.raises(BadInput, match=told):
        parse(RECIPE.replace("[plain]", f"{keys}\n[plain]"))


CHANGED = {
    "no shape": ("shape = [8, 8]\n", "", "data.shape, data.classes: say what"),
    "no classes": ("classes = 10\n", "", "data.shape, data.classes: say what"),
    "no size": ("[8, 8]", "[]", "data.shape"),
    "a size of nothing": ("[8, 8]", "[8, 0]", "data.shape"),
    "too large": ("[8, 8]", "[65536, 65536]", "more than 16,777,216 numbers"),
    "four sizes": ("[8, 8]", "[8, 8, 3, 2]", "data.shape"),
    "no file": ('file = "model.safetensors"\n', "", "plain.file and data.source"),
    "a pickle": (".safetensors", ".pt", "a pickle can run code .*save_file"),
    "another": (".safetensors", ".h5", r"one of: \.safetensors, \.onnx"),
    "no make": ('teacher = "mlp"\n', "", "plain.teacher: name the make"),
    "a make of a graph": (".safetensors", ".onnx", "an .onnx file holds its own make"),
    "trained": ("teacher =", "epochs = 3\nteacher =", "a model from a file is not trained"),
    "another source": ('"plain"', '"trained"', "a model in a file belongs to source plain"),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_recipes_that_are_refused(kind):
    old, new, told = CHANGED[kind]
    assert old in RECIPE
    with pytest.raises(BadInput, match=told):
        parse(RECIPE.replace(old, new))


RECORDS = """method = "rona"
mode = "as-published"
source = "plain"
[data]
source = "digits"
public = "1/4"
declared_size = 1300
[plain]
teacher = "mlp"
[privacy]
epsilon = 8
"""


def test_a_recipe_with_records_has_none_of_it():
    parse(RECORDS)
    for old, new, told in (
        ("[plain]", '[plain]\nfile = "model.onnx"', "plain.file and data.source"),
        ("[plain]", "shape = [8, 8]\n[plain]", 'only for source = "model"'),
        ("[plain]", 'test_source = "digits"\n[plain]', 'only for source = "model"'),
        ("[plain]", 'unit = "entity"\n[plain]', 'entity is for source = "model"'),
        ("declared_size = 1300\n", "", "data.declared_size: is missing"),
    ):
        with pytest.raises(BadInput, match=told):
            parse(RECORDS.replace(old, new))


def test_rona_needs_records():
    for public, told in (('public = "1/4"\n', "there are no records"), ("", "needs a public part")):
        text = RECORDS.replace('"digits"', '"model"\nshape = [8, 8]\nclasses = 10')
        text = text.replace("declared_size = 1300\n", "").replace('public = "1/4"\n', public)
        with pytest.raises(BadInput, match=told):
            parse(text.replace("[plain]", '[plain]\nfile = "model.safetensors"'))


def test_no_data_set_is_called_model(tmp_path):
    from stillroom.data import digits
    from stillroom.data.store import save

    with pytest.raises(BadInput, match="cannot be called 'model'"):
        save(digits(), "model", tmp_path)
