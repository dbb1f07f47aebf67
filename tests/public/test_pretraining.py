"""A start from public records: learns, is the same for the same seed, and stops at nonsense."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stillroom.data import digits
from stillroom.errors import BadInput
from stillroom.public.pretraining import pretrain
from stillroom.randomness import seeded_torch


def started(scale: float = 1 / 16, seed: int = 0) -> tuple[nn.Module, float]:
    data = digits()
    x, y = torch.tensor(data.x).float() * scale, torch.tensor(data.y)
    with seeded_torch(3, "test"):
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    pretrain(network, x[:1000], y[:1000], epochs=5, learning_rate=0.01, seed=seed)
    with torch.no_grad():
        right = (network(x[1000:]).argmax(dim=1) == y[1000:]).float().mean()
    return network, float(right)


def test_it_learns():
    assert started()[1] > 0.8


def test_the_seed_fixes_it():
    same, again, other = (started(seed=s)[0].state_dict() for s in (1, 1, 2))
    assert all(torch.equal(same[name], again[name]) for name in same)
    assert not all(torch.equal(same[name], other[name]) for name in same)


def test_a_loss_that_is_no_number_is_named():
    with pytest.raises(BadInput, match="epoch 0"):
        started(scale=float("nan"))
