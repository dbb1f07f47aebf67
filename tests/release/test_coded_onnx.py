"""Weights that are codes in an ONNX file come out of ONNX Runtime with the same bits."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from stillroom.public.codebooks import coded
from stillroom.randomness import normals, uniforms
from stillroom.release.coded_onnx import coded_onnx
from stillroom.release.graph import OPERATORS


def codes_of(shape, kept, codebook_bits, residual_bits=0):
    weights = normals(1, "w", size=shape).astype(np.float32)
    mask = uniforms(1, "kept", size=shape) < kept
    return coded(weights, mask, codebook_bits, residual_bits)


def file_of(**arrays):
    """An ONNX file that gives its own tensors."""
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in arrays]
    gives = [
        helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, array.shape)
        for name, array in arrays.items()
    ]
    graph = helper.make_graph(nodes, "g", [], gives, initializer=tensors)
    opset = [helper.make_opsetid("", 18)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return bytes(made.SerializeToString())


def ran(content, folded=True):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    off = [] if folded else ["ConstantFolding"]
    session = onnxruntime.InferenceSession(
        content, options, providers=["CPUExecutionProvider"], disabled_optimizers=off
    )
    return session.run(None, {})


def operators(content):
    return [node.op_type for node in onnx.load_model_from_string(content).graph.node]


SMALLER = [
    *((kept, bits, 0) for kept in (1.0, 0.5, 0.03) for bits in (1, 2, 3, 4, 5, 8)),
    *((kept, 3, bits) for kept in (1.0, 0.5, 0.03) for bits in (2, 3, 4, 5, 8)),
    (0.0, 4, 4),
    (0.001, 4, 4),
]


@pytest.mark.parametrize(("kept", "codebook_bits", "residual_bits"), SMALLER)
def test_the_bits_are_the_same(kept, codebook_bits, residual_bits):
    code = codes_of((41, 31, 9), kept, codebook_bits, residual_bits)
    array = code.array()
    before = file_of(w=array)
    after = coded_onnx(before, {"any name": code})
    for folded in (True, False):
        (found,) = ran(after, folded)
        assert found.tobytes() == array.tobytes()
        assert found.shape == array.shape
    assert set(operators(after)) <= OPERATORS
    # No more than the codes, a bit per weight, and what the operators and tables take.
    bits = sum(next(n for n in (0, 1, 2, 4, 8) if n >= b) for b in (codebook_bits, residual_bits))
    assert len(after) < (len(code.codes) * bits + (kept < 1) * array.size) / 8 + 4400


def test_the_form_is_the_smaller_one():
    sizes = {}
    for kept, form in ((1.0, "Gather"), (0.5, "Mul"), (0.02, "ScatterElements")):
        code = codes_of((100, 100), kept, 4)
        after = coded_onnx(file_of(w=code.array()), {"w": code})
        assert form in operators(after)
        assert ("CumSum" in operators(after)) == (kept < 1)
        sizes[kept] = len(after)
    assert sizes[0.02] < 1_500 < sizes[0.5] < sizes[1.0] < 7_000


def test_gaps_may_be_long():
    kept = np.zeros((3, 5000), dtype=bool)
    kept.flat[[0, 255, 511, 512, 9000, 14_999]] = True
    code = coded(normals(2, "w", size=kept.shape).astype(np.float32), kept, 3, 0)
    after = coded_onnx(file_of(w=code.array()), {"w": code})
    assert operators(after).count("ScatterElements") == 2
    assert ran(after)[0].tobytes() == code.array().tobytes()
    assert len(after) < 2_000


def test_transposed_tensors_are_found_and_others_left():
    code = codes_of((60, 70), 0.5, 4, 4)
    other = normals(3, "other", size=(60, 70)).astype(np.float32)
    arrays = {"w": np.ascontiguousarray(code.array().T), "v": other, "u": code.array()}
    after = coded_onnx(file_of(**arrays), {"w": code})
    for found, array in zip(ran(after), arrays.values(), strict=True):
        assert found.tobytes() == array.tobytes()
    left = {tensor.name for tensor in onnx.load_model_from_string(after).graph.initializer}
    assert "v" in left
    assert not {"w", "u"} & left


def test_what_would_grow_is_left():
    code = codes_of((4, 5), 0.5, 8, 8)
    before = file_of(w=code.array())
    assert coded_onnx(before, {"w": code}) == before


def test_the_same_codes_make_the_same_file():
    made = [coded_onnx(file_of(w=c.array()), {"w": c}) for c in [codes_of((50, 60), 0.5, 4)] * 2]
    assert made[0] == made[1]
