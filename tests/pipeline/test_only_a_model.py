"""No records, only a model: from its file to a certificate of which it is the one unit."""

from __future__ import annotations

import io
import json
from contextlib import chdir, redirect_stderr, redirect_stdout

import pytest
import torch
from safetensors.torch import save_file

from methods.forging import forge
from quick_onnx import use_quick_exporter
from stillroom.cli import run as stillroom
from stillroom.data import digits
from stillroom.errors import BadInput, DoesNotVerify, WrongData
from stillroom.gate import Budget, Ledger
from stillroom.gate.accounting import price
from stillroom.gate.mechanisms import GaussianAnswers
from stillroom.methods import registry
from stillroom.methods.registry import parse
from stillroom.methods.wording import ONLY_A_MODEL
from stillroom.models import build
from stillroom.pipeline.pricing import price as price_of
from stillroom.pipeline.release import load_parts_of, release
from stillroom.pipeline.run import run
from stillroom.pipeline.verify import verify
from stillroom.sources import Party, Progress
from stillroom.vocabulary import Pair, Unit

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch's older exporter, on itself
RECIPE = """method = "probing"
source = "plain"
[data]
source = "model"
shape = [8, 8]
classes = 10
[features]
full_scale = 16
[plain]
file = "model.safetensors"
teacher = "private.makes:small"
[engine]
kind = "serial"
[privacy]
epsilon = 4
tuning = "none"
"""
GIVEN, CLASSES = (1, 8, 8), 10
ENTITY = Pair.of(Unit.ENTITY)
BUDGET = Budget(11.0, 1e-5, ENTITY)


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch, tmp_path):
    monkeypatch.setitem(registry.METHODS, "probing", "pipeline.probing:PROBING")
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    use_quick_exporter(monkeypatch)


def save(folder, *, seed=0, classes=CLASSES, name="model.safetensors", change=lambda state: state):
    network = build("private.makes:small", GIVEN, classes, seed=seed)
    save_file(change(dict(network.state_dict())), folder / name)


