"""One record more or less moves the other records' gradients by next to nothing, even at kinks.

Matrix kernels go by the number of rows, and their last bits with them. At a kink of the network
(a ReLU's corner, a tie of a max pool) the last bit decides which way a gradient turns.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from private.kinks import ROWS, at_kinks
from stillroom.models import ZOO, build
from stillroom.models.flat_weights import flatten
from stillroom.private.network_clip import NetworkClip
from stillroom.private.networks import NetworkRecords
from stillroom.vocabulary import SecretSample

CLASSES = 10
CLIP = NetworkClip(Fraction(1, 100))
"""Shorter than any gradient here, so that every record weighs as much as it may."""
MOST = 1e-3
"""Of the clip, for all other records together; 5e-3 are declared for it."""
SHAPES = {
    "mlp": (1, 28, 28),
    "conv-large": (1, 4, 4),
    "conv-middle": (1, 4, 4),
    "tanh-cnn": (1, 14, 14),
    **dict.fromkeys(("mnist-net", "cifar-net", "svhn-net"), (1, 12, 12)),
}
WIDE = ("conv-large", "conv-middle")


def shape_of(name):
    return SHAPES.get(name, (1, 8, 8))


def couples_records(name):
    """Whether it has norms over the batch or draws of its own, which private training refuses."""
    coupling = (nn.BatchNorm2d, nn.Dropout)
    return any(isinstance(m, coupling) for m in ZOO[name](shape_of(name), CLASSES).modules())


@cache
def kinked(name):
    """The network, and pairs of records at its kinks; slow to make, and never changed."""
    network = build(name, shape_of(name), CLASSES, seed=0)
    if name in WIDE:
        # Their widest layers take seconds; the gradients of all others pass through them still.
        for weight in network.parameters():
            weight.requires_grad_(weight.numel() < 50_000)
    return network, *at_kinks(network, shape_of(name), ROWS + 3)


PRIVATE = [name for name in ZOO if not couples_records(name)]


class Sums:
    """Clipped sums of any of the records, in clips."""

    def __init__(self, network, x, *, ghost, kind=NetworkRecords, **more):
        labels = np.arange(len(x)) % CLASSES
        self.records = kind(x, labels, CLASSES, network, ghost=ghost, **more)
        self._weights = flatten(network)

    def __call__(self, places):
        sample = SecretSample(Fraction(1, 2), lambda size: np.isin(np.arange(size), places))
        bounded = self.records.clipped_sum(self._weights, CLIP, sample, step=1)
        return bounded.open_bounded()[0]

    def moved(self, size, gone):
        """How far the whole sum moves without one record, and how far the others' part of it."""
        everyone = np.arange(size)
        whole = self(everyone) - self(np.delete(everyone, gone))
        return whole, np.linalg.norm((whole - self([gone])) / CLIP.steps)


def squared(integers):
    return int((integers.astype(object) ** 2).sum())


def check(sums, sizes):
    for size in sizes:
        # Without the first, every other record moves up by a row.
        for gone in (0, size - 1):
            whole, others = sums.moved(size, gone)
            assert others < MOST, (size, gone)
            assert (0.99 * CLIP.steps) ** 2 < squared(whole) <= CLIP.squared_norm, (size, gone)


def test_these_are_the_networks_that_may_be_trained_privately():
    assert len(PRIVATE) >= 9
    assert set(WIDE) <= set(PRIVATE)


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("name", PRIVATE)
def test_the_others_stay_where_they_are(name, ghost):
    """Measured: 4.3e-5 clips at most, which is the rounding of the grid."""
    network, x, _ = kinked(name)
    small = sum(weight.numel() for weight in network.parameters()) < 100_000
    many = small and name != "resnet-small"  # the slowest; its long sums are tested too
    check(Sums(network, x, ghost=ghost), [ROWS, ROWS + 1, ROWS + 3] if many else [ROWS + 1])


@pytest.mark.slow
@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("name", PRIVATE)
def test_the_others_stay_where_they_are_in_long_sums(name, ghost):
    network = build(name, shape_of(name), CLASSES, seed=1)
    many = name not in WIDE
    x, _ = at_kinks(network, shape_of(name), 4 * ROWS + 2 if many else ROWS + 1, seed=1)
    border = [k * ROWS + i for k in (1, 2, 4) for i in (-1, 0, 1, 2)]
    check(Sums(network, x, ghost=ghost), border if many else [ROWS + 1])
    if many:
        check(Sums(network, x, ghost=ghost, chunk=2 * ROWS), [2 * ROWS + 1, 4 * ROWS])


class ShortLastChunk(NetworkRecords):
    """A twin in which a chunk that is not full has a kernel of its own, one float off."""

    beyond: torch.Tensor

    def _filled_sum(self, places, clip, step):
        within = self._x
        if len(places) < self._chunk:
            self._x = self.beyond
        try:
            return super()._filled_sum(places, clip, step)
        finally:
            self._x = within


def test_a_chunk_that_gets_shorter_breaks_the_bound():
    """63 copies of a record, each one float beyond its kink, once the last chunk is short."""
    network, here, there = kinked("student-10k")
    assert (here - there).abs().max() <= 2**-24
    moved = []
    for within, beyond in zip(here[:4], there[:4], strict=True):
        x = within.expand(2 * ROWS, *within.shape)
        kept, broken = (
            Sums(network, x, ghost=False, kind=kind) for kind in (NetworkRecords, ShortLastChunk)
        )
        broken.records.beyond = beyond.expand(2 * ROWS, *within.shape)
        whole, _ = kept.moved(2 * ROWS, 2 * ROWS - 1)
        assert squared(whole) <= CLIP.squared_norm
        moved.append(squared(broken.moved(2 * ROWS, 2 * ROWS - 1)[0]))
    assert max(moved) > CLIP.squared_norm
