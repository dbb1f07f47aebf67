"""How long a release takes: every phase of every method and source, and no record looked at."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from stillroom.methods.registry import METHODS, parse, read
from stillroom.pipeline import estimate as estimates
from stillroom.pipeline.estimate import declared_facts, estimate, records_to_test, worth_trying
from stillroom.sources import SOURCES, Facts
from stillroom.sources.trials import Given, Longest, Trial, Work, in_parallel

ROOT = Path(__file__).parents[2]
RECIPES = sorted([*ROOT.glob("examples/*.toml"), *ROOT.glob("benchmarks/recipes/*.toml")])
LEAST = '[data]\nsource = "digits"\ndeclared_size = 1440\n{data}\n[privacy]\nepsilon = 2\n'
ALWAYS = {"finding the least noise", "measuring", "writing the bundle"}


@pytest.fixture
def counted(monkeypatch):
    """All trials that were asked for, none of which is made."""
    asked: list[Trial] = []

    def seconds(trial):
        asked.append(trial)
        return trial.seconds() if isinstance(trial, (Given, Longest)) else 1e-3

    monkeypatch.setattr("stillroom.sources.trials._tried", seconds)
    monkeypatch.setattr(estimates, "price", lambda recipe, facts: None)
    return asked


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_phase_of_every_recipe_has_a_length(file, counted):
    recipe, _ = read(file)
    if ":" in recipe.features.name:
        pytest.skip("its features are of a package that is not installed here")
    phases = dict(estimate(recipe))
    assert phases.keys() >= ALWAYS
    assert next(iter(phases)) == f"looking at {recipe.data.source}"
    assert all(math.isfinite(seconds) and seconds >= 0 for seconds in phases.values())
    assert sum(seconds > 0 for seconds in phases.values()) >= len(ALWAYS)
    assert counted


def test_the_recipes_here_cover_every_method_and_source():
    recipes = [read(file)[0] for file in RECIPES]
    assert {recipe.method for recipe in recipes} == set(METHODS)
    assert {recipe.source for recipe in recipes} >= SOURCES.keys() - {"sketch"}
    assert SOURCES.keys() <= {recipe.source for recipe in [*recipes, sketched()]}


def sketched():
    return parse('method = "dpdfd"\nsource = "sketch"\n' + LEAST.format(data="") + "[sketch]\n")


def test_source_sketch(counted):
    assert {"sketch", "student"} <= dict(estimate(sketched())).keys()


def test_more_steps_and_more_records_take_longer(counted):
    def of(steps, size):
        text = LEAST.replace("1440", str(size)).format(data="") + f"[training]\nsteps = {steps}"
        return dict(estimate(parse(text)))

    short, long, large = of(40, 1440), of(400, 1440), of(40, 14_400)
    assert long["training"] == pytest.approx(10 * short["training"])
    assert long["features"] == short["features"]
    assert large["features"] == pytest.approx(10 * short["features"])


def test_what_is_declared_is_believed():
    recipe = parse(LEAST.format(data='test = "1/5"'))
    facts = declared_facts(recipe)
    assert (facts.shape, len(facts.classes)) == ((8, 8), 10)
    assert records_to_test(recipe, facts) == pytest.approx(360)
    mnist = parse(LEAST.replace("digits", "mnist").format(data='split = "as-given"'))
    assert records_to_test(mnist, declared_facts(mnist)) == 10_000
    of_a_file = parse(LEAST.replace("digits", "scans.npz").format(data="classes = 3"))
    assert len(declared_facts(of_a_file).classes) == 3


def test_short_runs_are_not_tried():
    recipe = parse(LEAST.format(data=""))
    assert not worth_trying(recipe, Facts((8, 8), ("a", "b")))
    assert worth_trying(recipe, Facts((64, 64), ("a", "b")))


def test_units_share_the_cores():
    recipe = parse(LEAST.format(data="") + "[engine]\nworkers = 4")
    start, work = in_parallel(recipe, Given(1.0), 3, 8)
    assert start.seconds() > 0
    assert work.seconds() == pytest.approx(6)
    (alone,) = in_parallel(parse(LEAST.format(data="")), Given(1.0), 3, 1)
    assert alone.seconds() == 3
    assert Longest((Work(Given(1.0), 3), Work(Given(1.0))), 2).seconds() == 3
    assert Longest((Work(Given(1.0), 3), Work(Given(1.0))), 1).seconds() == 4
