"""A stranger's bundle is drawn from only as far as it is what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from release.generators import CLASSES, bundles, network, sketch
from release.making import certificate_of, forge
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.release.files import sha256
from stillroom.release.sample import Wish, sample

SHAPE = (6, 6)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Bundles by what they draw from."""
    return bundles(tmp_path_factory, {"sketch": sketch(), "network": network(full_scale=255.0)})


def copied(folder, tmp_path):
    return Path(shutil.copytree(folder, tmp_path / "bundle"))


def refit(folder, file, content):
    (folder / file).write_bytes(content)
    certificate = certificate_of(folder)
    entry = {"sha256": sha256(content), "size": len(content)}
    certificate["artefacts"][1]["files"][file] = entry
    forge(folder, certificate)


def graph(*nodes, shape=SHAPE, tensors=(), gives=("records",)):
    takes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])]
    outputs = [helper.make_tensor_value_info(g, TensorProto.FLOAT, ["N", *shape]) for g in gives]
    made = helper.make_graph(list(nodes), "g", takes, outputs, initializer=list(tensors))
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(made, opset_imports=opset, ir_version=8).SerializeToString()


WEIGHTS = numpy_helper.from_array(np.full((8, 36), 1000.0, np.float32), "w")
TO = numpy_helper.from_array(np.array([-1, 6, 6]), "to")
FAR = helper.make_node("MatMul", ["x", "w"], ["flat"])
PICTURES = helper.make_node("Reshape", ["flat", "to"], ["records"])
NAN = numpy_helper.from_array(np.full((8, 36), np.nan, np.float32), "w")
OTHER = numpy_helper.from_array(np.array([-1, 4, 9]), "to")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"garbage", "not an ONNX file"),
        (graph(FAR, PICTURES, tensors=[WEIGHTS, TO]), "out of their range"),
        (graph(FAR, PICTURES, tensors=[WEIGHTS, OTHER]), "records"),
        (graph(FAR, PICTURES, tensors=[WEIGHTS, TO], gives=("records", "flat")), "`records`"),
        (graph(helper.make_node("RandomNormalLike", ["x"], ["records"])), "not on the list"),
    ],
)
def test_a_strangers_network_is_held_to_its_kind(made, tmp_path, content, said):
    folder = copied(made["network"], tmp_path)
    refit(folder, "generator.onnx", content)
    with pytest.raises(DoesNotVerify, match=said):
        sample(folder, tmp_path / "x.npz", Wish(5))
    assert not (tmp_path / "x.npz").exists()


def test_a_strangers_network_of_no_numbers(made, tmp_path):
    folder = copied(made["network"], tmp_path)
    refit(folder, "generator.onnx", graph(FAR, PICTURES, tensors=[NAN, TO]))
    with pytest.raises(BadInput, match="finite"):
        sample(folder, tmp_path / "x.npz", Wish(5))


def test_a_strangers_sketch_of_large_numbers(made, tmp_path):
    from safetensors.numpy import save

    said = {**sketch().states, "kind": "generator", "parameters": 9, "shape": [6, 6]}
    said |= {"classes": list(CLASSES), "about": sketch().about}
    wide = np.stack([1e300 * np.eye(3)] * 3)
    arrays = {**sketch().tensors(), "covariances": wide, "directions": np.full((8, 3), 1e300)}
    folder = copied(made["sketch"], tmp_path)
    content = save(arrays, metadata={"stillroom": json.dumps(said)})
    (folder / "generator.safetensors").write_bytes(content)
    certificate = certificate_of(folder)
    certificate["artefacts"][1]["parameters"] = 9
    forge(folder, certificate)
    refit(folder, "generator.safetensors", content)
    with pytest.raises(DoesNotVerify, match="not finite"):
        sample(folder, tmp_path / "x.npz", Wish(5))


def test_a_strangers_sketch_of_many_pixels(made, tmp_path, monkeypatch):
    from stillroom.release import drawing

    monkeypatch.setattr(drawing, "LARGEST_BASIS", 100)
    with pytest.raises(BadInput, match="too large"):
        sample(made["sketch"], tmp_path / "x.npz", Wish(5))


@pytest.mark.parametrize("name", ["sketch", "network"])
def test_a_changed_bundle_is_not_drawn_from(made, tmp_path, name):
    folder = copied(made[name], tmp_path)
    file = max(folder.glob("generator.*"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DoesNotVerify, match=file.name):
        sample(folder, tmp_path / "x.npz", Wish(5))


def test_a_certificate_of_another_generator_is_not_believed(made, tmp_path):
    folder = copied(made["sketch"], tmp_path)
    for change in ({"full_scale": 8.0}, {"shape": [6, 7]}, {"make": "network"}, {"note": 1}):
        certificate = certificate_of(made["sketch"])
        certificate["artefacts"][1].update(change)
        forge(folder, certificate)
        with pytest.raises(DoesNotVerify, match="other artefacts"):
            sample(folder, tmp_path / "x.npz", Wish(5))
