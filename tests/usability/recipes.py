"""Mistakes in recipes: keys, values, and what does not go together."""

from __future__ import annotations

from usability.mistakes import mistake
from usability.world import PUBLISHED, RECIPE, SCANS, VISITS

CHECK = "recipe check recipe.toml"
RELEASE = "release recipe.toml -o model"
FIXED = "fixed by its recipe"


@mistake(2, "no such recipe", "recipes.toml", "nothing to do", "did you mean 'recipe.toml'")
def a_recipe_that_is_not_there(world):
    world.recipe()
    told = yield "release recipes.toml -o model"
    yield f"recipe check {told.quoted('what to do')[0]}"


@mistake(2, "cannot be read", "folder", "nothing to do", "name the recipe's file")
def a_folder_for_a_recipe(world):
    world.write("folder/recipe.toml", RECIPE)
    yield "release folder -o model"
    yield "recipe check folder/recipe.toml"


@mistake(2, "no plain text", "recipe.toml", "nothing to do", "plain text in UTF-8")
def a_recipe_in_latin_1(world):
    world.write("recipe.toml", f"# für alle\n{RECIPE}", encoding="latin-1")
    yield RELEASE
    world.write("recipe.toml", (world.folder / "recipe.toml").read_text("latin-1"))
    yield CHECK


@mistake(2, "not TOML", "recipe.toml", "certainty", "mend the line it names")
def a_quote_that_is_missing(world):
    world.recipe(source='"digits')
    told = yield RELEASE
    assert "line 4" in told.part("error")
    world.mend('"digits', '"digits"')
    yield CHECK


@mistake(2, "training.stepps: unknown key", "recipe.toml", FIXED, "mend these lines")
def a_misspelt_key(world):
    world.recipe(RECIPE.replace("steps", "stepps"))
    told = yield RELEASE
    world.mend("stepps", told.quoted()[0])
    yield CHECK


@mistake(2, "trainig: unknown key", "recipe.toml", FIXED, "mend these lines")
def a_misspelt_section(world):
    world.recipe(RECIPE.replace("[training]", "[trainig]"))
    told = yield RELEASE
    world.mend("trainig", told.quoted()[0])
    yield CHECK


@mistake(2, "data.public_size: is now called", "recipe.toml", FIXED, "mend these lines")
def a_key_of_an_older_version(world):
    world.recipe(RECIPE.replace("declared_size", "public_size"))
    told = yield RELEASE
    world.mend("public_size", told.quoted()[0].removeprefix("data."))
    yield CHECK


@mistake(2, "data.declared_size: is missing", "recipe.toml", FIXED, "mend these lines")
def a_declared_size_that_is_missing(world):
    world.recipe(declared_size="")
    told = yield RELEASE
    assert "a round guess" in told.part("error")
    world.mend("[data]", "[data]\ndeclared_size = 1000")
    yield CHECK


@mistake(2, "privacy.epsilon: is missing", "recipe.toml", FIXED, "explain --method direct")
def an_epsilon_that_is_missing(world):
    world.recipe(epsilon="")
    told = yield RELEASE
    yield told.command()
    world.mend("[privacy]", "[privacy]\nepsilon = 2")
    yield CHECK


@mistake(2, "epsilon: input should be greater than 0", "recipe.toml", FIXED, "mend")
def an_epsilon_of_zero(world):
    world.recipe(epsilon="0")
    yield RELEASE
    world.mend("epsilon = 0", "epsilon = 1")
    yield CHECK


@mistake(2, "epsilon: input should be a valid number", "recipe.toml", FIXED, "mend")
def an_epsilon_in_words(world):
    world.recipe(epsilon='"three"')
    yield RELEASE
    world.mend('"three"', "3")
    yield CHECK


@mistake(2, "delta: input should be greater than or equal to 1e-12", "recipe", FIXED, "mend")
def a_delta_of_zero(world):
    world.recipe(RECIPE + "delta = 0\n")
    yield RELEASE
    world.mend("delta = 0", "delta = 1e-6")
    yield CHECK


@mistake(2, "no method 'dirct'", "method", "read by its method", "did you mean 'direct'")
def a_misspelt_method(world):
    world.recipe(f'method = "dirct"\n{RECIPE}')
    told = yield RELEASE
    world.mend("dirct", told.quoted("what to do")[0])
    yield CHECK


