"""Latents chosen in public: as many as asked for, whatever the weights are."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public.latent_fits import (
    alike_weights,
    directions_of_runs,
    kept_weights,
    random_groups,
)

RNG = np.random.default_rng(2)
LAYERS = [slice(0, 40), slice(40, 43), slice(43, 60)]


def groups_of(latents):
    """Which weights move together."""
    found = [latents.spread(row) != 0 for row in np.eye(latents.latents)]
    return np.array(found)


@pytest.mark.parametrize("count", [3, 10, 41, 60])
@pytest.mark.parametrize("weights", [RNG.normal(size=60), np.zeros(60), RNG.integers(0, 2, 60)])
def test_groups_of_a_layer_are_of_one_layer_and_cover_it(weights, count):
    latents = alike_weights(weights.astype(np.float32), LAYERS, count)
    members = groups_of(latents)
    assert latents.latents == count
    assert (members.sum(axis=0) == 1).all()
    for own in members:
        assert sum(own[layer].any() for layer in LAYERS) == 1


def test_weights_that_are_alike_move_together():
    weights = np.array([5, -5, 5.1, -5.1, 0, 0.1], dtype=np.float32)
    members = groups_of(alike_weights(weights, [slice(0, 6)], 3))
    together = {tuple(np.flatnonzero(own)) for own in members}
    assert together == {(0, 2), (1, 3), (4, 5)}


def test_pruned_weights_stay():
    kept = np.arange(60) % 2 == 0
    members = groups_of(alike_weights(RNG.normal(size=60).astype(np.float32), LAYERS, 6, kept))
    assert np.array_equal(members.any(axis=0), kept)
    assert np.array_equal(groups_of(kept_weights(kept)).any(axis=0), kept)


@pytest.mark.parametrize("count", [2, 61])
def test_groups_that_cannot_be(count):
    with pytest.raises(BadInput, match="groups"):
        alike_weights(np.zeros(60, dtype=np.float32), LAYERS, count)


def test_random_groups_are_even_and_repeatable():
    latents = random_groups(100, 7, seed=3)
    members = groups_of(latents)
    assert sorted(members.sum(axis=1)) == [14] * 5 + [15] * 2
    assert latents.digest == random_groups(100, 7, seed=3).digest != random_groups(100, 7, 4).digest
    signs = np.sign(latents.spread(np.ones(7)))
    assert {-1.0, 1.0} == set(signs.tolist())
    with pytest.raises(BadInput):
        random_groups(5, 6, seed=0)


def test_directions_are_those_of_the_runs():
    axes = np.linalg.qr(RNG.normal(size=(30, 3)))[0].T
    runs = RNG.normal(size=(8, 3)) * [9.0, 3.0, 0.0] @ axes + 1e-4 * RNG.normal(size=(8, 30))
    found = directions_of_runs(runs, 2)
    assert [abs(float(found.of(axis)[0])) for axis in axes] == pytest.approx([1, 0, 0], abs=0.3)
    assert np.linalg.norm(found.of(axes[1])) == pytest.approx(1, abs=0.01)
    assert np.linalg.norm(found.of(axes[2])) < 0.01


@pytest.mark.parametrize(
    ("runs", "said"),
    [(np.ones((2, 9)), "2 public trainings"), (np.ones((4, 9)), "fewer than 3 directions")],
)
def test_too_few_directions(runs, said):
    with pytest.raises(BadInput, match=said):
        directions_of_runs(runs, 3)
