"""ONNX files that loop, grow, call out or answer with something else, in bundles that list them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hostile.harness import Case
from hostile.making import FEATURES, replaced

CLASSES = 3
FLOAT, INTEGER = TensorProto.FLOAT, TensorProto.INT64


def _tensor(name: str, value: Any, kind: type = np.float32) -> Any:
    return numpy_helper.from_array(np.asarray(value, dtype=kind), name)


WEIGHTS = _tensor("w", np.eye(FEATURES, CLASSES))
SCORES = [
    helper.make_node("MatMul", ["x", "w"], ["logits"]),
    helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0),
]


def _value(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


X, LOGITS, LABEL = (
    _value("x", FLOAT, "N", FEATURES),
    _value("logits", FLOAT, "N", CLASSES),
    _value("label", INTEGER, "N"),
)


def model(
    nodes: list[Any] = SCORES,
    tensors: list[Any] = [WEIGHTS],  # noqa: B006 (never changed)
    takes: tuple[Any, ...] = (X,),
    gives: tuple[Any, ...] = (LOGITS, LABEL),
    **more: Any,
) -> Any:
    """A model that gives scores and labels, or nearly so."""
    graph = helper.make_graph(nodes, "g", list(takes), list(gives), initializer=tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.evil", 1)][
        : more.pop("kinds", 1)
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)


def predicted(content: bytes | Any) -> Callable[[Path], list[str]]:
    """Predict two records by a bundle with this model."""

    def build(folder: Path) -> list[str]:
        found = content if isinstance(content, bytes) else content.SerializeToString()
        np.save(folder / "x.npy", np.ones((2, FEATURES), dtype=np.float32))
        return ["predict", str(replaced(folder, model_onnx=found)), str(folder / "x.npy")]

    return build


def _body(kind: str) -> Any:
    return helper.make_graph(
        [helper.make_node("Identity", ["going"], ["on"])],
        "body",
        [_value("step", INTEGER), _value("going", TensorProto.BOOL)],
        [_value("on", TensorProto.BOOL)],
    )


def _loop() -> Any:
    """Goes round for ever, and then gives scores."""
    loop = helper.make_node("Loop", ["", "true"], [], body=_body("Loop"))
    return model([loop, *SCORES], [WEIGHTS, _tensor("true", True, bool)])


def _branch() -> Any:
    inner = helper.make_graph([], "inner", [], [_value("w", FLOAT)])
    branch = helper.make_node("If", ["true"], ["z"], then_branch=inner, else_branch=inner)
    return model([branch, *SCORES], [WEIGHTS, _tensor("true", True, bool)])


def _hidden_graph() -> Any:
    """A graph within an operator that is on the list."""
    node = helper.make_node("Identity", ["x"], ["y"])
    node.attribute.append(helper.make_attribute("body", _body("Identity")))
    return model([node, *SCORES])


def _outside(name: str) -> Any:
    weights = TensorProto(name="w", data_type=FLOAT, dims=[FEATURES, CLASSES])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=name)
    return model(tensors=[weights])


def _declared(*dims: int, data: bytes = b"") -> Any:
    return TensorProto(name="w", data_type=FLOAT, dims=dims, raw_data=data)


def _constant(dims: tuple[int, ...]) -> Any:
    node = helper.make_node("Constant", [], ["c"], value=_declared(*dims))
    return model([node, *SCORES])


def _grown(operator: str, sizes: list[int]) -> Any:
    """A tensor of terabytes made of one number while it runs; the scores depend on it."""
    nodes = [
        helper.make_node(operator, ["one", "sizes"], ["big"]),
        helper.make_node("ReduceSum", ["big"], ["sum"], keepdims=0),
        helper.make_node("MatMul", ["x", "w"], ["small"]),
        helper.make_node("Add", ["small", "sum"], ["logits"]),
        SCORES[1],
    ]
    one = _tensor("one", np.ones([1] * len(sizes)))
    return model(nodes, [WEIGHTS, one, _tensor("sizes", sizes, np.int64)])


def _placed(operator: str, *inputs: str, tensors: list[Any]) -> Any:
    """Weights that an operator puts where they are not; the scores depend on them."""
    node = helper.make_node(operator, ["w", *inputs], ["placed"])
    scores = helper.make_node("MatMul", ["x", "placed"], ["logits"])
    return model([node, scores, SCORES[1]], [WEIGHTS, *tensors])


def _far(place: int) -> list[Any]:
    places = np.full((FEATURES, CLASSES), place)
    return [_tensor("places", places, np.int64), _tensor("ones", np.ones((FEATURES, CLASSES)))]


def _function() -> Any:
    made = model([helper.make_node("Mine", ["x"], ["y"], domain="com.evil"), *SCORES], kinds=2)
    made.functions.append(
        helper.make_function(
            "com.evil",
            "Mine",
            ["a"],
            ["b"],
            [helper.make_node("Identity", ["a"], ["b"])],
            [helper.make_opsetid("", 17)],
        )
    )
    return made


def _opset(version: int) -> Any:
    made = model()
    made.opset_import[0].version = version
    return made


def _sparse() -> Any:
    made = model()
    values = numpy_helper.from_array(np.ones(1, np.float32), "s")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [10**12]))
    return made


def _answers(*nodes: Any, gives: tuple[Any, ...] = (LOGITS, LABEL), tensors: Any = ()) -> Any:
    return model(list(nodes), [WEIGHTS, *tensors], gives=gives)


ARGMAX = SCORES[1]
LIST = "not on the list"
CASES = [
    Case("nothing", predicted(b""), 4),
    Case("garbage", predicted(b"\x00\xff" * 500), 4, "model.onnx"),
    Case("text", predicted(b"import os"), 4),
    Case("half a model", predicted(model().SerializeToString()[:60]), 4),
    Case("nested messages", predicted(b"\x3a\xfe\x7f" * 5000), 4),
    Case("a loop without end", predicted(_loop()), 4, LIST),
    Case("a branch", predicted(_branch()), 4, LIST),
    Case("a graph in an attribute", predicted(_hidden_graph()), 4, "graph within"),
    *(
        Case(
            f"operator {name}",
            predicted(model([helper.make_node(name, ["x"], ["y"]), *SCORES])),
            4,
            LIST,
        )
        for name in ("Scan", "RandomNormalLike", "NonMaxSuppression", "LSTM", "StringSplit", "Mine")
    ),
    Case(
        "an operator of another domain",
        predicted(
            model([helper.make_node("Relu", ["x"], ["y"], domain="com.evil"), *SCORES], kinds=2)
        ),
        4,
        "another domain",
    ),
    Case("another domain is imported", predicted(model(kinds=2)), 4, "another domain"),
    Case("a function of its own", predicted(_function()), 4),
    Case("data in /etc/passwd", predicted(_outside("/etc/passwd")), 4, "outside"),
    Case("data in a folder above", predicted(_outside("../../secret")), 4, "outside"),
    Case("data in a pipe", predicted(_outside("/dev/stdin")), 4, "outside"),
    Case("a tensor of terabytes", predicted(model(tensors=[_declared(10**6, 10**6)])), 4, "size"),
    Case("a tensor of 2^126", predicted(model(tensors=[_declared(2**62, 2**62)])), 4, "size"),
    Case("a tensor of negative size", predicted(model(tensors=[_declared(-1, 3)])), 4, "size"),
    Case(
        "a tensor of too few numbers", predicted(model(tensors=[_declared(12, 3, data=b"abcd")])), 4
    ),
    Case("a constant of terabytes", predicted(_constant((10**12,))), 4, "size"),
    Case("a sparse tensor", predicted(_sparse()), 4, "sparse"),
    Case("expanded to terabytes", predicted(_grown("Expand", [10**6, 10**6])), 4, "ONNX Runtime"),
    Case("expanded to 2 GB", predicted(_grown("Expand", [2, 250_000_000])), 4, "ONNX Runtime"),
    Case("tiled to 2 GB", predicted(_grown("Tile", [2, 250_000_000])), 4, "ONNX Runtime"),
    Case("expanded to less than nothing", predicted(_grown("Expand", [-5, 3])), 4),
    *(
        Case(
            f"scattered to {place}",
            predicted(_placed("ScatterElements", "places", "ones", tensors=_far(place))),
            4,
            "ONNX Runtime",
        )
        for place in (FEATURES, -FEATURES - 1, 2**62, -(2**62))
    ),
    Case(
        "added up along no axis",
        predicted(_placed("CumSum", "axis", tensors=[_tensor("axis", 7, np.int64)])),
        4,
        "ONNX Runtime",
    ),
    Case("operators of the future", predicted(_opset(9999)), 4),
    Case("operators of no version", predicted(_opset(-1)), 4),
    Case("a file of the future", predicted(helper.make_model(model().graph, ir_version=9999)), 4),
    Case("another input", predicted(model(takes=(_value("y", FLOAT, "N", FEATURES),))), 4),
    Case("two inputs", predicted(model(takes=(X, _value("y", FLOAT, "N")))), 4, "alone"),
    Case("an input of another shape", predicted(model(takes=(_value("x", FLOAT, "N", 5),))), 4),
    Case("an input of integers", predicted(model(takes=(_value("x", INTEGER, "N", FEATURES),))), 4),
    Case("no label", predicted(model(SCORES[:1], gives=(LOGITS,))), 4, "label"),
    Case("an output more", predicted(model(gives=(LOGITS, LABEL, _value("w", FLOAT)))), 4, "label"),
    Case(
        "labels out of range",
        predicted(
            _answers(
                SCORES[0],
                helper.make_node("ArgMax", ["logits"], ["first"], axis=1, keepdims=0),
                helper.make_node("Add", ["first", "far"], ["label"]),
                tensors=[_tensor("far", [7], np.int64)],
            )
        ),
        4,
        "none of its classes",
    ),
    Case(
        "labels below zero",
        predicted(
            _answers(
                SCORES[0],
                helper.make_node("ArgMax", ["logits"], ["first"], axis=1, keepdims=0),
                helper.make_node("Sub", ["first", "far"], ["label"]),
                tensors=[_tensor("far", [7], np.int64)],
            )
        ),
        4,
        "none of its classes",
    ),
    Case(
        "labels that are floats",
        predicted(
            _answers(
                SCORES[0],
                helper.make_node("ReduceMax", ["logits"], ["label"], axes=[1], keepdims=0),
                gives=(LOGITS, _value("label", FLOAT, "N")),
            )
        ),
        4,
        "label",
    ),
    Case(
        "labels for each score",
        predicted(
            _answers(
                SCORES[0],
                helper.make_node("Cast", ["logits"], ["label"], to=INTEGER),
                gives=(LOGITS, _value("label", INTEGER, "N", CLASSES)),
            )
        ),
        4,
        "label",
    ),
    Case(
        "scores of other classes",
        predicted(
            _answers(
                helper.make_node("Identity", ["x"], ["logits"]),
                ARGMAX,
                gives=(_value("logits", FLOAT, "N", FEATURES), LABEL),
            )
        ),
        4,
        "logits",
    ),
    Case(
        "scores for one record alone",
        predicted(
            _answers(
                helper.make_node("MatMul", ["x", "w"], ["all"]),
                helper.make_node("ReduceSum", ["all", "axis"], ["logits"], keepdims=1),
                ARGMAX,
                gives=(_value("logits", FLOAT, 1, CLASSES), LABEL),
                tensors=[_tensor("axis", [0], np.int64)],
            )
        ),
        4,
        "logits",
    ),
    Case(
        "weights of no numbers",
        predicted(model(tensors=[_tensor("w", np.full((FEATURES, CLASSES), np.nan))])),
        2,
        "finite",
    ),
    Case("weights of another shape", predicted(model(tensors=[_tensor("w", np.ones((5, 5)))])), 4),
    Case(
        "weights of text",
        predicted(model(tensors=[helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])])),
        4,
    ),
    Case("a weight that is missing", predicted(model(tensors=[])), 4),
    Case(
        "a graph in a circle",
        predicted(
            model(
                [
                    helper.make_node("Relu", ["a"], ["b"]),
                    helper.make_node("Relu", ["b"], ["a"]),
                    *SCORES,
                ]
            )
        ),
        4,
    ),
    Case(
        "30000 nodes",
        predicted(
            model([*(helper.make_node("Relu", ["x"], [f"r{i}"]) for i in range(30_000)), *SCORES])
        ),
        4,
        "too many",
    ),
]
assert onnx.checker.check_model(model()) is None
