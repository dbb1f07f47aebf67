"""A network whose gradients are not each record's own is refused, on made-up records alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from stillroom.errors import BadInput
from stillroom.models.augmentation import Augment
from stillroom.models.flat_weights import flatten
from stillroom.private import network_check, networks
from stillroom.private.network_clip import NetworkClip
from stillroom.private.networks import NetworkRecords

CLASSES = 4
NOBODY = torch.zeros(0, 1, 6, 6), np.zeros(0, dtype=np.int64)


class Own(nn.Module):
    """A hidden layer, and then whatever is done to it."""

    def __init__(self, then, scale=1.0):
        super().__init__()
        self.hidden, self.scores = nn.Linear(36, 8), nn.Linear(8, CLASSES)
        self.then, self.scale = then, scale

    def forward(self, x):
        hidden = self.then(torch.relu(self.hidden(x.flatten(1))))
        return self.scale * self.scores(hidden)


class Tied(nn.Module):
    """A weight that is used a second time, by a function that no hook sees."""

    def __init__(self, start=None):
        super().__init__()
        self.layer = nn.Linear(36, 36)
        self.head = nn.Linear(36, CLASSES)
        if start is not None:
            nn.init.constant_(self.head.weight, start)

    def forward(self, x):
        seen = torch.tanh(self.layer(x.flatten(1)))
        return self.head(torch.tanh(F.linear(seen, self.layer.weight.T)))


class TiedLayers(nn.Module):
    """The same layer twice, where hooks see both."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(36, 36), nn.Linear(36, CLASSES)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(torch.tanh(self.layer(x.flatten(1))))))


class Patches(nn.Module):
    """A linear layer over several rows per record, as in a transformer."""

    def __init__(self):
        super().__init__()
        self.patch, self.head = nn.Linear(6, 5), nn.Linear(5, CLASSES)

    def forward(self, x):
        return self.head(torch.tanh(self.patch(x[:, 0])).mean(dim=1))


class MergedPatches(Patches):
    """The same, with the rows of all records in one heap."""

    def forward(self, x):
        rows = torch.tanh(self.patch(x.reshape(-1, 6)))
        return self.head(rows.reshape(len(x), 6, -1).mean(dim=1))


def made(kind, *given, **named):
    torch.manual_seed(0)
    return kind(*given, **named)


def refused(network, **options):
    with pytest.raises(BadInput) as caught:
        NetworkRecords(*NOBODY, CLASSES, network, **options)
    assert caught.value.why
    assert caught.value.remedy
    return caught.value


def apart_by_place(hidden):
    """A mask that is always the same, and goes by the row."""
    mask = np.random.default_rng(5).random(hidden.shape) > 0.5
    return hidden * torch.from_numpy(mask).float()


def whole_if_all_are_numbers(hidden):
    return hidden if torch.isfinite(hidden).all() else 0.9 * hidden


noise = np.random.default_rng(6)
DRAWING = {
    "dropout": lambda h: F.dropout(h, 0.5),
    "hardly any dropout": lambda h: F.dropout(h, 1e-6),
    "noise": lambda h: h + 1e-9 * torch.randn_like(h),
    "random slopes": lambda h: F.rrelu(h - 1, training=True),
}
MIXING = {
    "a generator of its own": lambda h: h + torch.from_numpy(noise.normal(size=h.shape)).float(),
    "a mask by place": apart_by_place,
    "centred over the batch": lambda h: h - h.mean(dim=0),
    "centred, without a gradient": lambda h: h - h.detach().mean(dim=0),
    "attention over the batch": lambda h: torch.softmax(h @ h.T, dim=1) @ h,
    "the neighbour's": lambda h: h.roll(1, 0),
    "the size of the batch": lambda h: h * (1 + h.detach().abs().max()).log1p(),
    "one that is no number": whole_if_all_are_numbers,
}


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("then", DRAWING.values(), ids=DRAWING)
def test_a_network_that_draws_is_refused(then, ghost):
    """However little it draws: the generator tells, before any figure does."""
    network, state = made(Own, then), torch.get_rng_state()
    error = refused(network, ghost=ghost)
    assert "draws random numbers" in error.what
    assert "dropout" in error.remedy
    assert "by its place" in error.why
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("layer", [nn.Dropout(0.1), nn.AlphaDropout(0.1), nn.RReLU()])
def test_a_layer_that_draws_is_refused(layer):
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), layer, nn.Linear(8, CLASSES))
    # NetworkRecords trains it, whatever mode it comes in.
    assert "draws random numbers" in refused(network.eval()).what


