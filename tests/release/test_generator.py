"""Generators as artefacts: their files, their line in the certificate, and what forgers try."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from quick_onnx import use_quick_exporter
from release.generators import CLASSES, mixture, network, sketch
from release.making import certificate_of, forge, linear, make
from stillroom.errors import BadInput, DoesNotVerify, NumericalDoubt
from stillroom.public.generators import Generator, build_generator
from stillroom.release import verify_bundle, write_bundle
from stillroom.release.files import sha256
from stillroom.release.generator import ABOUT_SKETCH, SketchGenerator
from stillroom.release.graph import DRAWN
from stillroom.release.predict import session_of
from stillroom.release.tensor_file import arrays_in
from stillroom.release.torch_generator import NetworkGenerator, refuse_unexportable_generator

FILES = {
    "sketch": ["generator.safetensors"],
    "network": ["generator.onnx", "generator.safetensors"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A bundle with each make of generator."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        use_quick_exporter(patch)
        for name, generator in (("sketch", sketch()), ("network", network())):
            folder = tmp_path_factory.mktemp(name)
            write_bundle(make(folder, generator=generator), folder / "bundle")
            found[name] = folder / "bundle"
    return found


@pytest.fixture(params=FILES)
def bundle(request, made, tmp_path):
    """A copy to spoil."""
    return Path(shutil.copytree(made[request.param], tmp_path / "bundle"))


def generator_of(folder):
    _, line = certificate_of(folder)["artefacts"]
    return line


@pytest.mark.parametrize("name", FILES)
def test_the_certificate_has_a_line_for_it(made, name):
    line = generator_of(made[name])
    assert verify_bundle(made[name])["verifies"]
    assert (line["name"], line["kind"], line["make"]) == ("generator", "generator", name)
    assert (line["shape"], line["classes"]) == ([6, 6], list(CLASSES))
    assert (line["conditional"], line["full_scale"]) == (True, 16.0)
    assert sorted(line["files"]) == FILES[name]
    for file, entry in line["files"].items():
        content = (made[name] / file).read_bytes()
        assert entry == {"sha256": sha256(content), "size": len(content)}
    card = (made[name] / "card.html").read_text()
    assert line["about"] in card
    assert "stillroom sample" in card


def test_what_each_states(made):
    drawn, net = generator_of(made["sketch"]), generator_of(made["network"])
    assert (drawn["about"], drawn["sharpen"], drawn["warp"]) == (ABOUT_SKETCH, 0.5, 0.5)
    arrays = mixture().arrays()
    assert drawn["parameters"] == sum(arrays[n].size for n in arrays if n != "basis")
    assert (net["about"], net["latent"]) == ("generator `conv`, told the class to draw", 5)
    assert net["parameters"] == sum(tensor.size for tensor in network().tensors().values())


def test_a_sketch_comes_back_as_it_was(made):
    arrays = arrays_in((made["sketch"] / "generator.safetensors").read_bytes())
    again = SketchGenerator.of(generator_of(made["sketch"]), arrays)
    for one, other in zip(sketch().draw(3, 20), again.draw(3, 20), strict=True):
        assert np.array_equal(one, other)


def test_one_changed_byte_is_found(bundle):
    for file in bundle.glob("generator.*"):
        content = file.read_bytes()
        for place in (0, 9, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[place] ^= 1
            file.write_bytes(changed)
            with pytest.raises(DoesNotVerify, match=file.name):
                verify_bundle(bundle)
        file.write_bytes(content)
    assert verify_bundle(bundle)["verifies"]


def test_a_missing_file_is_found_even_where_the_manifest_does_not_list_it(bundle):
    for file in list(bundle.glob("generator.*")):
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(DoesNotVerify, match=file.name):
            verify_bundle(bundle)
        forge(bundle, certificate_of(bundle))
        with pytest.raises(DoesNotVerify):
            verify_bundle(bundle)
        file.write_bytes(content)
        forge(bundle, certificate_of(bundle))
    assert verify_bundle(bundle)["verifies"]


def respell(folder, change, tensors=None):
    """What the weights' file says of itself, changed, all hashes fitted."""
    file = folder / "generator.safetensors"
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    said = json.loads(header["__metadata__"]["stillroom"])
    change(said)
    header["__metadata__"]["stillroom"] = json.dumps(said)
    if tensors is not None:
        tensors(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    refit(folder, said)


def refit(folder, said=None):
    certificate = certificate_of(folder)
    line = certificate["artefacts"][1]
    for name in list(line["files"]):
        content = (folder / name).read_bytes()
        line["files"][name] = {"sha256": sha256(content), "size": len(content)}
    certificate["artefacts"][1] = {**line, **(said or {})}
    forge(folder, certificate)


def test_the_forger_of_these_tests_is_careful(bundle):
    respell(bundle, lambda said: said.update(about="another word"))
    assert verify_bundle(bundle)["artefacts"][1]["about"] == "another word"


@pytest.mark.parametrize(
    "change",
    [
        {"make": "oracle"},
        {"make": None},
        {"conditional": 1},
        {"conditional": None},
        {"full_scale": 0.0},
        {"full_scale": 16},
        {"full_scale": -1.0},
        {"full_scale": "16"},
        {"shape": None},
        {"classes": ["one"]},
        {"classes": None},
        {"parameters": 0},
        {"parameters": 10**9},
        {"kind": "parameters"},
        {"kind": "classifier"},
    ],
    ids=str,
)
def test_a_file_that_says_what_cannot_be(bundle, change):
    respell(bundle, lambda said: said.update(change))
    with pytest.raises(DoesNotVerify):
        verify_bundle(bundle)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("network", {"latent": 0}),
        ("network", {"latent": 5.0}),
        ("network", {"latent": True}),
        ("network", {"latent": 2**40}),
        ("network", {"make": "sketch", "sharpen": 0.5, "warp": 0.5}),
        ("sketch", {"make": "network", "latent": 5}),
        ("sketch", {"conditional": False}),
        ("sketch", {"sharpen": 1.5}),
        ("sketch", {"warp": None}),
        ("sketch", {"classes": ["one", "two"]}),
        ("sketch", {"shape": [6]}),
        ("sketch", {"shape": [6, 7]}),
        ("sketch", {"shape": [6, 6, 1]}),
    ],
    ids=str,
)
def test_makes_are_held_to_what_they_are(made, tmp_path, name, change):
    folder = Path(shutil.copytree(made[name], tmp_path / "bundle"))
    respell(folder, lambda said: said.update(change))
    with pytest.raises(DoesNotVerify):
        verify_bundle(folder)