@mistake(2, "source: input should be 'trained'", "recipe.toml", FIXED, "mend these lines")
def a_source_of_another_method(world):
    world.recipe(f'source = "ensemble"\n{RECIPE}')
    told = yield RELEASE
    world.mend("ensemble", told.quoted()[0])
    yield CHECK


@mistake(2, "data.public: unknown key", "recipe.toml", FIXED, "explain --method direct")
def a_key_of_another_method(world):
    world.recipe(RECIPE.replace("[data]", '[data]\npublic = "1/5"'))
    yield RELEASE
    world.mend('public = "1/5"\n', "")
    yield CHECK


@mistake(2, "there are no features 'pixel'", "recipe.toml", FIXED, "mend these lines")
def misspelt_features(world):
    world.recipe(name='"pixel"')
    told = yield RELEASE
    assert "pixels" in told.part("error")
    world.mend('"pixel"', '"pixels"')
    yield CHECK


@mistake(2, "edge orientations need pictures", "features", "no edges", 'name = "pixels"')
def features_of_pictures_for_a_table(world):
    world.visits()
    world.recipe(VISITS, name='"edges"')
    told = yield "release recipe.toml -o model"
    world.mend('name = "edges"', told.remedy.removeprefix("write ").split(" under")[0])
    yield CHECK


@mistake(2, "name no persons", "data.unit", "cannot be protected", "name the column of persons")
def persons_that_nobody_names(world):
    world.people()
    world.recipe(VISITS.replace("[data]", '[data]\nunit = "person"\nid_column = "person"'))
    world.mend('id_column = "person"\n', "")
    world.visits(header="age,dose,label")
    yield RELEASE
    world.people()
    world.mend("[data]", '[data]\nperson_column = "person"')
    yield CHECK


@mistake(2, "exactly one group", "recipe.toml", FIXED, "mend these lines")
def a_pattern_without_brackets(world):
    world.scans()
    world.recipe(SCANS.replace("[data]", '[data]\nperson_pattern = "^p[0-9]+_"'))
    yield RELEASE
    world.mend("^p[0-9]+_", "^(p[0-9]+)_")
    yield CHECK


@mistake(2, "finds no person", "p0_0.png", "protected as nobody's", "correct data.person_pattern")
def a_pattern_that_does_not_fit(world):
    world.scans()
    world.recipe(SCANS.replace("[data]", '[data]\nperson_pattern = "^(person[0-9]+)_"'))
    yield RELEASE
    world.mend("^(person[0-9]+)_", "^(p[0-9]+)_")
    yield CHECK


@mistake(2, "no official train and test parts", "data.split", "were given", 'split = "fraction"')
def official_parts_that_are_not_there(world):
    world.recipe(RECIPE.replace("[data]", '[data]\nsplit = "as-given"'))
    told = yield RELEASE
    world.mend('split = "as-given"', told.remedy.removeprefix("use "))
    yield CHECK


@mistake(2, "a paper's algorithm", "mode, purpose", "infinity", 'purpose = "benchmark"', slow=True)
def a_papers_algorithm_on_a_ledger_for_release(world):
    world.recipe(PUBLISHED)
    yield RELEASE
    world.mend('method = "pg"', 'method = "pg"\npurpose = "benchmark"')
    yield CHECK


@mistake(2, "alone would cost more", "evaluation_sigma", "nothing would be left", "raise")
def an_epsilon_that_the_test_alone_spends(world):
    world.recipe(epsilon="0.1", test_is_public="false")
    yield "release recipe.toml -o model --dry-run"
    world.write("recipe.toml", world.read("recipe.toml") + "evaluation_sigma = 100\n")
    yield "release recipe.toml -o model --dry-run"


@mistake(2, "not installed", "release", "after it has paid", "pip install 'stillroom[train]'")
def a_package_that_is_not_installed(world):
    from stillroom.pipeline import packages

    there = packages.find_spec
    world.recipe()
    world.monkeypatch.setattr(
        packages, "find_spec", lambda name: None if name == "onnx" else there(name)
    )
    yield RELEASE
    world.monkeypatch.setattr(packages, "find_spec", there)  # as pip does
    yield CHECK
