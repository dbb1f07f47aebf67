"""A torch network is released like any model: same bundle, same checks, no trace of the machine."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from release.making import certificate_of, make
from release.networks import CLASSES, cnn, network, records
from stillroom.errors import BadInput, DoesNotVerify, NumericalDoubt
from stillroom.features.scattering import Scattering
from stillroom.models import AsPictures, build
from stillroom.randomness import integers
from stillroom.release import verify_bundle, write_bundle
from stillroom.release.files import LISTED
from stillroom.release.model import check_onnx, checked_onnx
from stillroom.release.predict import predict, run_onnx
from stillroom.release.torch_model import TorchModel

SHAPES = [(8, 8), (8, 8, 3)]
TRACES = (b"/tmp", b"/home", b"/work", b"site-packages", b".py", b"File ", str(Path.cwd()).encode())


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def released(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    model = cnn(request.param)
    write_bundle(make(folder, model=model, purpose="benchmark"), folder / "bundle")
    return model, folder / "bundle"


def test_a_network_is_released(released):
    model, bundle = released
    assert 200 < model.parameters < 1000
    report = verify_bundle(bundle)
    certificate = certificate_of(bundle)
    assert report["purpose"] == "benchmark"
    (artefact,) = report["artefacts"]
    assert artefact["about"] == "network of two convolutions"
    assert artefact["parameters"] == model.parameters
    assert artefact["files"]["model.onnx"]["size"] == (bundle / "model.onnx").stat().st_size
    assert certificate["artefacts"][0]["shape"] == list(model.shape)
    assert {"torch", "onnx", "numpy"} <= set(certificate["versions"])
    assert "network of two convolutions" in (bundle / "card.html").read_text()


@pytest.mark.parametrize("name", LISTED)
def test_a_flipped_byte_is_found(released, tmp_path, name):
    copy = Path(shutil.copytree(released[1], tmp_path / "bundle"))
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(DoesNotVerify, match=name):
        verify_bundle(copy)


def test_the_state_dict_can_be_read_back(released):
    from safetensors.torch import load_file

    model, bundle = released
    again = network(model.shape)
    for parameter in again.parameters():
        parameter.data.zero_()
    again.load_state_dict(load_file(bundle / "model.safetensors"))
    x = records(model.shape)
    with torch.no_grad():
        expected = again.eval()(torch.tensor(x)).numpy()
    assert np.allclose(model.logits(x), expected, atol=1e-6)


def test_strangers_get_the_same_answers(released, tmp_path):
    model, bundle = released
    shutil.copy(bundle / "model.onnx", tmp_path)
    np.save(tmp_path / "x.npy", records(model.shape))
    for name in ("stillroom", "torch", "onnx", "onnxscript"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    code = (
        "import numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession('model.onnx')\n"
        "x = numpy.load('x.npy')\n"
        "for count in (1, 3, 100):\n"
        "    logits, label = session.run(['logits', 'label'], {'x': x[:count]})\n"
        "    numpy.save(f'logits-{count}.npy', logits); numpy.save(f'label-{count}.npy', label)\n"
        "print(session.get_modelmeta().custom_metadata_map['classes'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["<b>", "two", "three"]
    expected = model.logits(records(model.shape))
    for count in (1, 3, 100):
        logits = np.load(tmp_path / f"logits-{count}.npy")
        assert np.allclose(logits, expected[:count], atol=1e-5)
        assert np.array_equal(np.load(tmp_path / f"label-{count}.npy"), logits.argmax(axis=1))


def test_predict_takes_records_as_they_are_stored(released):
    model, bundle = released
    x = records(model.shape, 300).astype(np.uint8)
    labels, logits = predict(bundle, x)
    assert np.allclose(logits, model.logits(x), atol=1e-5)
    assert np.array_equal(labels, logits.argmax(axis=1))
    with pytest.raises(BadInput, match="shape"):
        predict(bundle, x[:, 1:])


def test_the_file_tells_nothing_of_the_machine(released):
    content = (released[1] / "model.onnx").read_bytes()
    assert [trace for trace in TRACES if trace in content] == []
    assert sorted(file.name for file in released[1].iterdir() if "onnx" in file.name) == [
        "model.onnx"
    ]


def test_without_stripping_it_would(monkeypatch):
    monkeypatch.setattr("stillroom.release.torch_model._strip", lambda model: None)
    content = cnn((8, 8)).onnx(CLASSES)
    assert any(trace in content for trace in TRACES)


def test_equal_networks_are_equal_files_and_nothing_is_said(released, capfd, recwarn):
    model, bundle = released
    disabled, threads = logging.root.manager.disable, torch.get_num_threads()
    again = cnn(model.shape).onnx(("<b>", "two", "three"))
    assert again == (bundle / "model.onnx").read_bytes()
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
    assert (logging.root.manager.disable, torch.get_num_threads()) == (disabled, threads)


@pytest.mark.slow
def test_a_fresh_process_says_nothing_either(tmp_path):
    code = (
        "from torch import nn\n"
        "from stillroom.release.torch_model import TorchModel\n"
        "layers = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))\n"
        "TorchModel(layers, (2, 2), 'small').onnx(('a', 'b'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_network_is_left_alone_and_no_longer_needed():
    layers = network((8, 8)).train()
    model = TorchModel(layers, (8, 8), "network")
    before = model.logits(records((8, 8)))
    assert layers.training
    assert all(parameter.requires_grad for parameter in layers.parameters())
    for parameter in layers.parameters():
        parameter.data.zero_()
    assert np.array_equal(model.logits(records((8, 8))), before)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["student-10k", "resnet-small", "scattering"])
def test_networks_of_the_house(spec):
    shape = (28, 28)
    pictures = AsPictures(shape, 255)
    if spec == "scattering":
        inner = nn.Sequential(Scattering(), nn.Flatten(), nn.Linear(81 * 49, 10))
    else:
        inner = build(spec, pictures.given, 10, seed=1)
    model = TorchModel(nn.Sequential(pictures, inner), shape, spec)
    x = integers(2, "records", size=(30, *shape), below=256).astype(np.float32)
    content = checked_onnx(model, tuple("0123456789"))
    for count in (1, 30):
        logits, _ = run_onnx(content, x[:count])
        assert np.abs(logits - model.logits(x[:count])).max() <= 1e-5 * np.abs(logits).max()


def test_another_networks_graph_is_doubted(released):
    model, bundle = released
    content = (bundle / "model.onnx").read_bytes()
    check_onnx(content, model)
    layers = network(model.shape)
    layers[9].bias.data[0] += 0.01
    with pytest.raises(NumericalDoubt):
        check_onnx(content, TorchModel(layers, model.shape, "other"))
