"""Mistakes on the command line itself: commands, options, numbers."""

from __future__ import annotations

from usability.mistakes import mistake

NOTHING_RUN = "nothing was run"


@mistake(2, "no such command 'relase'", "stillroom", NOTHING_RUN, "did you mean 'release'")
def a_misspelt_command(world):
    world.recipe()
    told = yield "relase recipe.toml -o model --dry-run"
    yield f"{told.quoted('what to do')[0]} recipe.toml -o model --dry-run"


@mistake(2, "no such command 'chek'", "stillroom recipe", NOTHING_RUN, "did you mean 'check'")
def a_misspelt_command_of_a_group(world):
    world.recipe()
    told = yield "recipe chek recipe.toml"
    yield f"recipe {told.quoted('what to do')[0]} recipe.toml"


@mistake(2, "no such option: --ouput", "stillroom release", NOTHING_RUN, "did you mean --output")
def a_misspelt_option(world):
    world.recipe()
    yield "release recipe.toml --ouput model --dry-run"
    yield "release recipe.toml --output model --dry-run"


@mistake(2, "missing option '-o'", "stillroom release", NOTHING_RUN, "--help")
def an_output_that_is_not_named(world):
    world.recipe()
    told = yield "release recipe.toml --dry-run"
    yield told.command()
    yield "release recipe.toml -o model --dry-run"


@mistake(2, "missing argument 'RECIPE'", "stillroom release", NOTHING_RUN, "--help")
def a_recipe_that_is_not_named(world):
    world.recipe()
    told = yield "release -o model --dry-run"
    yield told.command()
    yield "release recipe.toml -o model --dry-run"


@mistake(2, "'two' is not a valid float", "stillroom plan", NOTHING_RUN, "--help")
def an_epsilon_in_words_on_the_command_line(world):
    told = yield "plan --epsilon two --queries 50"
    yield told.command()
    yield "plan --epsilon 2 --queries 50"


@mistake(2, "two of queries, sigma", "plan", "not two", "give two of queries")
def a_plan_of_one_number(world):
    yield "plan --epsilon 2"
    yield "plan --epsilon 2 --queries 50"


@mistake(2, "delta", "delta", "", "1e-5")
def a_plan_at_delta_zero(world):
    yield "plan --sigma 40 --queries 50 --delta 0"
    yield "plan --sigma 40 --queries 50 --delta 1e-5"


@mistake(2, "not said: --unit", "recipe new", "no terminal", "give --unit")
def a_draft_without_a_terminal(world):
    told = yield "recipe new --data digits --declared-size 1000 -o new.toml"
    given = told.remedy.removeprefix("give ").split(", or")[0]
    assert given == "--unit, --epsilon"
    yield "recipe new --data digits --declared-size 1000 -o new.toml --unit record --epsilon 3"
    yield "recipe check new.toml"


@mistake(2, "already a file", "recipe.toml", "never overwritten", "another name with -o")
def a_draft_over_a_recipe(world):
    world.recipe()
    flags = "--data digits --declared-size 1000 --unit record --epsilon 3"
    yield f"recipe new {flags} -o recipe.toml"
    yield f"recipe new {flags} -o new.toml"


@mistake(2, "columns hold text: ward", "visits.csv", "must be public", "--schema")
def a_draft_for_a_table_with_words(world):
    lines = "north,50,ill\nsouth,60,well\n" * 40
    world.write("visits.csv", f"ward,age,label\n{lines}")
    flags = "--data visits.csv --declared-size 50 --unit record --epsilon 3 --test-is-public"
    told = yield f"recipe new {flags} --classes well,ill -o new.toml"
    drafted = yield told.command().split(" >")[0]
    filled = drafted.out.replace('low = "fill in", high = "fill in"', "low = 0, high = 100")
    filled = filled.replace('classes = ["fill in"]', 'classes = ["well", "ill"]')
    world.write("schema.toml", filled.replace('"fill in"', '"north", "south"'))
    yield f"recipe new {flags} --schema schema.toml -o new.toml"
    yield "recipe check new.toml"


@mistake(2, "neither a recipe nor a method", "recipe explain", "one method", "--method direct")
def nothing_to_explain(world):
    yield "recipe explain"
    yield "recipe explain --method direct"
