"""Once a draw is charged, nothing that a network's sum says or does depends on a record (K10)."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from drawing import drawn
from stillroom.errors import BadInput
from stillroom.gate import Budget, Gate, GaussianSum, Ledger
from stillroom.models.flat_weights import flatten
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_gradients import LayerByLayer, NetworkGradients
from stillroom.private.networks import NetworkRecords, guesses
from stillroom.vocabulary import SecretSample

CLIP = NetworkClip(Fraction(1, 2))
CLASSES = 4
SIZE = 70


class Picky(nn.Module):
    """Warns of one kind of record, and raises for another, whoever is beside it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(36, CLASSES)

    def forward(self, x):
        if x.min() < -1e20:
            raise ValueError("this is no picture")
        if x.min() < -50:
            warnings.warn("a bright picture", stacklevel=1)
        return self.layer(x.flatten(1))


NETWORKS = {
    "hidden layer": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, CLASSES)
    ),
    "convolution": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, CLASSES)
    ),
    "raises": Picky,
}


def network_of(name):
    torch.manual_seed(0)
    network = NETWORKS[name]()
    return network, 2 * flatten(network)


def records_of(size=SIZE):
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.normal(size=(size, 1, 6, 6)).astype(np.float32))
    return x, rng.integers(0, CLASSES, size)


def sample_of(places):
    return SecretSample(Fraction(1, 2), lambda size: np.isin(np.arange(size), places))


def summed(records, weights, places=range(SIZE), clip=CLIP):
    sample = sample_of(list(places))
    return records.clipped_sum(weights, clip, sample, step=3).open_bounded()[0]


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_record_without_a_gradient_counts_as_none(name, ghost, capfd, caplog):
    network, weights = network_of(name)
    x, y = records_of()
    cases = (([SIZE - 1], -3e38), ([0], torch.nan), ([1, 40, 66], -3e38))
    for bad, value in cases:
        spoilt = x.clone()
        spoilt[bad] = value
        records = NetworkRecords(spoilt, y, CLASSES, network, ghost=ghost)
        rest = np.delete(np.arange(SIZE), bad)
        with_it, without = summed(records, weights), summed(records, weights, rest)
        # One unit of the grid: in another place a sum is rounded another way.
        assert np.abs(with_it - without).max() <= (0 if bad == [SIZE - 1] else 1)
        assert without.any()
        assert not summed(records, weights, bad).any()
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


@pytest.mark.parametrize("ghost", [False, True])
def test_a_warning_does_not_come_out(ghost, recwarn):
    network, weights = network_of("raises")
    x, y = records_of()
    x[7] -= 100
    assert summed(NetworkRecords(x, y, CLASSES, network, ghost=ghost), weights, [7]).any()
    assert not recwarn.list


FACTORS = {
    "the clip left out": lambda norms, clip: torch.ones_like(norms),
    "averaged instead of clipped": lambda norms, clip: torch.ones_like(norms) / len(norms),
    "two thousandths too long": lambda norms, clip: float(clip.norm) * 1.002 / norms,
}


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_a_term_that_comes_out_too_long_counts_as_none(monkeypatch, factors, ghost):
    """Twins that clip wrongly: what is still short enough is added, and nothing else."""
    network, weights = network_of("convolution")
    x, y = records_of(40)
    x[3] *= 1e4
    records = NetworkRecords(x, y, CLASSES, network, ghost=ghost)
    clip = NetworkClip(Fraction(1, 8))
    monkeypatch.setattr(NetworkRecords, "_factors", staticmethod(factors))
    terms = [summed(records, weights, [i], clip) / clip.steps for i in range(40)]
    lengths = np.linalg.norm(terms, axis=1)
    assert (lengths == 0).any()
    assert lengths.max() <= 1.001
    whole = summed(records, weights, range(40), clip) / clip.steps
    assert np.linalg.norm(whole - np.sum(terms, axis=0)) < 1e-4


def test_what_a_second_pass_makes_longer_counts_as_none(monkeypatch):
    """A twin whose second backward pass finds one record's gradient twice as long."""
    network, weights = network_of("convolution")
    x, y = records_of()
    records = NetworkRecords(x, y, CLASSES, network, ghost=True)
    rest = summed(records, weights, np.delete(np.arange(SIZE), SIZE - 1))
    weighted = LayerByLayer.weighted

    def longer(self, factors):
        total, lengths = weighted(self, factors)
        doubled = (self._shown[0] == x[SIZE - 1]).flatten(1).all(dim=1)
        return total, torch.where(doubled, 2 * lengths, lengths)

    monkeypatch.setattr(LayerByLayer, "weighted", longer)
    assert np.array_equal(summed(records, weights), rest)


