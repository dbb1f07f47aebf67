"""Scattering: fixed wavelets of mean zero whose energy falls, and shifts that hardly matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stillroom.data import digits
from stillroom.features.scattering import (
    MAPS,
    ORIENTATIONS,
    Scattering,
    gaussian_window,
    morlet_bank,
)


@pytest.fixture(scope="module")
def pictures():
    """Digits of 16x16 in the middle of 28x28, so that a shift loses nothing."""
    large = np.kron(digits().x[:40] / 16.0, np.ones((1, 2, 2)))
    return torch.from_numpy(np.pad(large, ((0, 0), (6, 6), (6, 6)))).float()[:, None]


def moved(pictures):
    return torch.roll(pictures, 1, dims=3)


def distance(a, b):
    """Between features, as a share of their length; the middle picture."""
    apart = torch.linalg.vector_norm((a - b).flatten(1), dim=1)
    return float((apart / torch.linalg.vector_norm(a.flatten(1), dim=1)).median())


def test_shapes():
    assert MAPS == 81
    assert Scattering()(torch.zeros(3, 1, 28, 28)).shape == (3, 81, 7, 7)
    assert Scattering(3)(torch.zeros(2, 3, 32, 32)).shape == (2, 243, 8, 8)
    assert Scattering()(torch.zeros(1, 1, 12, 16)).shape == (1, 81, 3, 4)


def test_filters_have_mean_zero_and_the_window_weighs_one():
    real, imaginary = morlet_bank()
    assert real.shape == imaginary.shape == (ORIENTATIONS, 1, 9, 9)
    for part in (real, imaginary):
        assert part.sum(dim=(1, 2, 3)).abs().max() < 1e-6
        assert part.abs().sum(dim=(1, 2, 3)).min() > 0.1
    assert float(gaussian_window().sum()) == pytest.approx(1, abs=1e-6)


def test_brightness_alone_has_no_wavelet_coefficients():
    maps = Scattering().maps(torch.full((1, 1, 28, 28), 0.7))
    assert maps[:, :1].mean() == pytest.approx(0.7, abs=1e-5)
    # All that is left is the floor under the root, a thousandth.
    assert maps[:, 1:].abs().max() < 1.1e-3


def test_each_order_carries_less_energy(pictures):
    """A map has a 16th of the picture's pixels, so energies are means over places."""
    maps = Scattering().maps(pictures).square().mean(dim=(0, 2, 3))
    whole = float(pictures.square().mean())
    first = maps[1 : 1 + ORIENTATIONS].sum()
    coarse = maps[1 + ORIENTATIONS : 1 + 2 * ORIENTATIONS].sum()
    second = maps[1 + 2 * ORIENTATIONS :].sum()
    assert 0 < second < first < whole
    assert second < coarse < whole
    assert float(maps.sum()) < whole


def test_a_shift_matters_less_than_in_pixels(pictures):
    network = Scattering()
    in_pixels = distance(pictures, moved(pictures))
    assert distance(network.maps(pictures), network.maps(moved(pictures))) < in_pixels / 2
    assert distance(network(pictures), network(moved(pictures))) < in_pixels


def test_the_twin_without_averaging_is_not_stable(pictures):
    """The same wavelets at full resolution, without the low-pass window."""
    network = Scattering()
    in_pixels = distance(pictures, moved(pictures))
    bare = [network._modulus(x) for x in (pictures, moved(pictures))]
    assert distance(*bare) > in_pixels / 2


def test_gradients_exist_and_are_finite(pictures):
    for given in (pictures[:2].clone(), torch.zeros(2, 1, 28, 28)):
        given.requires_grad_()
        Scattering()(given).square().sum().backward()
        assert torch.isfinite(given.grad).all()
    seen = pictures[:2].clone().requires_grad_()
    Scattering().maps(seen).sum().backward()
    assert seen.grad.abs().sum() > 0


def test_groups_are_normed_within_their_record(pictures):
    maps = Scattering()(pictures).reshape(len(pictures), 27, 3 * 49)
    assert maps.mean(dim=2).abs().max() < 1e-4
    assert maps.var(dim=2, unbiased=False).amax() < 1 + 1e-3
    alone = torch.cat([Scattering()(own[None]) for own in pictures])
    beside = Scattering()(torch.cat([pictures, 100 * pictures[:9].flip(2)]))[: len(pictures)]
    # In floating point up to rounding; to the bit is the extraction's own test.
    assert torch.allclose(alone, beside, atol=1e-3)


def test_a_twin_normed_over_the_batch_is_caught(pictures):
    def pooled(x):
        maps = Scattering().maps(x)
        return (maps - maps.mean()) / maps.std()

    alone = pooled(pictures)
    beside = pooled(torch.cat([pictures, 100 * pictures[:9].flip(2)]))[: len(pictures)]
    assert not torch.allclose(alone, beside, atol=1e-3)