def spoilt(**changes):
    return {**{name: array.copy() for name, array in mixture().arrays().items()}, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": np.ones((3, 3))},
        {"covariances": np.full((3, 3, 3), np.inf)},
        {"basis": np.array([6, 6, 37])},
        {"basis": np.array([10**9, 10**9, 8])},
        {"note": np.ones(3)},
    ],
    ids=str,
)
def test_arrays_that_are_no_sketch(made, tmp_path, changes):
    from safetensors.numpy import save

    folder = Path(shutil.copytree(made["sketch"], tmp_path / "bundle"))
    said = {**sketch().states, "kind": "generator", "about": ABOUT_SKETCH, "parameters": 9}
    said |= {"shape": [6, 6], "classes": list(CLASSES)}
    content = save(spoilt(**changes), metadata={"stillroom": json.dumps(said)})
    (folder / "generator.safetensors").write_bytes(content)
    refit(folder, {"parameters": 9})
    with pytest.raises(DoesNotVerify):
        verify_bundle(folder)
    (folder / "generator.safetensors").write_bytes(
        save(spoilt(), metadata={"stillroom": json.dumps(said)})
    )
    refit(folder, {"parameters": 9})
    assert verify_bundle(folder)["verifies"]


def test_a_sketch_of_half_numbers_is_refused(made, tmp_path):
    folder = Path(shutil.copytree(made["sketch"], tmp_path / "bundle"))
    respell(folder, lambda said: None, lambda header: header["basis"].update(dtype="U64"))
    with pytest.raises(DoesNotVerify):
        verify_bundle(folder)


