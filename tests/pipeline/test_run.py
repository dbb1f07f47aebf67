"""Runs in memory: recipe and parties in, a model out, and nothing on disk but public work."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from features.enlarged import pictures
from methods.pictures import SKETCH
from stillroom.data import Dataset, Split, digits
from stillroom.errors import BadInput, BudgetExhausted, NotSanitised
from stillroom.gate import Budget, Ledger
from stillroom.gate.ledger import verify
from stillroom.methods.registry import parse
from stillroom.pipeline import run as pipeline
from stillroom.pipeline.release import publish
from stillroom.pipeline.run import run
from stillroom.release import verify_bundle
from stillroom.sources import Party, Places, Progress
from stillroom.vocabulary import Pair, Relation, Unit

RECIPE = """
purpose = "{purpose}"
[data]
source = "digits"
test_is_public = {public}
declared_size = 1440
[features]
name = "pixels"
full_scale = 16
[engine]
kind = "serial"
[training]
steps = 6
rate = "1/2"
[privacy]
epsilon = 2
"""
RONA = """
method = "rona"
source = "ensemble"
purpose = "benchmark"
[data]
source = "digits"
public = "2/5"
test_is_public = true
declared_size = 800
[features]
name = "pixels"
full_scale = 16
[engine]
kind = "serial"
[rona]
student = "mlp"
auxiliary = "mlp"
auxiliary_epochs = 1
self_epochs = 1
distillation_epochs = 1
rounds = 1
loss = "softened"
[teachers]
count = 8
shard_cap = 250
votes = 20
[privacy]
epsilon = 4
"""


@pytest.fixture(scope="module")
def split():
    return Split.by_fraction(digits(), "in memory", public=0, test="1/5")


def recipe_of(purpose="benchmark", public="true", more=""):
    return parse(RECIPE.format(purpose=purpose, public=public) + more)


def ledger_of(parts, purpose="benchmark", epsilon=2.0):
    sealed = [part for part in (parts.sensitive, parts.test) if not hasattr(part, "x")]
    ledger = Ledger.in_memory(*sealed, purpose=purpose)
    ledger.set_budget(Budget(epsilon, 1e-5), reason="a test")
    return ledger


def finished(split, recipe, **given):
    parts = split.sealed(recipe.data.test_is_public)
    ledger = ledger_of(parts, recipe.purpose, recipe.privacy.epsilon)
    return run(recipe, [Party("data", parts.sensitive, ledger)], parts.public, parts.test, **given)


def draws(ledger):
    return sum(row.body["count"] for row in ledger.store.rows("kind = 'draw'"))


def everything_in(folder: Path):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("purpose", ["benchmark", "audit"])
def test_two_runs_have_two_ledgers_and_leave_no_file(split, purpose, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    recipe, steps = recipe_of(purpose), []
    first, second = (
        finished(split, recipe, progress=Progress(step=lambda step, of: steps.append(step)))
        for _ in range(2)
    )
    assert steps == [1, 2, 3, 4, 5, 6] * 2
    ledgers = [one.parties[0].ledger for one in (first, second)]
    assert ledgers[0].id != ledgers[1].id
    assert [draws(ledger) for ledger in ledgers] == [6, 6]
    for ledger in ledgers:
        verify(ledger)
    assert everything_in(tmp_path) == []
    # Other noise, another model, about as good.
    one, two = (run.result.model.logits(split.test.x) for run in (first, second))
    assert not np.array_equal(one, two)
    for logits, made in ((one, first), (two, second)):
        accuracy = float((logits.argmax(axis=1) == split.test.y).mean())
        assert accuracy == pytest.approx(made.accuracy)
        assert accuracy > 0.5


def test_a_ledger_pays_for_a_run_under_a_name_once(split):
    """The same name goes on with what was drawn; another one pays anew, or is refused."""
    recipe = recipe_of()
    parts = split.sealed(test_is_public=True)
    ledger = ledger_of(parts)
    party = Party("data", parts.sensitive, ledger)
    first = run(recipe, [party], parts.public, parts.test, under="one")
    again = run(recipe, [party], parts.public, parts.test, under="one")
    x = split.test.x
    assert np.array_equal(first.result.model.logits(x), again.result.model.logits(x))
    assert first.blocks == again.blocks
    assert draws(ledger) == 6
    with pytest.raises(BudgetExhausted):
        run(recipe, [party], parts.public, parts.test, under="two")
    assert draws(ledger) == 6


def test_members_of_a_split_are_those_of_a_mask(split, monkeypatch):
    """Half of the records train, under their old ids; the ledger knows no others."""
    mask = np.arange(len(split.sensitive)) % 2 == 0
    half = split.members(mask)
    seen, honest = [], pipeline.Gate.of

    def noted(ledger, *sealed):
        seen.append([one.open_sealed().ids for one in sealed])
        return honest(ledger, *sealed)

    monkeypatch.setattr(pipeline.Gate, "of", noted)
    made = finished(half, recipe_of("audit"))
    ids = tuple(name for name, kept in zip(split.sensitive.ids, mask, strict=True) if kept)
    assert seen == [[ids]]
    ledger = made.parties[0].ledger
    assert ledger.store.query("SELECT COUNT(*) FROM members") == [(len(ids),)]
    assert made.accuracy > 0.4
    # Another half under the same public things: the price is that of the whole.
    other = finished(split.members(~mask), recipe_of("audit"))
    assert other.facts == made.facts
    assert draws(other.parties[0].ledger) == draws(ledger) == 6


@pytest.mark.parametrize("mask", [np.arange(3), np.ones(3, dtype=bool), [0, 1]])
def test_what_is_no_mask_is_refused(split, mask):
    with pytest.raises(BadInput, match="mask"):
        split.members(mask)


def test_a_sealed_test_part_is_measured_through_the_gate(split):
    made = finished(split, recipe_of(public="false"))
    assert made.evaluation.protected
    assert draws(made.parties[0].ledger) == 7


def test_a_ledger_that_is_not_in_memory_for_a_release(split):
    with pytest.raises(BadInput, match="release"):
        finished(split, recipe_of("release"))


def test_a_run_in_memory_can_be_published(split, tmp_path):
    text = RECIPE.format(purpose="benchmark", public="true")
    made = finished(split, parse(text))
    certificate = publish(made, tmp_path / "out", text=text)
    assert verify_bundle(tmp_path / "out")["drawn"] == 6
    assert certificate["purpose"] == "benchmark"
    assert certificate["sections"]["evaluation"]["accuracy"] == made.accuracy


def test_a_sketch_in_memory(split):
    more = SKETCH.replace("radius = 12", "radius = 6").replace("residual = 8", "residual = 4")
    made = finished(split, recipe_of(more=more.replace("coefficients = 64", "coefficients = 32")))
    assert made.result.samples.shape == (100, 8, 8)
    assert draws(made.parties[0].ledger) == 6 + 4


def test_public_work_is_kept_and_done_once(tmp_path):
    """The auxiliary teacher is trained on public records once; nothing else is written."""
    recipe = parse(RONA)
    parted = Split.by_fraction(digits(), "in memory", public="2/5", test="1/5")
    finished(parted, recipe)
    kept = {path: path.stat().st_mtime_ns for path in everything_in(tmp_path)}
    assert kept
    assert {path.relative_to(tmp_path).parts[:2] for path in kept} == {("home", "work")}
    finished(parted, recipe)
    assert {path: path.stat().st_mtime_ns for path in everything_in(tmp_path)} == kept


def test_two_parties_are_not_pooled_by_one_training(split):
    parts = split.sealed(test_is_public=True)
    parties = [Party(name, parts.sensitive, ledger_of(parts)) for name in ("a", "b")]
    with pytest.raises(BadInput, match="one party, got 2"):
        run(recipe_of(), parties, parts.public, parts.test)
    assert [draws(party.ledger) for party in parties] == [0, 0]


def test_no_run_is_held_after_its_end(split):
    """Hundreds of runs in one process: what one has made goes with it."""
    recipe = recipe_of()
    finished(split, recipe)
    gc.collect()
    ledgers = [one for one in gc.get_objects() if type(one) is Ledger]
    assert ledgers == []


def test_what_was_reserved_covers_its_own_clip_and_no_larger_one(split, monkeypatch):
    """The gate compares the two, so that no mistake between price and run goes unnoticed."""
    paid = pipeline.price(recipe_of())
    wider = parse(
        RECIPE.format(purpose="benchmark", public="true").replace("rate", "clip = 1\nrate")
    )
    assert wider.training.clip == 2 * recipe_of().training.clip
    monkeypatch.setattr(pipeline, "price", lambda *given: paid)
    with pytest.raises(NotSanitised, match="further"):
        finished(split, wider)


@pytest.mark.parametrize("declared", ["true", "false"])
def test_a_test_part_is_open_exactly_where_the_recipe_declares_it(split, declared):
    parts = split.sealed(test_is_public=declared == "false")
    ledger = ledger_of(parts)
    with pytest.raises(BadInput, match="not what the recipe declares"):
        run(
            recipe_of(public=declared),
            [Party("data", parts.sensitive, ledger)],
            parts.public,
            parts.test,
        )
    assert draws(ledger) == 0


def test_a_recipe_for_another_purpose_than_its_ledger_draws_nothing(split):
    """A benchmark's recipe would else leave a ledger for release at infinity, unasked (L5)."""
    parts = split.sealed(test_is_public=True)
    ledger = ledger_of(parts, purpose="audit")
    with pytest.raises(BadInput, match="for benchmark and a ledger for audit"):
        run(recipe_of(), [Party("data", parts.sensitive, ledger)], parts.public, parts.test)
    assert draws(ledger) == 0


