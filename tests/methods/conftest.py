"""What roads over pictures need."""

from __future__ import annotations

import io
import warnings
from contextlib import nullcontext
from fractions import Fraction

import onnx
import pytest
import torch

from methods.pictures import NETWORKS
from stillroom.methods import costs
from stillroom.methods.rona import from_ensemble as rona_from_ensemble
from stillroom.methods.rona import from_plain as rona_from_plain
from stillroom.methods.rona import from_teacher as rona_from_teacher
from stillroom.release import torch_model


@pytest.fixture
def networks(tmp_path, monkeypatch):
    """A module of one's own, found on the path."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_networks.py").write_text(NETWORKS)
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def quick(monkeypatch):
    """Noise that is fixed, for tests that are not about the price."""
    monkeypatch.setattr(costs, "smallest_sigma", lambda lines, *given: Fraction(20))


@pytest.fixture
def small(monkeypatch):
    """Noise that is fixed, no measured speed, and the exporter that takes no seconds."""
    monkeypatch.setattr(costs, "smallest_sigma", lambda lines, *given: Fraction(4))
    for module in (rona_from_teacher, rona_from_ensemble, rona_from_plain):
        monkeypatch.setattr(module, "report", lambda *given: None)
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
