"""One model for another, byte for byte: what leaves is a function of the noisy answers alone."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from neighbours.harness import Tape, everything
from quick_onnx import use_quick_exporter
from stillroom.methods import registry
from stillroom.models import build
from stillroom.private import model_file

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch's older exporter, on itself
GIVEN, CLASSES = (1, 8, 8), 10
RECIPE = """method = "{method}"
source = "plain"
mode = "{mode}"
purpose = "{purpose}"
[data]
source = "model"
shape = [8, 8]
classes = 10
test_source = "digits"
[features]
full_scale = 16
[plain]
{file}
{own}
[engine]
kind = "serial"
[privacy]
epsilon = 8
"""

METHODS = {
    "probing": "[probing]\nsteps = 2\nbatch = 4\n",
    "dpdfd": '[dpdfd]\nstudent = "mlp"\n[generator]\nmodel = "mlp"\nlatent = 8\nwidth = 8\n'
    "[published]\niterations = 2\nbatch = 4\n",
}


def weights(make="small", seed=0):
    network = build(f"private.makes:{make}", GIVEN, CLASSES, seed=seed)
    return {"model.safetensors": save(network.state_dict())}


def fragile(sign):
    """A model that raises on the first batch, or does not."""
    network = build("private.makes:Fragile", GIVEN, CLASSES, seed=0)
    with torch.no_grad():
        network.network[1].bias[0] = sign
    assert float(network.network[1].bias[0]) == sign
    return {"model.safetensors": save(network.state_dict())}


def graph(make="small", seed=0, size=None):
    buffer = io.BytesIO()
    torch.onnx.export(
        build(f"private.makes:{make}", GIVEN, CLASSES, seed=seed).eval(),
        (torch.zeros(size or 2, *GIVEN),),
        buffer,
        input_names=["x"],
        output_names=["logits"],
        dynamic_axes={} if size else {"x": {0: "N"}, "logits": {0: "N"}},
        dynamo=False,
    )
    return {"model.onnx": buffer.getvalue()}


def put(files):
    for name, content in files.items():
        Path(name).write_bytes(content)


def seen(folder, tape, files, make=None, mode="certified", method="probing"):
    own = 'file = "model.onnx"'
    if "model.safetensors" in files:
        own = f'file = "model.safetensors"\nteacher = "private.makes:{make or "small"}"'
    with pytest.MonkeyPatch.context() as patch:
        if method != "dpdfd":  # the quick one splits the norms of a generator into pieces
            use_quick_exporter(patch)
        patch.setitem(registry.METHODS, "probing", "pipeline.probing:PROBING")
        # A benchmark may show how good the teacher is, which a release may not.
        purpose = "release" if mode == "certified" else "benchmark"
        numbers = {"method": method, "own": METHODS[method], "purpose": purpose}
        recipe = RECIPE.format(mode=mode, file=own, **numbers)
        return everything(folder, patch, tape, [files], recipe, put, "entity/change")


def differences(folder, first, second, make=None, method="probing"):
    tape = Tape()
    one = seen(folder / "a", tape, first, make, method=method)
    assert one.codes[1:] == (0,) * (len(one.codes) - 1), "\n".join(one.said)
    tape.played = 0
    return one.differences(seen(folder / "b", tape, second, make, method=method))


@pytest.mark.parametrize("method", ["probing", pytest.param("dpdfd", marks=pytest.mark.slow)])
def test_other_weights_cannot_be_told_apart(tmp_path, method):
    assert differences(tmp_path, weights(), weights(seed=1), method=method) == []


def test_a_model_that_has_no_scores_cannot_be_told_apart(tmp_path):
    """It raises on pictures that it was not tried on."""
    assert differences(tmp_path, fragile(1.0), fragile(-1.0), "Fragile") == []


def test_another_graph_cannot_be_told_apart(tmp_path):
    other = graph("Renamed", seed=1, size=3)
    assert differences(tmp_path, graph(), other, method="dpdfd") == []


def test_a_model_that_raises_once_it_is_paid_for_is_found(tmp_path, monkeypatch):
    """The broken twin: without the settled answers a refusal tells of the model."""
    monkeypatch.setattr(model_file, "_Settled", lambda network, classes: network)
    assert "exit codes" in differences(tmp_path, fragile(1.0), fragile(-1.0), "Fragile")


def test_scores_as_they_are_do_tell(tmp_path):
    """The harness can see a difference: unprotected answers are not taped in words alone."""
    one = seen(tmp_path / "a", Tape(), weights(), mode="as-published")
    two = seen(tmp_path / "b", Tape(), weights(seed=1), mode="as-published")
    assert "out0/model.safetensors" in one.differences(two)
