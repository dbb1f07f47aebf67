"""A network is pruned and coded, and nothing else of it changes."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from release.networks import network, records
from stillroom.public import compression
from stillroom.public.compression import compressed, folded, importance, with_codes
from stillroom.public.pruning import most_important
from stillroom.randomness import seeded_torch

SHAPE = (8, 8)
X = records(SHAPE, 70)


def scores(layers, x=X):
    with torch.no_grad():
        return layers.eval()(torch.from_numpy(x)).numpy()


def test_importance_is_weight_times_gradient_over_batches():
    layers = network(SHAPE).eval()
    labels = scores(layers).argmax(axis=1)
    expected = {name: 0.0 for name, _ in layers.named_parameters()}
    for start in (0, 32, 64):
        layers.zero_grad()
        batch = torch.from_numpy(X[start : start + 32])
        wanted = torch.from_numpy(labels[start : start + 32])
        nn.functional.cross_entropy(layers(batch), wanted, reduction="sum").backward()
        for name, weights in layers.named_parameters():
            expected[name] = expected[name] + (weights * weights.grad).abs().detach().numpy() / 70
    found = importance(layers, X)
    assert set(found) == set(expected)
    for name, told in found.items():
        assert told == pytest.approx(expected[name], rel=1e-4, abs=1e-6)
    assert found["1.weight"].max() > 0


def test_labels_can_be_given_and_the_network_is_left_alone():
    layers = network(SHAPE)
    before = copy.deepcopy(layers.state_dict())
    own = scores(copy.deepcopy(layers)).argmax(axis=1)
    layers.train()
    found, given, other = (importance(layers, X, y) for y in (None, own, (own + 1) % 3))
    name = "1.weight"
    assert np.array_equal(found[name], given[name])
    assert not np.allclose(found[name], other[name])
    assert layers.training
    assert all(weights.grad is None for weights in layers.parameters())
    assert all(torch.equal(before[name], now) for name, now in layers.state_dict().items())


def test_weights_that_are_not_used_do_not_matter():
    layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    layers.register_parameter("spare", nn.Parameter(torch.ones(2, 2)))
    assert not importance(layers, X)["spare"].any()
    assert not most_important(importance(layers, X), 0.5)["spare"].any()


def test_important_weights_change_the_loss_most():
    """Zeroing the more important half of a layer costs more; in the mean, as it is first order."""

    def losses(seed):
        with seeded_torch(seed, "layer"):
            layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
        labels = torch.from_numpy(scores(layers).argmax(axis=1))
        mask = torch.from_numpy(most_important(importance(layers, X), 0.5)["1.weight"])
        for zeroed in (mask, ~mask):
            other = copy.deepcopy(layers)
            other[1].weight.data[zeroed] = 0
            yield float(nn.functional.cross_entropy(torch.from_numpy(scores(other)), labels))

    without_important, without_others = np.mean([list(losses(seed)) for seed in range(12)], axis=0)
    assert without_important > 1.5 * without_others


def test_batch_norms_are_folded_into_what_stands_before_them():
    layers = network(SHAPE)
    with torch.no_grad():
        layers[6].weight.copy_(torch.tensor([0.5, 2.0, -1.0, 1.5]))
        layers[6].bias.fill_(0.3)
    deep = nn.Sequential(layers, nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4)))
    whole = folded(deep)
    assert not any(isinstance(part, nn.BatchNorm2d | nn.BatchNorm1d) for part in whole.modules())
    assert any(isinstance(part, nn.GroupNorm) for part in whole.modules())
    assert np.allclose(scores(whole), scores(deep), atol=1e-5)
    assert isinstance(deep[0][6], nn.BatchNorm2d)


def test_a_batch_norm_after_anything_else_stays():
    layers = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 3))
    assert isinstance(folded(layers)[1], nn.BatchNorm1d)


@pytest.mark.parametrize("residual_bits", [0, 4])
def test_the_network_has_what_the_codes_stand_for(residual_bits):
    layers = network(SHAPE)
    small, codes = compressed(layers, X, kept=0.5, codebook_bits=3, residual_bits=residual_bits)
    whole = folded(layers).state_dict()
    assert set(codes) == {name for name, weights in whole.items() if weights.ndim >= 2}
    assert set(small.state_dict()) == set(whole)
    for name, weights in small.state_dict().items():
        if name in codes:
            assert weights.numpy().tobytes() == codes[name].array().tobytes()
            assert len(torch.unique(weights)) <= 9 or residual_bits
        else:
            assert torch.equal(weights, whole[name])
    kept = sum(int(code.kept.sum()) for code in codes.values())
    assert kept == -(-sum(code.kept.size for code in codes.values()) // 2)
    assert not np.array_equal(scores(small), scores(layers))


def test_no_more_pictures_are_looked_at_than_needed(monkeypatch):
    seen = []

    def noted(layers, pictures):
        seen.append(pictures)
        return importance(layers, pictures[:40])

    monkeypatch.setattr(compression, "importance", noted)
    many = np.repeat(X, 50, axis=0)
    compressed(network(SHAPE), many, kept=0.5, codebook_bits=3, residual_bits=0)
    (looked,) = seen
    assert len(looked) == compression.MOST_PICTURES < len(many)
    # Of every picture some of its copies are among them.
    assert len(np.unique(looked, axis=0)) == len(X)


def test_many_bits_hardly_change_the_scores():
    layers = network(SHAPE)
    small, _ = compressed(layers, X, kept=1, codebook_bits=8, residual_bits=8)
    before = scores(layers)
    assert np.abs(scores(small) - before).max() < 1e-3 * np.abs(before).max()


def test_weights_that_are_shared_stay_shared():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(64, 64)
            self.second = nn.Linear(64, 64)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x.flatten(1)))

    small, codes = compressed(Tied(), X, kept=0.5, codebook_bits=2, residual_bits=0)
    assert set(codes) == {"first.weight"}
    state = small.state_dict()
    assert torch.equal(state["first.weight"], state["second.weight"])
    assert torch.equal(with_codes(small, codes).second.weight, state["first.weight"])
