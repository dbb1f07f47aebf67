"""A linear layer as an ONNX graph, feature step included, so that it runs without this package.

The graph mirrors features/fixed.py. ONNX has no atan2, but orientations are counted modulo half a
turn, where atan2(down, across) and atan(down / across) agree; and `numpy.gradient` is a product
with a fixed matrix.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.features import fixed
from stillroom.features.table import TableFeatures
from stillroom.release.table_graph import table_rows

_OPSET = 17
IR_VERSION = 8
"""Old enough for any ONNX Runtime of the last years."""


class Graph:
    """Nodes and constants in the order they were asked for."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        from onnx import helper

        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value: npt.ArrayLike, kind: npt.DTypeLike = np.float32) -> str:
        """Add a constant; return its name."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def total(self, value: str, axis: int) -> str:
        """The sum along an axis, which stays."""
        return self("ReduceSum", value, self.constant([axis], np.int64), keepdims=1)


def linear_onnx(
    weights: npt.NDArray[np.float32],
    features: str,
    shape: Sequence[int],
    classes: Sequence[str],
    table: TableFeatures | None = None,
) -> bytes:
    """The ONNX file of a linear layer over fixed features: records in, logits and labels out.

    Args:
        weights: one row per class, one column per feature.
        features: the name of the feature step.
        shape: the shape of one record.
        classes: the names of the classes.
        table: the features of a table, in place of those of pictures.
    """
    import onnx
    from onnx import TensorProto, helper

    graph = Graph()
    if table is None:
        rows = {"pixels": _pixels, "edges": _edges}[features](graph, shape)
    else:
        rows = table_rows(graph, table)
    # The features end in a constant column, which is an intercept.
    intercept = weights[:, -1] * (np.float32(fixed.BIAS) * fixed.NEARLY_ONE)
    product = graph("MatMul", rows, graph.constant(weights[:, :-1].T))
    graph.nodes.append(
        helper.make_node("Add", [product, graph.constant(intercept)], ["logits"], name="logits")
    )
    graph.nodes.append(helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "stillroom",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
            [
                helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", len(weights)]),
                helper.make_tensor_value_info("label", TensorProto.INT64, ["N"]),
            ],
            initializer=graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=IR_VERSION,
        producer_name="stillroom",
    )
    schema = {} if table is None else {"schema": json.dumps(table.schema.document)}
    helper.set_model_props(model, {"classes": json.dumps(list(classes)), **schema})
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


def _pixels(graph: Graph, shape: Sequence[int]) -> str:
    flat = graph("Flatten", "x", axis=1)
    mean = graph("ReduceMean", flat, axes=[1], keepdims=1)
    blank = graph("Mul", _norm(graph, flat)[1], graph.constant(fixed._BLANK, np.float64))
    return _unit_rows(graph, graph("Sub", flat, mean), blank)


def _norm(graph: Graph, rows: str) -> tuple[str, str]:
    """Rows in double precision, and their norms."""
    from onnx import TensorProto

    exact = graph("Cast", rows, to=TensorProto.DOUBLE)
    return exact, graph("Sqrt", graph.total(graph("Mul", exact, exact), 1))


def _unit_rows(graph: Graph, rows: str, *least: str) -> str:
    """Rows of a fixed length; the constant column beside them is left to the intercept."""
    from onnx import TensorProto

    exact, norm = _norm(graph, rows)
    floor = graph("Max", norm, graph.constant(1e-12, np.float64), *least)
    length = graph.constant(np.sqrt(1 - fixed.BIAS**2), np.float64)
    scaled = graph("Mul", exact, graph("Div", length, floor))
    return graph(
        "Mul", graph("Cast", scaled, to=TensorProto.FLOAT), graph.constant(fixed.NEARLY_ONE)
    )


def _edges(graph: Graph, shape: Sequence[int]) -> str:
    high, wide = shape[:2]
    picture = "x" if len(shape) == 2 else graph("ReduceMean", "x", axes=[3], keepdims=0)
    down = graph("MatMul", graph.constant(_slope(high)), picture)
    across = graph("MatMul", picture, graph.constant(_slope(wide).T))
    strength = graph("Sqrt", graph("Add", graph("Mul", down, down), graph("Mul", across, across)))
    oriented = graph(
        "Mul",
        graph("Unsqueeze", strength, graph.constant([1], np.int64)),
        _shares(graph, down, across),
    )
    pooled = graph("MatMul", graph.constant(fixed._pooling(high)), oriented)
    pooled = graph("MatMul", pooled, graph.constant(fixed._pooling(wide).T))
    length = graph("Sqrt", graph.total(graph("Mul", pooled, pooled), 1))
    pooled = graph("Div", pooled, graph("Add", length, graph.constant(1e-6)))
    cells = graph.constant(float(fixed._CELLS))
    both = [graph("Flatten", pooled, axis=1), graph("Mul", _pixels(graph, shape), cells)]
    short = graph.constant(fixed._SHORT, np.float64)
    return _unit_rows(graph, graph("Concat", *both, axis=1), short)


def _shares(graph: Graph, down: str, across: str) -> str:
    """How much of each pixel's gradient goes to each orientation: N x orientations x H x W."""
    count = float(fixed._ORIENTATIONS)
    # Nothing over nothing is no number; there the strength is zero and any angle will do.
    upright = graph("Equal", across, graph.constant(0.0))
    divisor = graph("Where", upright, graph.constant(1e-30), across)
    angle = graph("Atan", graph("Div", down, divisor))
    turn = graph("Mul", angle, graph.constant(count / math.pi))
    turn = graph("Unsqueeze", turn, graph.constant([1], np.int64))
    centres = np.arange(fixed._ORIENTATIONS).reshape(1, -1, 1, 1) - count / 2
    ahead = graph("Sub", turn, graph.constant(centres))
    whole = graph.constant(count)
    turns = graph("Floor", graph("Div", ahead, whole))
    around = graph("Sub", ahead, graph("Mul", turns, whole))
    away = graph("Abs", graph("Sub", around, graph.constant(count / 2)))
    near = graph("Sub", graph.constant(1.0), away)
    return graph("Clip", near, graph.constant(0.0), graph.constant(1.0))


def _slope(size: int) -> npt.NDArray[np.float32]:
    """`numpy.gradient` along an axis of that size, as a matrix."""
    slope: Any = np.gradient(np.eye(size), axis=0)
    return np.asarray(slope, dtype=np.float32)
