"""Maps between weights and latents: orthonormal, each model by itself."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.parameters import Directions, GroupedWeights, KeptWeights, latent_map

RNG = np.random.default_rng(5)
BASIS = np.linalg.qr(RNG.normal(size=(9, 4)))[0].T.astype(np.float32)
MAPS = [
    KeptWeights(9, np.array([0, 3, 8])),
    GroupedWeights(np.array([0, 0, 1, 1, 1, -1, 2, 2, -1])),
    GroupedWeights(np.array([0, 1, 0, 1, 0, 1, 0, 1, 1]), 1 - 2 * (np.arange(9) % 2)),
    Directions(BASIS),
]


@pytest.mark.parametrize("latents", MAPS)
def test_latents_come_back_and_are_no_longer_than_weights(latents):
    z = RNG.normal(size=latents.latents)
    spread = latents.spread(z)
    assert spread.shape == (latents.size,)
    assert latents.of(spread) == pytest.approx(z, abs=1e-6)
    assert np.linalg.norm(spread) == pytest.approx(np.linalg.norm(z), abs=1e-6)
    difference = RNG.normal(size=9)
    assert np.linalg.norm(latents.of(difference)) <= np.linalg.norm(difference) + 1e-9


@pytest.mark.parametrize("latents", MAPS)
def test_a_digest_tells_maps_apart(latents):
    assert len({one.digest for one in MAPS}) == len(MAPS)
    assert len(latents.digest) == 32


def test_groups_move_by_their_mean():
    grouped = MAPS[1]
    difference = np.arange(9.0)
    moved = grouped.spread(grouped.of(difference))
    assert moved.tolist() == pytest.approx([0.5, 0.5, 3, 3, 3, 0, 6.5, 6.5, 0], abs=1e-6)


def test_large_models_are_projected_in_parts(monkeypatch):
    whole = Directions(BASIS).of(np.arange(9.0))
    monkeypatch.setattr(latent_map, "TOGETHER", 2)
    assert Directions(BASIS).of(np.arange(9.0)) == pytest.approx(whole)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupedWeights(np.array([0, 2, 2])),
        lambda: GroupedWeights(np.array([-1, -1])),
        lambda: GroupedWeights(np.array([0, 0]), np.array([1, 0])),
        lambda: GroupedWeights(np.array([0, 0]), np.array([1])),
        lambda: Directions(2 * BASIS),
        lambda: Directions(BASIS.T),
        lambda: Directions(np.zeros((0, 3), dtype=np.float32)),
    ],
)
def test_what_is_no_map(make):
    with pytest.raises(BadInput):
        make()
