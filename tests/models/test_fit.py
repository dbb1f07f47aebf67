"""A model that does not fit, or that mixes records, is refused before anything is spent."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.models import build, check_fits, fit, parameter_count

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


def made(kind, seed=0):
    torch.manual_seed(seed)
    return kind()


def hidden(then):
    """Something in the middle, where scores may show little of it."""

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(64, 16), nn.Linear(16, 10)

        def forward(self, x):
            return self.last(then(torch.relu(self.first(x.flatten(1)))))

    return Hidden()


MIXING = {
    "batch norm": lambda: flat(nn.BatchNorm1d(10)),
    "batch norm without a memory": lambda: flat(nn.BatchNorm1d(10, track_running_stats=False)),
    "frozen batch norm": lambda: flat(nn.BatchNorm1d(10)).requires_grad_(False),
    "synchronised": lambda: flat(nn.SyncBatchNorm(10)),
    "pictures": lambda: nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, 10)),
    "instance norm with a memory": lambda: nn.Sequential(
        nn.InstanceNorm2d(1, track_running_stats=True), nn.Flatten(), nn.Linear(64, 10)
    ),
    "by hand": lambda: Own(by_hand),
    "attention over the batch": lambda: Own(lambda s: torch.softmax(s @ s.T, dim=1) @ s),
    "sharp attention": lambda: Own(lambda s: torch.softmax(9 * s @ s.T, dim=1) @ s),
    "the largest of the batch": lambda: Own(lambda s: s / s.detach().abs().max()),
    "the gradient of the mean alone": lambda: hidden(lambda h: h + h.mean(0) - h.mean(0).detach()),
    "the neighbour": lambda: hidden(lambda h: h.roll(1, 0)),
}


@pytest.mark.parametrize("kind", MIXING.values(), ids=MIXING)
@pytest.mark.parametrize("seed", range(4))
def test_mixing_records_is_refused_in_private_training_only(kind, seed):
    model = made(kind, seed)
    check_fits(model, SHAPE, 10, private_training=False)
    with pytest.raises(BadInput) as caught:
        check_fits(model, SHAPE, 10, private_training=True)
    assert "record" in caught.value.what
    assert "GroupNorm" in caught.value.remedy


def test_scores_alone_would_not_tell(monkeypatch):
    """The twin that compares no gradients lets a gradient pass that is not the record's own."""
    model = made(MIXING["the gradient of the mean alone"])
    monkeypatch.setattr(fit, "trainable", lambda model: [])
    check_fits(model, SHAPE, 10, private_training=True)


DRAWING = {
    "dropout": lambda: flat(nn.Dropout(0.5)),
    "hardly any dropout": lambda: flat(nn.Dropout(1e-6)),
    "dropout by a function": lambda: hidden(nn.functional.dropout),
    "noise on the scores": lambda: Own(lambda s: s + 1e-9 * torch.randn_like(s)),
    "random slopes": lambda: flat(nn.RReLU()),
}


@pytest.mark.parametrize("kind", DRAWING.values(), ids=DRAWING)
def test_drawing_is_refused_in_private_training_only(kind):
    model, state = made(kind), torch.get_rng_state()
    check_fits(model, SHAPE, 10, private_training=False)
    with pytest.raises(BadInput, match="draws random numbers") as caught:
        check_fits(model, SHAPE, 10, private_training=True)
    assert "dropout" in caught.value.remedy
    assert torch.equal(torch.get_rng_state(), state)


def test_what_draws_elsewhere_is_refused():
    """Torch's generator does not tell; two passes that differ do."""
    rng = np.random.default_rng(1)
    model = made(lambda: hidden(lambda h: h * torch.from_numpy(rng.random(h.shape)).float()))
    with pytest.raises(BadInput, match="change with its company") as caught:
        check_fits(model, SHAPE, 10, private_training=True)
    assert "random" in caught.value.remedy


ALONE = {
    "group norm": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(144, 10)
    ),
    "layer norm": lambda: flat(nn.LayerNorm(10)),
    "by hand within a record": lambda: Own(lambda s: s - s.mean(1, keepdim=True)),
    "attention within a record": lambda: hidden(lambda h: torch.softmax(h, dim=1) * h),
    "scores of zeros": lambda: Own(lambda s: 0 * s),
    "a bias that a norm takes away": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(4, 4), nn.Flatten(), nn.Linear(144, 10)
    ),
}


@pytest.mark.parametrize("kind", ALONE.values(), ids=ALONE)
@pytest.mark.parametrize("seed", range(4))
def test_what_keeps_records_apart_passes(kind, seed):
    check_fits(made(kind, seed), SHAPE, 10, private_training=True)


def test_gradients_that_are_no_numbers_are_refused():
    model = Own(lambda s: s * torch.sqrt((s - s).abs()))
    check_fits(model, SHAPE, 10, private_training=False)
    with pytest.raises(BadInput, match="not finite"):
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


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training, private):
    model = flat(nn.LayerNorm(10) if private else nn.BatchNorm1d(10)).train(training)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    check_fits(model, SHAPE, 10, private_training=private)
    assert model.training is training
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())
    assert torch.equal(torch.get_rng_state(), state)


def test_frozen_parameters_count_too():
    model = build("linear", SHAPE, 10, seed=0).requires_grad_(False)
    assert parameter_count(model) == 650
