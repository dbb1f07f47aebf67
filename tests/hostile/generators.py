"""Generators of strangers: sketches that fill the memory, networks that do what is not asked."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

from hostile.harness import Case
from methods.forging import forge
from release.generators import CLASSES, sketch
from release.making import certificate_of, make
from stillroom.release import write_bundle
from stillroom.release.files import sha256
from stillroom.release.generator import network_states

SHAPE = (6, 6)
LATENT = 5


@cache
def _honest() -> Path:
    """A bundle with a sketch."""
    folder = Path(tempfile.mkdtemp(prefix="stillroom-sketch-"))
    write_bundle(make(folder, generator=sketch()), folder / "bundle")
    return folder / "bundle"


def drawn(
    weights: bytes | Callable[[], bytes], graph: bytes | None = None, more: tuple[str, ...] = ()
) -> Callable[[Path], list[str]]:
    """Draw from a bundle with these files, all hashes and the certificate fitted."""

    def build(folder: Path) -> list[str]:
        bundle = Path(shutil.copytree(_honest(), folder / "bundle"))
        content = weights if isinstance(weights, bytes) else weights()
        files = {"generator.safetensors": content}
        if graph is not None:
            files["generator.onnx"] = graph
        document = certificate_of(bundle)
        line = document["artefacts"][1]
        try:
            size = int.from_bytes(content[:8], "little")
            told = json.loads(content[8 : 8 + size])["__metadata__"]["stillroom"]
            line = {**{name: line[name] for name in ("name", "files")}, **json.loads(told)}
        except (ValueError, LookupError):
            pass
        line["files"] = {
            name: {"sha256": sha256(body), "size": len(body)} for name, body in files.items()
        }
        document["artefacts"][1] = line
        for name, body in files.items():
            (bundle / name).write_bytes(body)
        forge(bundle, document, None)
        return ["sample", str(bundle), "-n", "5", "-o", str(folder / "x.npz"), *more]

    return build


def said(states: dict[str, Any], **changes: Any) -> dict[str, str]:
    told = {"kind": "generator", "about": "a generator", "parameters": 1, "shape": list(SHAPE)}
    return {"stillroom": json.dumps({**told, "classes": list(CLASSES), **states, **changes})}


def arrays(changes: dict[str, Any] | None = None, **words: Any) -> bytes:
    made = sketch()
    return bytes(save({**made.tensors(), **(changes or {})}, metadata=said(made.states, **words)))


def _mixture(classes: int, centres: int, kept: int, directions: int, shape: tuple[int, int]):
    def build() -> bytes:
        tables = {
            "weights": np.ones((classes, centres)),
            "centres": np.zeros((classes, centres, kept)),
            "directions": np.zeros((kept, directions)),
            "covariances": np.zeros((classes, directions, directions)),
            "outside": np.zeros((kept, 0)),
            "basis": np.array([*shape, kept, 0]),
        }
        names = [str(name) for name in range(classes)]
        return arrays(tables, shape=list(shape), classes=names)

    return build


def _network(latent: int = LATENT, **words: Any) -> bytes:
    states = network_states(16.0, latent, conditional=True)
    return bytes(save({"w": np.ones(1)}, metadata=said(states, **words)))


def _graph(*nodes: Any, tensors: Any = (), inputs: int = LATENT + 3) -> bytes:
    takes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", inputs])]
    gives = [helper.make_tensor_value_info("records", TensorProto.FLOAT, ["N", *SHAPE])]
    made = helper.make_graph(list(nodes), "g", takes, gives, initializer=list(tensors))
    opset = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(made, opset_imports=opset, ir_version=8).SerializeToString())


def _tensor(name: str, values: Any, kind: type = np.float32) -> Any:
    return numpy_helper.from_array(np.asarray(values, dtype=kind), name)


FLAT = helper.make_node("MatMul", ["x", "w"], ["flat"])
PICTURES = helper.make_node("Reshape", ["flat", "to"], ["records"])
TO = _tensor("to", [-1, *SHAPE], np.int64)
W = _tensor("w", np.zeros((LATENT + 3, 36)))
GROWN = [
    helper.make_node("Expand", ["one", "sizes"], ["big"]),
    helper.make_node("ReduceSum", ["big"], ["sum"], keepdims=0),
    FLAT,
    helper.make_node("Add", ["flat", "sum"], ["more"]),
    helper.make_node("Reshape", ["more", "to"], ["records"]),
]
ONE, SIZES = _tensor("one", [[1.0]]), _tensor("sizes", [10**6, 10**6], np.int64)
PLAIN = _graph(FLAT, PICTURES, tensors=[W, TO])

SKETCHES = [
    Case("an honest sketch", drawn(arrays()), 0),
    Case("garbage", drawn(b"\x00\xff" * 99), 4),
    Case("no weights", drawn(b""), 4),
    Case("a sketch of other classes", drawn(arrays(classes=["a", "b"])), 4, "generator"),
    Case("a sketch of other records", drawn(arrays(shape=[6, 7])), 4, "generator"),
    Case("a sketch of no numbers", drawn(arrays({"centres": np.full((3, 2, 8), np.nan)})), 4),
    Case("a sketch of text", drawn(arrays({"basis": np.array([-1, -1, -1, -1])})), 4),
    Case("a basis of no memory", drawn(_mixture(2, 1, 9000, 1, (100, 100))), 2, "too large"),
    Case("pixels without end", drawn(arrays({"basis": np.array([2**30, 2**30, 8, 0])})), 4),
    Case("directions without end", drawn(_mixture(2, 1, 900, 900, (30, 30))), 2, "too large"),
    Case("centres without end", drawn(_mixture(2, 100_000, 2, 1, (6, 6))), 2, "too large"),
    Case("as many classes as fit", drawn(_mixture(20_000, 1, 2, 1, (6, 6))), 0),
    Case("names without end", drawn(arrays(classes=["a", "b", "c" * (1 << 21)])), 2, "names"),
    Case(
        "numbers beyond all numbers",
        drawn(
            arrays(
                {
                    "covariances": np.stack([1e300 * np.eye(3)] * 3),
                    "directions": np.full((8, 3), 1e300),
                }
            )
        ),
        4,
        "finite",
    ),
]
NETWORKS = [
    Case("an honest network", drawn(_network(), PLAIN), 0),
    Case("a network without its graph", drawn(_network()), 4),
    Case("a sketch with a graph", drawn(arrays(), PLAIN), 4),
    Case("a graph of garbage", drawn(_network(), b"graph"), 4, "ONNX"),
    Case("latent numbers without end", drawn(_network(2**40), PLAIN), 4),
    Case("another number of inputs", drawn(_network(2**19), PLAIN), 4, "generator.onnx"),
    Case("records of another shape", drawn(_network(shape=[6, 7]), PLAIN), 4, "records"),
    Case("records without end", drawn(_network(shape=[2**30, 2**30]), PLAIN), 4, "records"),
    Case(
        "a graph that grows",
        drawn(_network(), _graph(*GROWN, tensors=[W, TO, ONE, SIZES])),
        4,
        "ONNX Runtime",
    ),
    Case(
        "a graph that draws by itself",
        drawn(_network(), _graph(helper.make_node("RandomNormalLike", ["x"], ["records"]))),
        4,
        "not on the list",
    ),
    Case(
        "records out of range",
        drawn(
            _network(), _graph(FLAT, PICTURES, tensors=[_tensor("w", np.full((8, 36), 1e9)), TO])
        ),
        4,
        "range",
    ),
    Case(
        "records of no numbers",
        drawn(
            _network(), _graph(FLAT, PICTURES, tensors=[_tensor("w", np.full((8, 36), np.nan)), TO])
        ),
        2,
        "finite",
    ),
]
CASES = [*SKETCHES, *NETWORKS]
