"""What an ONNX file may hold: plain operators on tensors that are in the file, and nothing else.

A model from a stranger is a program. Of the operators of ONNX only those are run that turn tensors
into tensors in one pass: no loop, no branch, no operator of another domain, no file beside the
model, no tensor whose declared size is not the size of its data.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

from stillroom.extras import needed

OPERATORS = frozenset(
    (
        *("Abs", "Add", "And", "ArgMax", "Atan", "AveragePool", "BatchNormalization"),
        *("Cast", "Ceil", "Clip", "Concat", "Constant", "Conv", "ConvInteger"),
        *("ConvTranspose", "Cos", "CumSum", "DepthToSpace", "DequantizeLinear", "Div"),
        *("DynamicQuantizeLinear", "Elu", "Equal", "Erf", "Exp", "Expand", "Flatten"),
        *("Floor", "Gather", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool"),
        *("Greater", "GreaterOrEqual", "GroupNormalization", "HardSigmoid", "HardSwish"),
        *("Identity", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "Less"),
        *("LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "MatMul", "MatMulInteger"),
        *("Max", "MaxPool", "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "PRelu"),
        *("Pad", "Pow", "QuantizeLinear", "Reciprocal", "ReduceL1", "ReduceL2"),
        *("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
        *("ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Resize", "Round", "ScatterElements"),
        *("Selu", "Shape", "Sigmoid", "Sign", "Sin", "Slice", "Softmax", "Softplus", "Softsign"),
        *("SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile"),
        *("Transpose", "Unsqueeze", "Where"),
    )
)
"""What the exporters here write, and what the layers of other networks come to."""
MOST_NODES = 20_000
_OWN_DOMAINS = ("", "ai.onnx")
_INPUT = "x"
SCORED = ("logits", "label")
"""What a classifier gives."""
DRAWN = ("records",)
"""What a generator gives."""


def check_graph(content: bytes, gives: Collection[str] = SCORED) -> None:
    """Refuse an ONNX file that does anything else than turn rows into answers.

    Args:
        content: the file.
        gives: the names of its outputs.

    Raises:
        ValueError: it does; the message says what, and quotes nothing of the file.
        BadInput: the package `onnx` is not installed.
    """
    model = _parsed(content)
    if any(part.domain not in _OWN_DOMAINS for part in model.opset_import):
        raise ValueError("it uses operators of another domain")
    if model.functions or model.training_info:
        raise ValueError("it has functions of its own")
    graph = model.graph
    if graph.sparse_initializer or len(graph.node) > MOST_NODES:
        raise ValueError("it has sparse tensors, or too many nodes")
    for node in graph.node:
        if node.domain not in _OWN_DOMAINS or node.op_type not in OPERATORS:
            raise ValueError("it uses an operator that is not on the list")
        if any(a.HasField("g") or a.graphs for a in node.attribute):
            raise ValueError("it has a graph within the graph")
        if any(a.HasField("sparse_tensor") or a.sparse_tensors for a in node.attribute):
            raise ValueError("it has sparse tensors")
    for tensor in _tensors(graph):
        _check_tensor(tensor)
    given = {tensor.name for tensor in graph.initializer}
    if {value.name for value in graph.input} - given != {_INPUT}:
        raise ValueError("it does not take records as `x` alone")
    if {value.name for value in graph.output} != set(gives):
        raise ValueError(f"it does not give {' and '.join(f'`{name}`' for name in gives)}")


def _parsed(content: bytes) -> Any:
    with needed("onnx", where="predict", why="it shows what a bundle's model does before it runs"):
        import onnx
    try:
        return onnx.load_model_from_string(content)
    except Exception:
        # Whatever the parser has to say: the file is none, and its message may quote it.
        raise ValueError("it is not an ONNX file") from None


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _check_tensor(tensor: Any) -> None:
    """A tensor's declared size is that of its data, and its data are in the file."""
    if tensor.data_location or tensor.external_data:
        raise ValueError("it keeps data outside the file")
    if tensor.HasField("segment") or any(size < 0 for size in tensor.dims):
        raise ValueError("it has a tensor in pieces, or without a size")
    if len(tensor.dims) > 16 or math.prod(tensor.dims) != _held(tensor):
        raise ValueError("it has a tensor of another size than its data")


def _held(tensor: Any) -> int:
    """How many numbers a tensor really has."""
    from onnx import helper

    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (LookupError, TypeError, ValueError):
        return -1
    if dtype.kind not in "biuf":
        return -1
    typed = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data)
    raw, rest = divmod(len(tensor.raw_data), dtype.itemsize)
    return -1 if rest else raw + sum(map(len, (*typed, tensor.uint64_data)))
