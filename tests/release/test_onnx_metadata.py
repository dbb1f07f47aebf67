"""What an ONNX file says beside its graph is read from any bytes, or refused."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from stillroom.release.onnx_metadata import metadata_of


def graph(**said: str) -> bytes:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N"]) for n in "xy")
    node = helper.make_node("Identity", ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "a graph", [x], [y]))
    helper.set_model_props(model, said)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("said", [{}, {"a": ""}, {"schema": "\N{SNOWMAN}" * 5000, "classes": "[]"}])
def test_it_reads_what_onnx_reads(said):
    content = graph(**said)
    props = onnx.load_model_from_string(content).metadata_props
    assert metadata_of(content) == {p.key: p.value.encode() for p in props}


def test_every_cut_is_read_or_refused():
    content = graph(schema="{}")
    for end in range(len(content)):
        try:
            found = metadata_of(content[:end])
        except ValueError:
            continue
        assert found in ({}, {"schema": b"{}"})


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 40,
        b"\x0b",
        b"\x72\xff\xff\xff\xff\x0f",
        b"\x72\x04\x0a\x02\xff\xfe",
        b"\x72\x03\x0a\x01a" * 2,
        b"\x0a\x00" * 10_001,
    ],
)
def test_other_bytes_are_refused(content):
    with pytest.raises(ValueError, match=r"ONNX|utf-8"):
        metadata_of(content)