@pytest.fixture
def place(tmp_path):
    save(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path


def released(place, output="out", text=None, **how):
    if text is not None:
        (place / "recipe.toml").write_text(text)
    return release(place / "recipe.toml", place / output, budget=BUDGET, **how)


def blocks(place):
    ledger = Ledger.open(place / "ledger.sqlite", read_only=True)
    try:
        return len(list(ledger.store.rows("kind = 'block'"))), ledger.promises.unit
    finally:
        ledger.close()


# -- what the certificate says --------------------------------------------------------------


def test_the_unit_is_the_model(place):
    certificate = released(place)
    assert (certificate["unit"], certificate["headline"]["for"]) == ("entity", "entity/change")
    assert 3.9 < certificate["headline"]["epsilon"] <= 4
    (party,) = certificate["parties"]
    assert {line["unit"] for line in party["guarantees"]} == {"entity"}
    assert [total["for"] for total in party["data_set"]["totals"]] == ["entity/change"]
    assert certificate["warnings"] == [ONLY_A_MODEL]
    assert "unique ids" not in certificate["assumptions"]
    assert certificate["assumptions"]["one model"].startswith("checked: ")
    assert certificate["assumptions"]["the recipe"].startswith("assumed: ")
    assert "evaluation" not in certificate["sections"]
    report = verify(place / "out")
    assert report["recipe"] == "comes to what the certificate says"
    card = (place / "out" / "card.html").read_text()
    assert "one whole model or participant, with all records behind it" in card
    assert "through another model that was trained on them" in card
    assert "typical example of a class" not in card
    assert "and source ensemble (teachers on disjoint shards)" in card
    assert blocks(place) == (1, Unit.ENTITY)


def test_the_price_is_that_of_any_teacher_for_another(place):
    """D = 2B: the same events cost the same whatever they are paid for."""
    certificate = released(place)
    (wish,) = certificate["parties"][0]["blocks"][0]["wishes"]
    told = {key: value for key, value in wish["mechanism"].items() if key != "mechanism"}
    assert told.pop("unit") == "entity"
    mechanism = GaussianAnswers(**{**told, "unit": Unit.RECORD})
    again = price(mechanism.lines(wish["reserved"]), Pair.of(Unit.RECORD)).epsilon(1e-5)
    assert certificate["headline"]["epsilon"] == pytest.approx(again)


def test_a_public_data_set_can_be_tested_on(place):
    text = RECIPE.replace("classes = 10", 'classes = 10\ntest_source = "digits"')
    certificate = released(place, text=text)
    evaluation = certificate["sections"]["evaluation"]
    assert not evaluation["protected"]
    assert sum(map(sum, evaluation["confusion"])) == len(digits())
    verify(place / "out")


def test_what_is_tested_on_has_the_shape_and_classes_of_the_model(place):
    for old, new, told in (
        ("[8, 8]", "[4, 16]", "of shape"),
        ("classes = 10", 'classes = ["a", "b"]', "10 classes with names of its own"),
    ):
        text = RECIPE.replace(old, new).replace("[features]", 'test_source = "digits"\n[features]')
        save(place, classes=2 if "names" in told else CLASSES)
        with pytest.raises(BadInput, match=told):
            load_parts_of(parse(text), place)


def test_as_published_it_promises_nothing(place):
    text = 'mode = "as-published"\npurpose = "benchmark"\n' + RECIPE
    certificate = released(place, text=text)
    assert certificate["headline"]["epsilon"] == "infinite"
    assert certificate["headline"]["for"] == "entity/change"
    assert not certificate["parties"][0]["guarantees"]
    assert ONLY_A_MODEL in certificate["warnings"]
    verify(place / "out")


def test_a_large_epsilon_is_called_so(place):
    certificate = released(place, text=RECIPE.replace("epsilon = 4", "epsilon = 10.0001"))
    assert any("which of two models was its teacher" in text for text in certificate["warnings"])


def test_a_certificate_that_hides_it_does_not_verify(place):
    released(place)
    certificate = json.loads((place / "out" / "certificate.json").read_text())
    for change in (
        {"warnings": []},
        {"assumptions": {**certificate["assumptions"], "unique ids": "checked: by the data set"}},
    ):
        forge(place / "out", {**certificate, **change}, None)
        with pytest.raises(DoesNotVerify, match="does not say what recipe"):
            verify(place / "out")
    forge(place / "out", certificate, None)
    verify(place / "out")


# -- whose ledger it is ---------------------------------------------------------------------


def test_another_model_has_another_ledger(place):
    released(place)
    save(place, seed=1)
    with pytest.raises(WrongData, match="the ledger does not belong to this model"):
        released(place, "second")
    assert blocks(place) == (1, Unit.ENTITY)
    other = released(place, "second", 'ledger = "other.sqlite"\n' + RECIPE)
    assert other["parties"][0]["data_set"]["blocks"] == 1


def renamed(state):
    names = {"1": "first", "2": "last"}
    return {f"{names[key[0]]}{key[1:]}": tensor.double() for key, tensor in state.items()}


def test_the_same_weights_in_another_file_share_the_ledger(place):
    released(place)
    save(place, name="again.safetensors", change=renamed)
    other = RECIPE.replace("model.safetensors", "again.safetensors").replace("small", "Renamed")
    certificate = released(place, "second", other)
    (total,) = certificate["parties"][0]["data_set"]["totals"]
    assert total["spent"] > certificate["headline"]["epsilon"]
    assert blocks(place) == (2, Unit.ENTITY)
    with pytest.raises(WrongData, match="already belong to another ledger"):
        released(place, "third", 'ledger = "fresh.sqlite"\n' + other)
    assert not (place / "fresh.sqlite").exists()


def test_a_ledger_of_records_pays_for_no_model(place):
    ledger = Ledger.create(place / "ledger.sqlite", ids=["a", "b"])
    ledger.set_budget(Budget(10.0, 1e-5), reason="records")
    ledger.close()
    with pytest.raises(WrongData, match="does not belong to this model"):
        released(place)


def test_a_run_that_was_cut_off_goes_on(place):
    class Cut(Exception):
        pass

    def step(done, total):
        if done == 3:
            raise Cut

    with pytest.raises(Cut):
        released(place, progress=Progress(step=step))
    certificate = released(place)
    (block,) = certificate["parties"][0]["blocks"]
    assert (block["reserved"], block["drawn"], block["lost"]) == (6, 6, 0)
    assert blocks(place) == (1, Unit.ENTITY)
    # Another model in the file meanwhile is noticed.
    with pytest.raises(Cut):
        released(place, "second", RECIPE, progress=Progress(step=step))
    save(place, seed=1)
    with pytest.raises(WrongData):
        released(place, "second")


def test_in_memory_the_same(place):
    recipe = parse('purpose = "benchmark"\n' + RECIPE)
    parts = load_parts_of(recipe, place)
    ledger = Ledger.in_memory(parts.sensitive, purpose="benchmark", unit="entity")
    ledger.set_budget(BUDGET, reason="a test")
    party = Party("data", parts.sensitive, ledger)
    finished = run(recipe, [party], parts.public, parts.test)
    assert finished.accuracy is None
    assert finished.evaluation is None
    assert finished.facts.shape == (8, 8)
    assert ledger.spent(ENTITY, 1e-5) <= 4
    ledger.close()


# -- before anything is paid for ------------------------------------------------------------


def test_a_model_that_cannot_be_used_costs_nothing(place):
    def broken(state):
        state["1.bias"] = state["1.bias"] * torch.nan
        return state

    save(place, change=broken)
    with pytest.raises(BadInput, match="not finite"):
        released(place)
    (place / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="no such file"):
        released(place)
    assert not (place / "ledger.sqlite").exists()


def test_planned_without_its_file(tmp_path):
    recipe = parse(RECIPE)
    assert 3.9 < price_of(recipe).epsilon <= 4
    (tmp_path / "recipe.toml").write_text(RECIPE)
    told = said(tmp_path, "release", "recipe.toml", "-o", "out", "--dry-run")
    assert ONLY_A_MODEL in told
    told = json.loads(said(tmp_path, "release", "recipe.toml", "-o", "out", "--dry-run", "--json"))
    assert told["note"] == ONLY_A_MODEL
    keys = json.loads(said(tmp_path, "recipe", "explain", "recipe.toml", "--json"))
    found = {line["key"]: (line["value"], line["from"]) for line in keys}
    assert found["data.unit"] == ("entity", "default")
    assert found["data.declared_size"] == ("1", "default")
    assert found["plain.file"] == ("model.safetensors", "given")


def test_the_command_says_what_is_certified(place):
    said(place, "release", "recipe.toml", "-o", "out", code=2)  # no budget yet
    said(place, "ledger", "budget", "set", "ledger.sqlite", "--epsilon", "5", "--reason", "a test")
    assert ONLY_A_MODEL in said(place, "release", "recipe.toml", "-o", "out")
    assert "entity/change" in said(place, "verify", "out")
    assert "entity/change" in said(place, "ledger", "show", "ledger.sqlite")
    said(place, "ledger", "verify", "ledger.sqlite")


def said(place, *words, code=0):
    out, err = io.StringIO(), io.StringIO()
    with chdir(place), redirect_stdout(out), redirect_stderr(err):
        assert stillroom(list(words)) == code, err.getvalue()
    return out.getvalue()
