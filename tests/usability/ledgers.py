"""Mistakes with ledgers, budgets and outputs."""

from __future__ import annotations

import shutil

from usability.mistakes import mistake
from usability.world import RECIPE, VISITS

CHECK = "recipe check recipe.toml"
RELEASE = "release recipe.toml -o model"
BUDGET = "ledger budget set ledger.sqlite --epsilon 4 --reason 'a test'"


@mistake(2, "no budget is set", "ledger.sqlite", "nobody has decided", "ledger budget set")
def no_budget(world):
    world.recipe()
    told = yield RELEASE
    yield told.command()
    yield RELEASE


@mistake(2, "no budget is set", "ledger.sqlite", "nobody has decided", "ledger budget set")
def no_budget_for_persons(world):
    world.people()
    keys = '[data]\nunit = "person"\nperson_column = "person"\nmax_records_per_person = 2'
    world.recipe('ledger = "ledger.sqlite"\n' + VISITS.replace("[data]", keys))
    told = yield RELEASE
    assert "for person/add-or-remove" in told.part("error")
    yield told.command()
    yield CHECK


@mistake(2, "can meet a budget for record", "--for", "protects each person", "person/add")
def a_budget_for_the_wrong_unit(world):
    world.ledger(epsilon=0, unit="person")
    told = yield f"{BUDGET} --for record/add-or-remove"
    pair = told.remedy.removeprefix("set a budget for ")
    yield f"{BUDGET} --for {pair}"


@mistake(2, "'persons'", "--for", "somebody in particular", "person/add-or-remove")
def a_budget_for_a_pair_that_is_none(world):
    world.ledger(epsilon=0, unit="person")
    yield f"{BUDGET} --for persons"
    yield f"{BUDGET} --for person/add-or-remove"


@mistake(3, "does not fit the budget", "ledger.sqlite", "nothing was drawn", "ledger budget set")
def a_budget_that_is_full(world):
    world.ledger(epsilon=0.1)
    world.recipe()
    told = yield RELEASE
    yield told.command(MORE="9")
    yield CHECK


@mistake(2, "missing option '--reason'", "ledger budget set", "nothing was run", "--help")
def a_budget_without_a_reason(world):
    world.ledger(epsilon=0)
    told = yield "ledger budget set ledger.sqlite --epsilon 4"
    yield told.command()
    yield BUDGET


@mistake(2, "epsilon must be", "epsilon", "allows no answer", "such as 1")
def a_budget_of_zero(world):
    world.ledger(epsilon=0)
    yield "ledger budget set ledger.sqlite --epsilon 0 --reason 'a test'"
    yield BUDGET


@mistake(2, "can only be raised", "budget", "certificates name it", "keep at least epsilon 4")
def a_budget_lowered_after_a_release(world):
    world.ledger()
    world.recipe()
    from stillroom.cli import run

    run(RELEASE.split())
    yield "ledger budget set ledger.sqlite --epsilon 1 --reason 'a test'"
    yield BUDGET


@mistake(2, "already something at the output", "model", "never overwritten", "another folder")
def an_output_that_exists(world):
    world.recipe()
    world.ledger()
    world.write("model/thesis.txt", "mine")
    yield RELEASE
    yield "release recipe.toml -o model-2"


@mistake(2, "begun with another recipe", "model.run", "its block was paid", "restore the recipe")
def a_recipe_changed_in_the_middle_of_a_run(world):
    from stillroom.cli import run

    world.recipe()
    world.ledger()
    run(RELEASE.split())
    shutil.rmtree(world.folder / "model")
    world.mend("steps = 5", "steps = 6")
    yield RELEASE
    world.mend("steps = 6", "steps = 5")
    yield RELEASE


@mistake(2, "belong to another ledger", "second.sqlite", "first.sqlite", "use that ledger")
def a_second_ledger_for_the_same_records(world):
    world.ledger("first.sqlite")
    world.recipe(ledger='"second.sqlite"')
    yield RELEASE
    world.mend("second", "first")
    yield CHECK


@mistake(2, "not one of these records", "ledger.sqlite", "must not pay for another", "make one")
def a_ledger_of_other_data(world):
    world.ledger(ids=["a", "b"])
    world.recipe()
    yield RELEASE
    world.mend("ledger.sqlite", "digits.sqlite")
    yield CHECK


@mistake(2, "a recipe for benchmark and a ledger for release", "purpose", "clear", "own purpose")
def a_recipe_for_another_purpose(world):
    world.ledger()
    world.recipe(f'purpose = "benchmark"\n{RECIPE}')
    yield RELEASE
    world.mend('purpose = "benchmark"', 'purpose = "release"')
    yield CHECK


@mistake(2, "no ledger at that place", "ledgr.sqlite", "nothing may be drawn", "did you mean")
def a_misspelt_ledger(world):
    world.ledger()
    told = yield "ledger show ledgr.sqlite"
    yield f"ledger show {told.quoted('what to do')[0]}"


@mistake(4, "not a ledger", "recipe.toml", "what was spent", "check the path")
def a_recipe_for_a_ledger(world):
    world.ledger()
    world.recipe()
    yield "ledger show recipe.toml"
    yield "ledger show ledger.sqlite"


@mistake(2, "not one of these records", "ledger.sqlite", "pay for another", "made for")
def a_ledger_compared_with_other_data(world):
    world.ledger()
    world.visits()
    world.recipe(VISITS)
    yield "ledger verify ledger.sqlite --recipe recipe.toml"
    world.recipe()
    yield "ledger verify ledger.sqlite --recipe recipe.toml"


@mistake(2, "cannot be written", "ledger.json", "never overwritten", "name a new file")
def an_export_that_exists(world):
    world.ledger()
    world.write("ledger.json", "{}")
    yield "ledger export ledger.sqlite -o ledger.json"
    yield "ledger export ledger.sqlite -o ledger-2.json"
