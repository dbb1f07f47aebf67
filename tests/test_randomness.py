"""Draws that hide nothing depend on their seed and names, and on nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from stillroom.randomness import integers, normals, order, seeded_torch, uniforms

DRAWS = {
    "order": lambda *key: order(*key, size=64),
    "uniforms": lambda *key: uniforms(*key, size=(8, 8)),
    "normals": lambda *key: normals(*key, size=64),
    "integers": lambda *key: integers(*key, size=64, below=1000),
}


def weights(*key):
    with seeded_torch(*key):
        return torch.nn.Linear(8, 8).weight.detach().numpy().copy()


ALL = {**DRAWS, "torch": weights}


@pytest.mark.parametrize("draw", ALL.values(), ids=ALL)
def test_the_same_key_gives_the_same_draw_whatever_came_before(draw):
    first = draw(3, "a", 1)
    draw(4, "other")
    torch.rand(5)
    assert np.array_equal(draw(3, "a", 1), first)


@pytest.mark.parametrize("draw", ALL.values(), ids=ALL)
def test_every_part_of_the_key_counts(draw):
    keys = [(3,), (4,), (3, "a"), (3, "b"), (3, "a", "b"), (3, "ab"), (3, "a", 1), (3, "a", "1")]
    drawn = {draw(*key).tobytes() for key in [*keys, (3, "a,", "b"), (3, "a", ",b"), (-3,)]}
    assert len(drawn) == len(keys) + 3


def test_numpy_integers_are_names_like_any_other():
    assert np.array_equal(order(3, np.int64(2), size=9), order(3, 2, size=9))
    with pytest.raises(TypeError):
        order(3, 2.0, size=9)


@pytest.mark.parametrize("size", [5, (), (0,), (2, 3)])
def test_shapes_and_types(size):
    shape = (size,) if isinstance(size, int) else size
    assert np.shape(uniforms(1, size=size)) == shape
    assert np.shape(normals(1, size=size)) == shape
    assert np.shape(integers(1, size=size, below=3)) == shape
    assert uniforms(1, size=5).dtype == normals(1, size=5).dtype == np.float64
    assert integers(1, size=5, below=3).dtype == order(1, size=5).dtype == np.int64


def test_ranges():
    assert np.array_equal(np.sort(order(1, size=1000)), np.arange(1000))
    drawn = uniforms(1, size=10_000)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    # Ten cells of 1000 +- 30 each: seven standard deviations, false alarm below 1e-10.
    assert np.abs(np.histogram(drawn, bins=10, range=(0, 1))[0] - 1000).max() < 210
    assert np.array_equal(np.unique(integers(1, size=1000, below=7)), np.arange(7))
    z = normals(1, size=10_000)
    assert abs(z.mean()) < 0.07
    assert abs(z.std() - 1) < 0.05


def test_torch_itself_is_left_as_it_was():
    before = torch.get_rng_state()
    with pytest.raises(KeyError), seeded_torch(3):
        {}[torch.rand(4).numel()]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_known_draw_stays_what_it_is():
    """A recipe's results depend on it: changing the keys is a change of every recipe."""
    assert integers(0, "known", size=4, below=100).tolist() == [52, 22, 47, 17]


def test_importing_it_does_not_import_torch():
    code = "import sys, stillroom.randomness; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
