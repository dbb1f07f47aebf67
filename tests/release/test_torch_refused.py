"""A network that cannot be released is refused, in words, and nothing is left lying about."""

from __future__ import annotations

import pytest
from torch import nn

from release.making import make
from release.networks import CLASSES, cnn, network
from stillroom.errors import BadInput, NumericalDoubt
from stillroom.release.model import checked_onnx
from stillroom.release.torch_model import TorchModel


def test_a_wrong_width_and_broken_weights_are_refused(tmp_path):
    with pytest.raises(BadInput, match="4 scores"):
        make(tmp_path / "wide", model=cnn((8, 8), outputs=4))
    layers = network((8, 8))
    layers[9].weight.data[0, 0] = float("nan")
    with pytest.raises(BadInput, match="finite"):
        make(tmp_path / "odd", model=TorchModel(layers, (8, 8), "odd"))


class Branching(nn.Module):
    """Takes a way that depends on the values: no graph can say that."""

    def forward(self, x):
        return x.flatten(1)[:, :3] * (2 if float(x.sum()) > 5 else 1)


class BatchCentred(nn.Module):
    """What a record gets depends on the records beside it."""

    def forward(self, x):
        return (x - x.mean(dim=0)).flatten(1)[:, :3]


class Sums(nn.Module):
    def forward(self, x):
        return x.sum()


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (Sums(), "one row of scores"),
        (nn.Linear(7, 3), "cannot read records"),
        (nn.Identity(), "one row of scores"),
    ],
    ids=["one score", "another shape", "no scores"],
)
def test_what_gives_no_scores_is_refused(layers, words):
    with pytest.raises(BadInput, match=words):
        TorchModel(layers, (8, 8), "odd")


def test_what_onnx_cannot_say_is_refused_quietly(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="cannot be written as ONNX"):
        TorchModel(Branching(), (8, 8), "odd").onnx(CLASSES)
    assert capfd.readouterr() == ("", "")
    assert [file for file in tmp_path.iterdir() if file.is_file()] == []


def test_a_model_that_mixes_records_is_doubted():
    with pytest.raises(NumericalDoubt):
        checked_onnx(TorchModel(BatchCentred(), (8, 8), "odd"), CLASSES)
