"""Mistakes with bundles and keys: predict, verify, card, sample, keys."""

from __future__ import annotations

import json
import os

import numpy as np
from PIL import Image

from usability.mistakes import mistake
from usability.world import RECIPE


def records(world, name="records.npy", shape=(3, 8, 8)):
    np.save(world.folder / name, np.ones(shape))


@mistake(2, "no bundle", "modle", "with a manifest", "did you mean 'model'")
def a_misspelt_bundle(world):
    world.bundle()
    records(world)
    told = yield "predict modle records.npy"
    yield f"predict {told.quoted('what to do')[0]} records.npy"


@mistake(2, "that of a run", "model.run", "no model", "did you mean 'model'")
def the_folder_of_a_run_for_its_bundle(world):
    world.bundle()
    world.write("model.run/run.json", "{}")
    told = yield "verify model.run"
    yield f"verify {told.quoted('what to do')[0]}"


@mistake(2, "the model takes (8, 8)", "records.npy", "mean nothing", "into the shape")
def records_of_another_shape(world):
    world.bundle()
    records(world, shape=(3, 9, 9))
    yield "predict model records.npy"
    records(world)
    yield "predict model records.npy"


@mistake(2, "called 'record.npy'", "record.npy", "nothing to", "did you mean 'records.npy'")
def records_that_are_not_there(world):
    world.bundle()
    records(world)
    told = yield "predict model record.npy"
    yield f"predict model {told.quoted('what to do')[0]}"


@mistake(2, "not there: 'dose'", "new.csv, line 1", "missing", "in the first line")
def a_table_that_lacks_a_column(world):
    world.bundle("visits")
    world.write("new.csv", "age,weight\n50,70\n")
    yield "predict model new.csv"
    world.write("new.csv", "dose,age,weight\n3,50,70\n")
    yield "predict model new.csv"


@mistake(2, "separated by semicolons", "new.csv, line 1", "one cell", "commas between the cells")
def a_table_with_semicolons_to_predict(world):
    world.bundle("visits")
    world.write("new.csv", "age;dose\n50;1\n")
    yield "predict model new.csv"
    world.write("new.csv", "age,dose\n50,1\n")
    yield "predict model new.csv"


@mistake(2, "a feature is missing", "new.csv, line 2", "numbers", "fill the cell in")
def an_empty_cell_to_predict(world):
    world.bundle("visits")
    world.write("new.csv", "age,dose\n,1\n")
    yield "predict model new.csv"
    world.write("new.csv", "age,dose\n50,1\n")
    yield "predict model new.csv"


@mistake(2, "--csv and --json", "predict", "one form", "ask for one of them")
def two_forms_of_answers(world):
    world.bundle()
    records(world)
    yield "predict model records.npy --csv --json"
    yield "predict model records.npy --json"


@mistake(2, "the model takes (8, 8)", "new.png", "mean nothing", "bring the pictures")
def a_picture_of_another_size(world):
    world.bundle()
    Image.new("L", (9, 9)).save(world.folder / "new.png")
    yield "predict model new.png"
    Image.new("L", (8, 8)).save(world.folder / "new.png")
    yield "predict model new.png"


@mistake(4, "recipe.toml is not the file", "model", "cannot vouch", "for an unchanged copy")
def a_bundle_that_was_changed(world):
    recipe = world.bundle() / "recipe.toml"
    whole = recipe.read_bytes()
    recipe.write_bytes(whole + b"# edited\n")
    yield "verify model"
    recipe.write_bytes(whole)
    yield "verify model"


@mistake(4, "certificate.json is not", "model", "cannot vouch", "for an unchanged copy")
def a_certificate_that_was_touched_up(world):
    file = world.bundle("visits") / "certificate.json"
    whole = file.read_text()
    told = json.loads(whole)
    told["headline"]["epsilon"] = 0.1
    file.write_text(json.dumps(told))
    yield "verify model"
    file.write_text(whole)
    yield "verify model"


@mistake(4, "by another key", "model", "cannot vouch", "give the public key of whoever")
def a_signature_by_another_key(world):
    world.bundle()
    from stillroom.cli import run

    run(["keys", "make", "other.key"])
    yield "verify model --key other.key.pub"
    yield "verify model --key release.key.pub"


@mistake(4, "not signed", "model", "cannot vouch", "without --key")
def a_bundle_without_the_signature_that_is_asked_for(world):
    world.bundle("visits")
    yield "verify model --key release.key.pub"
    yield "verify model"


@mistake(2, "no public Ed25519 key", "release.key", "Ed25519 signatures", "ends in .pub")
def the_private_key_for_the_public_one(world):
    world.bundle()
    yield "verify model --key release.key"
    yield "verify model --key release.key.pub"


@mistake(2, "the key cannot be read", "relase.key.pub", "compared", "did you mean")
def a_misspelt_key_file(world):
    world.bundle()
    told = yield "verify model --key relase.key.pub"
    yield f"verify model --key {told.quoted('what to do')[0]}"


@mistake(2, "can be read by others", "release.key", "sign in its owner's name", "chmod 600")
def a_key_that_others_can_read(world):
    world.bundle(name="another")
    world.recipe()
    key = world.folder / "release.key"
    key.chmod(0o644)
    told = yield "release recipe.toml -o model --key release.key"
    _, mode, name = told.remedy.split()
    os.chmod(world.folder / name, int(mode, 8))
    yield "recipe check recipe.toml -o model --key release.key"


@mistake(2, "the key pair cannot be written", "release.key", "lose their proof", "new file")
def a_key_that_exists(world):
    world.bundle()
    yield "keys make release.key"
    yield "keys make second.key"


@mistake(2, "the card cannot be written", "card.html", "never overwritten", "name a new file")
def a_card_that_exists(world):
    world.bundle()
    world.write("card.html", "mine")
    yield "card model -o card.html"
    yield "card model -o new.html"


SKETCH = """
[sketch]
mu = "1/10"
coefficients = 20
directions = 4
centres = 1
"""


@mistake(2, "has no generator", "model", "makes none", "with a [sketch]", slow=True)
def samples_of_a_model_without_a_generator(world):
    world.bundle()
    yield "sample model -n 10 -o new.npz"
    world.ledger()
    world.recipe(f"{RECIPE}{SKETCH}")
    yield "release recipe.toml -o sketched"
    yield "sample sketched -n 10 -o new.npz"
