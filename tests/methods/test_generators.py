"""Sketches as generators beside a model: released with it, fixed by the recipe, free to draw."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from methods.forging import forge
from methods.pictures import BUDGET, SKETCH, recipe_in
from release.generators import network, sketch
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.methods import base, generators
from stillroom.methods.direct import DIRECT
from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.methods.registry import parse, read
from stillroom.pipeline.release import load_parts_of, release
from stillroom.pipeline.run import run
from stillroom.pipeline.verify import verify
from stillroom.release import verify_bundle
from stillroom.release.files import sha256
from stillroom.release.generator import ABOUT_SKETCH
from stillroom.release.sample import Wish, sample
from stillroom.release.sections.samples import Sheet, picture_of
from stillroom.sources import Party

PIXELS = 'name = "pixels"'


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A bundle with a sketch and one without, of the same records."""
    folder = tmp_path_factory.mktemp("released")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLROOM_HOME", str(folder / "home"))
        recipe = recipe_in(folder, features=PIXELS, more=SKETCH, records=600)
        release(recipe, folder / "sketched", budget=BUDGET)
        release(recipe_in(folder, features=PIXELS), folder / "plain")
    return folder


def copied(folder, tmp_path):
    return Path(shutil.copytree(folder, tmp_path / "bundle"))


def certificate_of(folder):
    return json.loads((folder / "certificate.json").read_text())


def test_a_paid_sketch_is_released(released, tmp_path):
    bundle = released / "sketched"
    model, line = verify(bundle)["artefacts"]
    assert (model["kind"], line["kind"], line["about"]) == ("classifier", "generator", ABOUT_SKETCH)
    assert (line["shape"], line["full_scale"]) == ([16, 16], 16.0)
    assert (line["sharpen"], line["warp"]) == (0.8, 0.5)
    told = sample(bundle, tmp_path / "x.npz", Wish(60))
    with np.load(tmp_path / "x.npz") as drawn:
        assert drawn["x"].shape == (60, 16, 16)
    assert sum(told["classes"].values()) == 60


def test_no_sketch_no_generator(released, tmp_path):
    (model,) = verify(released / "plain")["artefacts"]
    assert model["kind"] == "classifier"
    with pytest.raises(BadInput, match="no generator"):
        sample(released / "plain", tmp_path / "x.npz", Wish(5))


def respell(folder, **changes):
    """Another word in the sketch's file, with a certificate that fits."""
    file = folder / "generator.safetensors"
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    said = {**json.loads(header["__metadata__"]["stillroom"]), **changes}
    header["__metadata__"]["stillroom"] = json.dumps(said)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    refit(folder, changes)


def refit(folder, changes):
    document = certificate_of(folder)
    picture = picture_of(document, (folder / "card.html").read_bytes(), folder)
    content = (folder / "generator.safetensors").read_bytes()
    document["artefacts"][1].update(changes)
    entry = {"sha256": sha256(content), "size": len(content)}
    document["artefacts"][1]["files"]["generator.safetensors"] = entry
    forge(folder, document, picture)


@pytest.mark.parametrize(
    "changes",
    [{"sharpen": 0.0}, {"warp": 1.0}, {"full_scale": 255.0}, {"about": "real records"}],
    ids=str,
)
def test_the_recipe_decides_how_it_is_drawn_from(released, tmp_path, changes):
    folder = copied(released / "sketched", tmp_path)
    respell(folder, **changes)
    assert verify_bundle(folder)["verifies"], "files and certificate agree"
    with pytest.raises(DoesNotVerify, match=r"recipe\.toml comes to: artefacts"):
        verify(folder)


def test_classes_of_the_sketch_are_those_of_the_model(released, tmp_path):
    folder = copied(released / "sketched", tmp_path)
    respell(folder, classes=[*"abcdefghij"])
    assert verify_bundle(folder)["verifies"]
    with pytest.raises(DoesNotVerify, match="artefacts"):
        verify(folder)


