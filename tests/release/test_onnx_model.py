"""The ONNX graph is the model: features and layer, for every shape, without this package."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from release.making import make
from stillroom.errors import NumericalDoubt
from stillroom.features import FEATURES
from stillroom.release.onnx_model import build_onnx, check_onnx
from stillroom.release.predict import run_onnx

SHAPES = [
    *[("pixels", shape) for shape in [(5,), (8, 8), (7, 9), (6, 5, 3)]],
    *[("edges", shape) for shape in [(8, 8), (28, 28), (7, 9), (6, 5, 3), (32, 32, 3)]],
]


@pytest.mark.parametrize(("features", "shape"), SHAPES)
def test_the_graph_equals_numpy(tmp_path, features, shape):
    made = make(tmp_path, features=features, shape=shape)
    rng = np.random.default_rng(7)
    x = (rng.random((200, *shape)) * 255).round().astype(np.float32)
    x[0] = 0
    if len(shape) > 1:
        x[1, 2:] = 0  # flat parts: no gradient, no angle
    logits, labels = run_onnx(build_onnx(made), x)
    expected = FEATURES[features](x) @ made.weights.T
    assert np.abs(logits - expected).max() < 1e-4
    assert (labels == logits.argmax(axis=1)).all()


def test_one_record(tmp_path):
    content = build_onnx(make(tmp_path, features="edges", shape=(8, 8)))
    assert run_onnx(content, np.zeros((1, 8, 8), np.float32))[1].shape == (1,)


def test_another_models_graph_is_doubted(tmp_path):
    made = make(tmp_path)
    other = dataclasses.replace(made, weights=made.weights * np.float32(1.01))
    with pytest.raises(NumericalDoubt):
        check_onnx(build_onnx(other), made)
