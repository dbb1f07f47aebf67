"""Whole networks whose gradients are clipped person by person."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.models.flat_weights import flatten, trainable
from stillroom.private import network_gradients
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_gradients import Outer, Owners, Written
from stillroom.private.network_persons import NetworkPersons
from stillroom.private.networks import NetworkRecords

CLASSES, MOST = 3, 4
torch.manual_seed(1)
NETWORK = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, CLASSES))
CLIP = NetworkClip(Fraction(1, 2))


def records(size=30, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, 5)).astype(np.float32)
    persons = [f"p{i}" for i in rng.integers(0, size // 2, size)]
    kept = [i for i in range(size) if persons[:i].count(persons[i]) < MOST]
    y = rng.integers(0, CLASSES, size)
    return x[kept], y[kept], [persons[i] for i in kept]


def made(x, y, persons, *, most=MOST, **options):
    return NetworkPersons(
        torch.from_numpy(x), y, CLASSES, NETWORK, persons, most, **options
    ).clipped_sum(flatten(NETWORK), CLIP, None, step=1)


def by_hand(x, y, persons) -> np.ndarray:
    """Each person's summed gradient by autograd, clipped, and their sum."""
    total = np.zeros(len(flatten(NETWORK)))
    for person in sorted(set(persons)):
        own = [i for i, name in enumerate(persons) if name == person]
        logits = NETWORK(torch.from_numpy(x[own]))
        loss = F.cross_entropy(logits, torch.from_numpy(y[own]), reduction="sum")
        parts = torch.autograd.grad(loss, trainable(NETWORK))
        gradient = torch.cat([part.reshape(-1) for part in parts]).double().numpy()
        total += gradient * min(1.0, float(CLIP.norm) / np.linalg.norm(gradient))
    return total


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("size", [30, 150])
def test_it_is_the_sum_of_each_persons_clipped_gradient(size, ghost):
    x, y, persons = records(size)
    assert max(map(persons.count, persons)) > 1
    found = made(x, y, persons, ghost=ghost).open_bounded()[0] * CLIP.unit
    assert found == pytest.approx(by_hand(x, y, persons), abs=2e-5)


@pytest.mark.parametrize("ghost", [False, True])
def test_of_persons_with_one_record_it_is_that_of_records(ghost):
    x, y, _ = records()
    of_persons = made(x, y, [f"p{i:02d}" for i in range(len(y))], ghost=ghost)
    alone = NetworkRecords(torch.from_numpy(x), y, CLASSES, NETWORK, ghost=ghost)
    of_records = alone.clipped_sum(flatten(NETWORK), CLIP, None, step=1)
    apart = of_persons.open_bounded() - of_records.open_bounded()
    assert np.abs(apart).max() <= 1  # the last bit of a length that allows for rounding


def test_the_order_of_records_does_not_matter():
    x, y, persons = records()
    turned = made(x[::-1].copy(), y[::-1].copy(), persons[::-1]).open_bounded()
    assert np.abs(turned - made(x, y, persons).open_bounded()).max() <= 64


def test_a_chunk_has_room_for_everybody():
    """The cap is larger than a usual chunk: records of one person must stand together."""
    x = np.ones((100, 5), dtype=np.float32)
    y = np.zeros(100, dtype=np.int64)
    moved = made(x, y, ["one"] * 100, most=100).open_bounded()[0] * CLIP.unit
    assert np.linalg.norm(moved) == pytest.approx(float(CLIP.norm), rel=1e-3)


def test_more_records_than_the_cap_are_refused():
    x, y, _ = records()
    with pytest.raises(BadInput, match="more than 4 records"):
        made(x, y, ["one"] * len(y))


def test_a_record_that_is_not_finite_is_left_out_of_its_persons_sum():
    x, y, persons = records()
    person = next(name for name in persons if persons.count(name) > 1)
    place = persons.index(person)
    broken = x.copy()
    broken[place] = np.nan
    rest = [i for i in range(len(y)) if i != place]
    found = made(broken, y, persons).open_bounded()
    without = made(x[rest], y[rest], [persons[i] for i in rest]).open_bounded()
    assert np.abs(found - without).max() <= 1


def lengths(rows, owners):
    return Written(torch.from_numpy(rows)).squares(owners).sqrt().numpy()


OF_ONE = Owners(torch.zeros(5, dtype=torch.int64), 1)
CANCELLING = np.array([[1e19], [600.0], [600.0], [600.0], [-1e19]], dtype=np.float32)
"""In this order doubles lose the small ones; in another they do not."""


def longest_sum() -> float:
    """Over all orders of adding."""
    orders = permutations(CANCELLING.astype(np.float64)[:, 0])
    return max(abs(np.cumsum(order)[-1]) for order in orders)


def test_gradients_that_cancel_are_never_longer_than_measured():
    assert longest_sum() <= lengths(CANCELLING, OF_ONE)[0]


def test_without_its_margin_it_would_be(monkeypatch):
    monkeypatch.setattr(network_gradients, "CANCELLED", 0.0)
    assert longest_sum() > lengths(CANCELLING, OF_ONE)[0] + 100


def test_outer_products_are_as_long_as_when_they_are_written_out():
    rng = np.random.default_rng(3)
    left, right = (torch.from_numpy(rng.normal(size=(9, n)).astype(np.float32)) for n in (4, 6))
    owners = Owners(torch.tensor([0, 0, 1, 2, 2, 2, 1, 3, 3]), 4)
    written = Written(torch.einsum("ri,rj->rij", left, right)).squares(owners)
    assert Outer(left, right).squares(owners).numpy() == pytest.approx(written.numpy(), rel=1e-6)
