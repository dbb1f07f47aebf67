"""Stored records become pictures by a public constant, in torch and in ONNX alike."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from stillroom.errors import BadInput
from stillroom.models import AsPictures
from stillroom.randomness import integers

SHAPES = {(6, 5): (1, 6, 5), (6, 5, 3): (3, 6, 5), (7,): (7,)}


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64, np.float32, np.bool_])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_places(shape, dtype):
    records = integers(1, "records", size=(4, *shape), below=256).astype(dtype)
    pictures = AsPictures(shape, 255)
    seen = pictures(torch.tensor(records))
    assert seen.dtype == torch.float32
    assert seen.shape == (4, *SHAPES[shape]) == (4, *pictures.given)
    expected = records.astype(np.float32) / np.float32(255)
    if len(shape) == 3:
        expected = expected.transpose(0, 3, 1, 2)
    assert np.array_equal(seen.numpy().reshape(expected.shape), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_record_sways_another(shape):
    records = torch.tensor(integers(1, "records", size=(9, *shape), below=256))
    pictures = AsPictures(shape, 255)
    together = pictures(records)
    assert all(torch.equal(pictures(records[i : i + 1])[0], together[i]) for i in range(9))


@pytest.mark.parametrize("shape", [(), (1, 2, 3, 4), (0, 3), (-1,)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(BadInput, match="neither pictures"):
        AsPictures(shape, 1)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_other_scales_are_refused(scale):
    with pytest.raises(BadInput, match="full scale"):
        AsPictures((2, 2), scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_same(shape):
    onnxruntime = pytest.importorskip("onnxruntime")
    records = integers(1, "records", size=(4, *shape), below=256).astype(np.uint8)
    pictures = AsPictures(shape, 255).eval()
    program = torch.onnx.export(
        pictures,
        (torch.tensor(records[:2]),),
        dynamo=True,
        verbose=False,
        dynamic_shapes=({0: "records"},),
    )
    file = io.BytesIO()
    program.save(file)
    session = onnxruntime.InferenceSession(file.getvalue())
    (name,) = (given.name for given in session.get_inputs())
    assert np.array_equal(
        session.run(None, {name: records})[0], pictures(torch.tensor(records)).numpy()
    )