SHAPES = [(6, 6), (5, 7, 3), (4,)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("conditional", [True, False])
def test_the_exported_network_draws_what_the_network_draws(shape, conditional):
    """By the exporter that is used; the zoo's layers are on the list of what is run."""
    generator = network(shape, 255.0, conditional, model="mlp" if len(shape) == 1 else "conv")
    session = session_of(generator.checked_onnx())
    records, classes = generator.draw(3, 5)
    assert records.shape == (5, *shape)
    assert 0 <= records.min() < records.max() <= 255
    assert (classes is not None) == conditional
    rows = np.zeros((2, 8 if conditional else 5), np.float32)
    assert session.run(list(DRAWN), {"x": rows})[0].shape == (2, *shape)


def test_two_writings_are_the_same_bytes(monkeypatch):
    use_quick_exporter(monkeypatch)
    assert network().checked_onnx() == network().checked_onnx()


def test_a_generator_that_mixes_its_rows_is_refused(monkeypatch):
    class Mixing(nn.Module):
        def forward(self, x):
            return (torch.zeros(4) + (x - x.mean(0))[:, :4]).sigmoid()

    use_quick_exporter(monkeypatch)
    mixing = Generator(Mixing(), (4,), 3, latent=5, conditional=False)
    with pytest.raises(NumericalDoubt, match="different records"):
        NetworkGenerator(mixing, (4,), 16.0, "mixing").checked_onnx()


def test_one_of_ones_own_is_tried_before_anything_is_paid_for(tmp_path, monkeypatch):
    (tmp_path / "stillroom_odd_generator.py").write_text(
        "import torch\n"
        "class Odd(torch.nn.Module):\n"
        "    def __init__(self, shape, inputs):\n"
        "        super().__init__()\n"
        "    def forward(self, x):\n"
        "        return torch.sort(x, 1)[0][:, :4]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    use_quick_exporter(monkeypatch)
    spec = "stillroom_odd_generator:Odd"
    odd = build_generator(spec, (4,), 3, latent=5, width=8, conditional=False, seed=0)
    released = NetworkGenerator(odd, (4,), 16.0, spec)
    with pytest.raises(BadInput, match="not on the list"):
        refuse_unexportable_generator(spec, released)
    refuse_unexportable_generator("mlp", released)  # of the zoo, whose generators are known
    sys.modules.pop("stillroom_odd_generator", None)


def test_records_of_another_shape_are_refused():
    generator = build_generator("mlp", (4,), 3, latent=5, width=8, conditional=False, seed=0)
    with pytest.raises(BadInput, match="stored ones"):
        NetworkGenerator(generator, (5,), 16.0, "mlp")


def test_the_handed_over_network_does_not_change(monkeypatch):
    generator = build_generator("mlp", (4,), 3, latent=5, width=8, conditional=False, seed=0)
    released = NetworkGenerator(generator, (4,), 16.0, "mlp")
    before = released.draw(1, 3)[0]
    with torch.no_grad():
        generator.network[0].weight.zero_()
    assert np.array_equal(released.draw(1, 3)[0], before)


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    generator = build_generator("mlp", (6,), 3, latent=5, width=8, conditional=False, seed=0)
    with torch.no_grad():
        generator.network[0].weight[0, 0] = torch.nan
    with pytest.raises(BadInput, match="finite"):
        make(tmp_path, generator=NetworkGenerator(generator, (6,), 16.0, "mlp"))


def test_the_sheet_on_the_card_says_who_drew_it(tmp_path, monkeypatch):
    use_quick_exporter(monkeypatch)
    pictures = np.zeros((4, 6, 6))
    for name, generator, said in (
        ("a", sketch(), "Drawn from the private sketch: no real records"),
        ("b", network(), "Drawn from the generator: no real records"),
        ("c", None, "Drawn from the private sketch: no real records"),
    ):
        record = make(tmp_path / name, generator=generator, samples=pictures)
        write_bundle(record, tmp_path / name / "bundle")
        card = (tmp_path / name / "bundle" / "card.html").read_text()
        assert said in card
        assert ("stillroom sample" in card) == (generator is not None)
        assert "None of them is anyone's record" in card


def test_pictures_of_an_unprotected_generator_promise_nothing(tmp_path, monkeypatch):
    from stillroom.gate import Unprotected

    use_quick_exporter(monkeypatch)
    record = make(
        tmp_path,
        mechanism=Unprotected(4, "tests"),
        generator=network(),
        samples=np.zeros((4, 6, 6)),
    )
    write_bundle(record, tmp_path / "bundle")
    card = (tmp_path / "bundle" / "card.html").read_text()
    assert "no price bounds what went into them" in card
    assert "costs nothing more" not in card
    assert "anyone's record" not in card


def test_linear_models_and_sketches_need_no_torch_to_be_released(tmp_path):
    write_bundle(make(tmp_path, model=linear(), generator=sketch()), tmp_path / "bundle")
    assert verify_bundle(tmp_path / "bundle")["verifies"]
