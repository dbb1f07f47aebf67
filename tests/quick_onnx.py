"""The exporter that takes no seconds, for tests in which the ONNX file is only carried along."""

from __future__ import annotations

import io
import warnings
from contextlib import nullcontext

import onnx
import torch

from stillroom.release import torch_model


def use_quick_exporter(monkeypatch) -> None:
    """Write networks by torch's older exporter."""
    monkeypatch.setattr(torch_model, "_program", _program)
    monkeypatch.setattr(torch_model, "one_thread", nullcontext)


def _program(network, example, gives, file):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (example,),
            buffer,
            input_names=["x"],
            output_names=gives,
            dynamic_axes={name: {0: "N"} for name in ("x", *gives)},
            opset_version=torch_model._OPSET,
            dynamo=False,
        )
    return onnx.load_model_from_string(buffer.getvalue())
