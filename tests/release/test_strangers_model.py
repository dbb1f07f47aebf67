"""A model from a stranger gets so much time and memory, and what we write is what we run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from hostile.onnx_files import CLASSES, FEATURES, SCORES, WEIGHTS, _grown, _tensor, model
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.release import strangers_model
from stillroom.release.graph import check_graph
from stillroom.release.model import checked_onnx
from stillroom.release.strangers_model import StrangersModel

X = np.ones((2, FEATURES), dtype=np.float32)
PLACE = Path("model.onnx")


def slow_model(products: int) -> bytes:
    """Large products one after the other, of a matrix that a few bytes make."""
    nodes = [helper.make_node("Expand", ["one", "sizes"], ["m0"])]
    nodes += [
        helper.make_node("MatMul", [f"m{i}", f"m{i}"], [f"m{i + 1}"]) for i in range(products)
    ]
    nodes += [
        helper.make_node("ReduceSum", [f"m{products}"], ["sum"], keepdims=0),
        helper.make_node("MatMul", ["x", "w"], ["small"]),
        helper.make_node("Add", ["small", "sum"], ["logits"]),
        SCORES[1],
    ]
    sizes = _tensor("sizes", [1500, 1500], np.int64)
    return model(nodes, [WEIGHTS, _tensor("one", [[0.0]]), sizes]).SerializeToString()


def test_an_honest_model_answers():
    with StrangersModel(model().SerializeToString(), PLACE, CLASSES) as own:
        logits, labels = own.run(X)
    assert logits.tolist() == [[1, 1, 1]] * 2
    assert labels.tolist() == [0, 0]


def test_too_long_a_batch_is_ended(monkeypatch):
    monkeypatch.setattr(strangers_model, "SECONDS", 0.2)
    monkeypatch.setattr(strangers_model, "SECONDS_PER_RECORD", 0.1)
    with (
        StrangersModel(slow_model(5000), PLACE, CLASSES) as own,
        pytest.raises(DoesNotVerify, match=r"longer than 0\.4 seconds"),
    ):
        own.run(X)
    assert own._child.returncode is not None


class AtOnce:
    """A timer whose time has come as soon as it is started, if it was set to so many seconds."""

    seconds = 0.0

    def __init__(self, seconds, act):
        self.start = act if seconds == self.seconds else lambda: None

    def cancel(self):
        pass


@pytest.mark.parametrize("which", ["SECONDS_TO_START", "SECONDS_TO_OPEN"])
def test_too_long_a_start_is_ended(monkeypatch, which):
    monkeypatch.setattr(AtOnce, "seconds", getattr(strangers_model, which))
    monkeypatch.setattr(strangers_model, "Timer", AtOnce)
    with pytest.raises(DoesNotVerify, match="longer than"):
        StrangersModel(model().SerializeToString(), PLACE, CLASSES)


def test_too_much_memory_is_refused_and_the_next_batch_is_not_lost():
    content = _grown("Expand", [3, 250_000_000]).SerializeToString()
    with StrangersModel(content, PLACE, CLASSES) as own:
        for _ in range(2):
            with pytest.raises(DoesNotVerify, match="ONNX Runtime"):
                own.run(X)


def test_a_large_model_gets_fewer_records_at_once():
    """Every record takes 4 MB, and 256 of them more than there is room for."""
    nodes = [
        helper.make_node("Tile", ["x", "often"], ["wide"]),
        helper.make_node("ReduceSum", ["wide", "last"], ["sum"], keepdims=1),
        helper.make_node("MatMul", ["x", "w"], ["small"]),
        helper.make_node("Add", ["small", "sum"], ["logits"]),
        SCORES[1],
    ]
    sizes = [_tensor("often", [1, 100_000], np.int64), _tensor("last", [1], np.int64)]
    content = model(nodes, [WEIGHTS, *sizes]).SerializeToString()
    with StrangersModel(content, PLACE, CLASSES) as own:
        logits, labels = own.run(np.zeros((256, FEATURES), dtype=np.float32))
        assert own._together < 256
    assert logits.shape == (256, CLASSES)
    assert not logits.any()
    assert labels.tolist() == [0] * 256


def test_a_process_that_died_is_noticed():
    with StrangersModel(model().SerializeToString(), PLACE, CLASSES) as own:
        own._child.kill()
        own._child.wait()
        with pytest.raises(DoesNotVerify, match="ended"):
            own.run(X)


def test_nothing_is_imported_from_the_current_folder(tmp_path, monkeypatch):
    for name in ("json", "numpy", "onnxruntime", "struct"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    with StrangersModel(model().SerializeToString(), PLACE, CLASSES) as own:
        assert len(own.run(X)[1]) == 2


class Looping:
    """A model whose file holds what predict does not run."""

    shape, outputs, about, parameters = (FEATURES,), CLASSES, "odd", 36

    def onnx(self, classes):
        return model(
            [helper.make_node("RandomUniformLike", ["x"], ["y"]), *SCORES]
        ).SerializeToString()

    def logits(self, x):
        return x @ np.eye(FEATURES, CLASSES, dtype=np.float32)


def test_what_predict_does_not_run_is_not_released():
    with pytest.raises(BadInput, match="not on the list"):
        checked_onnx(Looping(), ("a", "b", "c"))


def test_the_quantised_student_is_on_the_list():
    from release.making import linear
    from stillroom.release.compression import quantised

    content = linear("edges", (8, 8)).onnx(("a", "b", "c"))
    check_graph(content)
    check_graph(quantised(content))
    with pytest.raises(ValueError, match="size"):
        check_graph(
            _grown("Expand", [1])
            .SerializeToString()
            .replace(b"\x08\x0c\x08\x03", b"\x08\x0c\x08\x04")
        )
