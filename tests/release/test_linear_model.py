"""The ONNX graph is the model: features and layer, for every shape, without this package."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from release.making import linear, make
from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features import FEATURES
from stillroom.release.model import check_onnx, checked_onnx
from stillroom.release.predict import run_onnx

SHAPES = [
    *[("pixels", shape) for shape in [(5,), (8, 8), (7, 9), (6, 5, 3)]],
    *[("edges", shape) for shape in [(8, 8), (28, 28), (7, 9), (6, 5, 3), (32, 32, 3)]],
]
CLASSES = ("one", "two", "three")


@pytest.mark.parametrize(("features", "shape"), SHAPES)
def test_the_graph_equals_numpy(features, shape):
    model = linear(features, shape)
    rng = np.random.default_rng(7)
    x = (rng.random((200, *shape)) * 255).round().astype(np.float32)
    x[0] = 0
    if len(shape) > 1:
        x[1, 2:] = 0  # flat parts: no gradient, no angle
    logits, labels = run_onnx(checked_onnx(model, CLASSES), x)
    expected = FEATURES[features](x) @ model.weights.T
    assert np.abs(logits - expected).max() < 1e-4
    assert (labels == logits.argmax(axis=1)).all()


@pytest.mark.parametrize("count", [1, 255, 256, 257, 600])
def test_any_number_of_records(count):
    model = linear("edges", (8, 8))
    x = (np.arange(count * 64).reshape(count, 8, 8) % 17).astype(np.float32)
    logits, labels = run_onnx(checked_onnx(model, CLASSES), x)
    assert labels.shape == (count,)
    assert np.allclose(logits, model.logits(x), atol=1e-4)


def test_another_models_graph_is_doubted():
    model = linear()
    other = dataclasses.replace(model, weights=model.weights * np.float32(1.01))
    with pytest.raises(NumericalDoubt):
        check_onnx(checked_onnx(other, CLASSES), model)


def test_weights_that_do_not_fit_are_refused(tmp_path):
    model = linear()
    with pytest.raises(BadInput, match="unknown features"):
        dataclasses.replace(model, features="corners")
    with pytest.raises(BadInput, match="37 columns"):
        dataclasses.replace(model, weights=model.weights[:, 1:])
    with pytest.raises(BadInput, match="2 scores"):
        make(tmp_path / "few", model=dataclasses.replace(model, weights=model.weights[1:]))
    with pytest.raises(BadInput, match="finite"):
        make(tmp_path / "odd", model=dataclasses.replace(model, weights=model.weights * np.inf))