def test_a_generator_that_the_recipe_does_not_come_to_is_refused(released, tmp_path):
    """Put into a bundle without a sketch, or left out of one that paid for it."""
    plain = copied(released / "plain", tmp_path / "a")
    line = certificate_of(released / "sketched")["artefacts"][1]
    shutil.copy(released / "sketched" / "generator.safetensors", plain)
    document = certificate_of(plain)
    document["artefacts"].append(line)
    forge(plain, document, None)
    assert verify_bundle(plain)["verifies"]
    with pytest.raises(DoesNotVerify, match="artefacts"):
        verify(plain)
    sketched = copied(released / "sketched", tmp_path / "b")
    (sketched / "generator.safetensors").unlink()
    document = certificate_of(sketched)
    picture = picture_of(document, (sketched / "card.html").read_bytes(), sketched)
    document["artefacts"].pop()
    forge(sketched, document, picture)
    assert verify_bundle(sketched)["verifies"]
    with pytest.raises(DoesNotVerify, match="artefacts"):
        verify(sketched)


def test_in_memory_it_draws_too(tmp_path, monkeypatch):
    from stillroom.gate import Budget, Ledger
    from stillroom.vocabulary import RECORD

    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    recipe, _ = read(recipe_in(tmp_path, features=PIXELS, more=SKETCH, records=600))
    recipe = recipe.model_copy(update={"purpose": "benchmark"})
    parts = load_parts_of(recipe, tmp_path)
    ledger = Ledger.in_memory(parts.sensitive, purpose="benchmark")
    ledger.set_budget(Budget(2.0, 1e-5, RECORD), reason="a test")
    party = Party("data", parts.sensitive, lambda: ledger)
    finished = run(recipe, [party], parts.public, parts.test)
    generator = finished.result.generator
    assert generator is not None
    records, classes = generator.draw(3, 40)
    assert records.shape == (40, 16, 16)
    assert 0 <= records.min() < records.max() <= 16
    assert len(classes) == 40
    assert finished.terms.generator == {"about": generator.about, **generator.states}


def test_what_the_recipe_fixes():
    least = '[data]\nsource = "digits"\ndeclared_size = 1440\n[privacy]\nepsilon = 2\n'
    without, sketched = parse(least), parse(least + "[sketch]\nmu = 1\nwarp = 0.25\n")
    assert DIRECT.terms(without, {"learnt": True}, 1).generator is None
    assert generators.sketch_terms(sketched)["warp"] == 0.25
    told = generators.network_terms(without, "conv", 7, conditional=False)
    assert (told["make"], told["latent"], told["conditional"]) == ("network", 7, False)
    assert told["about"] == "generator `conv`, of any class"
    made = network(conditional=True)
    same = generators.network_terms(without, "conv", 5, conditional=True)
    assert {**same, "full_scale": 16.0} == {"about": made.about, **made.states}


@pytest.mark.parametrize("generator", [sketch(), network((6, 6, 3), 255.0)], ids=["grey", "colour"])
def test_samples_for_a_card(generator):
    shown = generators.shown_samples(generator, 12)
    assert shown.shape == (12, *generator.shape)
    assert 0 <= shown.min() < shown.max() <= 1
    assert Sheet.of(shown).count == 12
    _, classes = generator.draw(0, 12)
    first = np.flatnonzero(classes == classes.min())[0]
    scaled = generator.draw(0, 12)[0][first] / generator.states["full_scale"]
    assert np.allclose(shown[0], scaled)


def test_rows_are_no_pictures():
    assert generators.shown_samples(network((4,), 1.0, model="mlp"), 3) is None
    assert base.Result.__dataclass_fields__["generator"].default is None


@pytest.mark.parametrize(
    "wrong", [{"latent": 0}, {"width": 3}, {"alpha": -1}, {"learning_rate": 0}, {"steps": 0}]
)
def test_numbers_of_a_generator(wrong):
    assert GeneratorSection().model == "conv"
    with pytest.raises(BadInput):
        GeneratorSection.of(**wrong)