def test_surplus_records_of_a_person_are_left_out_not_refused_after_payment():
    data = digits()
    owners = tuple(f"person {number % 300}" for number in range(len(data)))
    named = Dataset(data.x, data.y, data.classes, data.ids, owners)
    parts = Split.by_fraction(named, "in memory", public=0, test="1/5").sealed(True)
    ledger = Ledger.in_memory(parts.sensitive, purpose="benchmark", unit="person")
    pair = Pair(Unit.PERSON, Relation.ADD_OR_REMOVE)
    ledger.set_budget(Budget(2.0, 1e-5, pair), reason="persons")
    text = RECIPE.format(purpose="benchmark", public="true")
    recipe = parse(text.replace("declared_size", 'unit = "person"\ndeclared_size'))
    made = run(recipe, [Party("data", parts.sensitive, ledger)], parts.public, parts.test)
    assert made.accuracy is not None
    assert draws(ledger) == 6


def test_runs_that_share_a_folder_share_no_directions(tmp_path):
    """Directions of another run's sketch are knowledge that no block of this run paid for."""
    text = RECIPE.format(purpose="benchmark", public="true") + SKETCH
    fitted = 'name = "scattering"\ncomponents = 6\nfitted_on = "sketch"'
    recipe, data = parse(text.replace('name = "pixels"', fitted)), Dataset(*pictures(400), 10)
    parts = Split.by_fraction(data, "in memory", public=0, test="1/5").sealed(True)
    places = Places(tmp_path, tmp_path / "private", tmp_path / "checkpoint", tmp_path)
    places.checkpoint.mkdir()
    for number in (1, 2):
        ledger = Ledger.in_memory(parts.sensitive, purpose="benchmark")
        ledger.set_budget(Budget(epsilon=2, delta=1e-5), reason="test")
        party = Party("data", parts.sensitive, ledger)
        run(recipe, [party], parts.public, parts.test, places=places)
        assert len(list(places.checkpoint.glob("directions-*.npz"))) == number