@pytest.mark.parametrize("kind", [NetworkGradients, LayerByLayer])
def test_what_takes_no_part_is_not_multiplied_by_zero(kind):
    """Zero times NaN is NaN, and one such row would be the whole sum."""
    network, _ = network_of("hidden layer")
    gradients = kind(network, augment=None, views=1)
    x, y = records_of(64)
    x[5] = -3e38
    norms = gradients.norms(x, torch.from_numpy(y), 0)
    assert torch.isfinite(norms).sum() == 63
    total, _ = gradients.weighted(torch.isfinite(norms).double())
    assert np.isfinite(total).all()


class Fragile(nn.Module):
    """Raises at weights that have grown, whatever the records."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(36, CLASSES)

    def forward(self, x):
        if self.layer.bias.max() > 100:
            raise ArithmeticError("grown")
        return self.layer(x.flatten(1))


@pytest.mark.parametrize("places", [[], [0], [5, 66], list(range(SIZE))])
@pytest.mark.parametrize("ghost", [False, True])
def test_what_the_weights_alone_raise_is_raised_for_every_sample(ghost, places):
    x, y = records_of()
    x[5], x[66] = -3e38, 1e30
    network, weights = network_of("hidden layer")
    records = NetworkRecords(x, y, CLASSES, network, ghost=ghost)
    with pytest.raises(BadInput, match="not even a blank record") as caught:
        summed(records, np.full_like(weights, 3e38), places)
    assert caught.value.where == "step 3"
    assert "learning rate" in caught.value.remedy
    with pytest.raises(BadInput, match="a weight is not a finite number"):
        summed(records, weights * np.float32(np.inf), places)
    # The next step on the same records is sound again.
    assert np.isfinite(summed(records, weights, places)).all()
    fragile = NetworkRecords(x, y, CLASSES, Fragile(), ghost=ghost)
    with pytest.raises(ArithmeticError, match="grown"):
        summed(fragile, np.full(148, 101, dtype=np.float32), places)


class TroubleInChunks(NetworkGradients):
    """A twin for which memory is short, but only for a whole chunk."""

    def norms(self, x, y, step, owners=None):
        if len(x) == 64 and self.short:
            raise MemoryError
        return super().norms(x, y, step, owners)


@pytest.mark.parametrize("places", [[0], list(range(SIZE))])
def test_what_blank_records_raise_too_is_not_hidden(monkeypatch, places):
    """Otherwise a machine without memory would train on nothing but noise."""
    network, weights = network_of("hidden layer")
    TroubleInChunks.short = False
    monkeypatch.setattr("stillroom.private.networks.NetworkGradients", TroubleInChunks)
    records = NetworkRecords(*records_of(), CLASSES, network)
    assert summed(records, weights, places).any()
    TroubleInChunks.short = True
    with pytest.raises(MemoryError):
        summed(records, weights, places)


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_draw_is_lost_by_a_record(name, ghost, tmp_path):
    """Whether it was in the sample would be told by a draw that is charged and never answered."""
    network, weights = network_of(name)
    x, y = records_of()
    x[11] = -3e38
    records = NetworkRecords(x, y, CLASSES, network, ghost=ghost)
    ids = [f"record {i}" for i in range(SIZE)]
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=ids, purpose="benchmark")
    ledger.set_budget(Budget(8.0, 1e-5), reason="a test")
    mechanism = GaussianSum(20 * CLIP.steps, records.width, CLIP.squared_norm, Fraction(1, 2))
    way = Gate(ledger, ids=ids).reserve(mechanism, 12)
    answers = []
    for step in range(12):
        bounded = records.clipped_sum(weights, CLIP, way.poisson(), step=step)
        answers.append(drawn(way, bounded))
    # The chance that it was in none of the samples, and nothing was tried, is 2^-12.
    assert (way.left, len(answers)) == (0, 12)


def test_guesses_are_made_for_every_record():
    network, weights = network_of("raises")
    x, _ = records_of()
    sound = guesses(network, weights, x)
    x[3], x[4], x[5] = torch.nan, -1e30, -200
    got = guesses(network, weights, x)
    assert np.array_equal(np.delete(got, [3, 4, 5]), np.delete(sound, [3, 4, 5]))
    assert set(got) <= set(range(CLASSES))
