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
    monkeypatch.setattr(torch_model.TorchModel, "_exported", _exported)
    monkeypatch.setattr(torch_model, "one_thread", nullcontext)


def _exported(self):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            torch_model._Labelled(self._network).eval(),
            (torch.zeros(3, *self.shape),),
            buffer,
            input_names=["x"],
            output_names=["logits", "label"],
            dynamic_axes={name: {0: "N"} for name in ("x", "logits", "label")},
            opset_version=torch_model._OPSET,
            dynamo=False,
        )
    return onnx.load_model_from_string(buffer.getvalue())
