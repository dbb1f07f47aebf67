"""A model that does not fit, or that mixes records, is refused before anything is spent."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.models import build, check_fits, parameter_count

SHAPE = (1, 8, 8)


class Own(nn.Module):
    """A linear layer, then whatever is done to its scores."""

    def __init__(self, then):
        super().__init__()
        self.layer = nn.Linear(64, 10)
        self.then = then

    def forward(self, x):
        return self.then(self.layer(x.flatten(1)))


def by_hand(scores):
    """A batch norm that does not say so."""
    return (scores - scores.mean(0)) / (scores.std(0) + 1e-3)


WRONG = {
    "too wide": (nn.Sequential(nn.Flatten(), nn.Linear(64, 11)), "not (2, 10)"),
    "another input": (nn.Sequential(nn.Flatten(), nn.Linear(65, 10)), "cannot read records"),
    "a map": (nn.Conv2d(1, 10, 3), "not (2, 10)"),
    "summed over records": (Own(lambda s: s.sum(0)), "not (2, 10)"),
    "a pair": (Own(lambda s: (s, s)), "gives tuple"),
    "not a number": (Own(lambda s: s / 0 - s / 0), "not finite"),
    "infinite": (Own(lambda s: s.abs() / 0), "not finite"),
}


@pytest.mark.parametrize(("model", "said"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("private_training", [False, True])
def test_what_does_not_fit(model, said, private_training):
    with pytest.raises(BadInput) as caught:
        check_fits(model, SHAPE, 10, private_training=private_training)
    assert said in caught.value.what
    assert caught.value.remedy


def flat(*layers):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), *layers)


MIXING = {
    "batch norm": flat(nn.BatchNorm1d(10)),
    "batch norm without a memory": flat(nn.BatchNorm1d(10, track_running_stats=False)),
    "frozen batch norm": flat(nn.BatchNorm1d(10)).requires_grad_(False),
    "synchronised": flat(nn.SyncBatchNorm(10)),
    "pictures": nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, 10)),
    "instance norm with a memory": nn.Sequential(
        nn.InstanceNorm2d(1, track_running_stats=True), nn.Flatten(), nn.Linear(64, 10)
    ),
    "by hand": Own(by_hand),
    "attention over the batch": Own(lambda s: torch.softmax(s @ s.T, dim=1) @ s),
}


@pytest.mark.parametrize("model", MIXING.values(), ids=MIXING)
def test_mixing_records_is_refused_in_private_training_only(model):
    check_fits(model, SHAPE, 10, private_training=False)
    with pytest.raises(BadInput) as caught:
        check_fits(model, SHAPE, 10, private_training=True)
    assert "record" in caught.value.what
    assert "GroupNorm" in caught.value.remedy


ALONE = {
    "group norm": nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(144, 10)
    ),
    "layer norm": flat(nn.LayerNorm(10)),
    "dropout": flat(nn.Dropout(0.5)),
    "by hand within a record": Own(lambda s: s - s.mean(1, keepdim=True)),
}


@pytest.mark.parametrize("model", ALONE.values(), ids=ALONE)
def test_what_keeps_records_apart_passes(model):
    check_fits(model, SHAPE, 10, private_training=True)


def test_what_opacus_cannot_handle_is_refused():
    pytest.importorskip("opacus")

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTM(8, 10, batch_first=True)

        def forward(self, x):
            return self.cell(x[:, 0])[0][:, -1]

    check_fits(Recurrent(), SHAPE, 10, private_training=False)
    with pytest.raises(BadInput, match="gradient of single records"):
        check_fits(Recurrent(), SHAPE, 10, private_training=True)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training):
    model = flat(nn.BatchNorm1d(10)).train(training)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    check_fits(model, SHAPE, 10, private_training=False)
    assert model.training is training
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())
    assert torch.equal(torch.get_rng_state(), state)


def test_frozen_parameters_count_too():
    model = build("linear", SHAPE, 10, seed=0).requires_grad_(False)
    assert parameter_count(model) == 650