@pytest.mark.parametrize("scale", [1.0, 1e-5], ids=["as usual", "gradients far below any clip"])
@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("then", MIXING.values(), ids=MIXING)
def test_a_network_in_which_company_matters_is_refused(then, ghost, scale):
    error = refused(made(Own, then, scale), ghost=ghost)
    assert "changes with its company" in error.what or "not those of the loss" in error.what
    assert error.where == "model"


def test_it_would_be_accepted_without_the_check(monkeypatch):
    """The twin that does not look takes all of them."""
    monkeypatch.setattr(networks, "check_gradients", lambda *given: None)
    for then in (*DRAWING.values(), *MIXING.values()):
        NetworkRecords(*NOBODY, CLASSES, made(Own, then))
    NetworkRecords(*NOBODY, CLASSES, made(Tied), ghost=True)


@pytest.mark.parametrize("start", [None, 0.0], ids=["as usual", "a head of zeros"])
@pytest.mark.parametrize("ghost", [False, True])
def test_a_weight_that_is_used_behind_the_hooks_is_refused(ghost, start):
    """With a head of zeros, the start weights alone have no gradient that could tell."""
    error = refused(made(Tied, start), ghost=ghost)
    assert "not those of the loss" in error.what
    assert "layer that owns it" in error.remedy


def test_a_head_of_zeros_would_be_accepted_at_its_first_weights(monkeypatch):
    """The twin that looks at the start weights only."""
    monkeypatch.setattr(network_check, "_elsewhere", lambda weights: np.float32(0))
    NetworkRecords(*NOBODY, CLASSES, made(Tied, 0.0), ghost=True)
    with pytest.raises(BadInput):
        NetworkRecords(*NOBODY, CLASSES, made(Tied), ghost=True)


@pytest.mark.parametrize("ghost", [False, True])
def test_rows_that_are_not_records_are_refused(ghost):
    assert "for every record" in refused(made(MergedPatches), ghost=ghost).what


SOUND = {
    "as it is": lambda: Own(lambda h: h),
    "within a record": lambda: Own(lambda h: h - h.mean(dim=1, keepdim=True)),
    "a layer twice": TiedLayers,
    "several rows per record": Patches,
    "no bias": lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, CLASSES, bias=False)),
}


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("kind", SOUND.values(), ids=SOUND)
def test_what_keeps_records_apart_passes_and_sums_up(kind, ghost):
    network = made(kind)
    state, before = torch.get_rng_state(), flatten(network)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(70, 1, 6, 6)).astype(np.float32))
    y = rng.integers(0, CLASSES, 70)
    records = NetworkRecords(x, y, CLASSES, network, ghost=ghost)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(flatten(network), before)
    clip = NetworkClip(Fraction(1, 2))
    expected = np.zeros(records.width)
    for one, label in zip(x, y, strict=True):
        loss = F.cross_entropy(network(one[None]), torch.tensor([label]))
        parts = torch.autograd.grad(loss, list(network.parameters()))
        gradient = torch.cat([part.reshape(-1) for part in parts]).double().numpy()
        expected += gradient * min(1, 0.5 / np.linalg.norm(gradient))
    got = records.clipped_sum(before, clip, None, step=1).open_bounded()[0] * clip.unit
    assert got == pytest.approx(expected, abs=1e-5)


def test_views_are_checked_as_they_are_used():
    augment = Augment(key=3, shift=2, mirror=True)
    NetworkRecords(*NOBODY, CLASSES, made(Own, lambda h: h), augment=augment, views=3)
    error = refused(made(Tied), augment=augment, views=3)
    assert "not those of the loss" in error.what


def test_wide_networks_are_tried_in_fewer_rows(monkeypatch):
    seen = []
    trial = network_check._Trial

    def noted(gradients, shape, classes, rows):
        seen.append(rows)
        return trial(gradients, shape, classes, rows)

    monkeypatch.setattr(network_check, "_Trial", noted)
    NetworkRecords(*NOBODY, CLASSES, made(Own, lambda h: h))
    NetworkRecords(*NOBODY, CLASSES, made(Own, lambda h: h), chunk=128)
    wide = nn.Sequential(nn.Flatten(), nn.Linear(36, 40_000), nn.Linear(40_000, CLASSES))
    NetworkRecords(*NOBODY, CLASSES, wide)
    assert seen == [64, 128, 4]


def test_weights_that_are_no_numbers_are_refused():
    network = made(Own, lambda h: h)
    network.hidden.weight.data[0, 0] = torch.nan
    assert "not finite" in refused(network).what
