"""What is made of noisy sums: means, directions, centres and covariances."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.features.basis import triangle
from stillroom.public.mixture import LEAST_VARIANCE
from stillroom.public.mixture_fit import (
    beyond,
    class_means,
    covariances,
    first_centres,
    moved_centres,
    principal,
    shrunk_means,
    whitened_covariances,
    whitening,
)
from stillroom.vocabulary import Sanitised

GRID = 1024
RNG = np.random.default_rng(1)


def sanitised(values):
    return Sanitised(np.rint(values).astype(np.int64).reshape(1, -1), ())


def test_means_and_counts_come_back():
    true = RNG.normal(size=(3, 5))
    table = np.concatenate([true * 50, np.full((3, 1), 10.0 * 50)], axis=1) * GRID
    counts, means = class_means(sanitised(table), 3, radius=10.0, grid=GRID, sigma=3.0)
    assert counts == pytest.approx([50] * 3)
    assert means == pytest.approx(true, abs=1e-3)


def test_a_class_that_is_all_noise_keeps_within_the_radius():
    table = np.array([[9e6, -9e6, 3.0], [9e6, 9e6, -40.0]])
    counts, means = class_means(sanitised(table), 2, radius=10.0, grid=GRID, sigma=1e4)
    assert np.linalg.norm(means, axis=1).max() <= 10.0001
    assert counts[1] < 0


def test_the_largest_directions_come_back():
    axes = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    moment = (axes * [5, 3, 1, 0.5, 0.1, 0]) @ axes.T * 100
    noisy = sanitised(triangle(np.rint(moment * GRID**2).astype(np.int64)))
    variances, found = principal(noisy, 3, records=100.0, grid=GRID)
    assert variances == pytest.approx([5, 3, 1], abs=1e-3)
    assert np.abs(found.T @ axes[:, :3]) == pytest.approx(np.eye(3), abs=1e-3)
    assert (found[np.abs(found).argmax(axis=0), range(3)] > 0).all()


def test_variances_that_noise_made_negative_are_floored():
    noisy = sanitised(triangle(-np.eye(4, dtype=np.int64) * GRID**2))
    assert principal(noisy, 2, records=-7.0, grid=GRID)[0].tolist() == [LEAST_VARIANCE] * 2


def test_first_centres_are_as_wide_as_the_classes():
    centres = first_centres(3, 200, 50, np.array([4.0, 0.01]))
    assert centres.shape == (200, 50, 2)
    assert centres.std(axis=(0, 1)) == pytest.approx([2, 0.1], rel=0.05)
    assert np.array_equal(centres, first_centres(3, 200, 50, np.array([4.0, 0.01])))


def test_centres_move_shrink_and_stay():
    old = np.full((1, 2, 2), 9.0)
    table = np.array([[[2 * 1000, 1 * 1000, 6 * 1000], [500, 500, 6 * 3]]]) * GRID
    weights, places = moved_centres(
        sanitised(table), old, np.array([1.0, 0.01]), radius=6.0, grid=GRID, sigma=100.0 * GRID
    )
    assert weights[0] == pytest.approx([1000, 3])
    noise = 0.1**2
    assert places[0, 0] == pytest.approx([2 / (1 + noise), 0.01 / (0.01 + noise)])
    assert places[0, 1].tolist() == [9, 9]  # a count of 3 with a noise of 17 says nothing


def test_negative_counts_have_no_weight():
    weights, _ = moved_centres(
        sanitised([0, 0, -900]), np.zeros((1, 1, 2)), np.ones(2), radius=6.0, grid=1, sigma=5.0
    )
    assert weights.tolist() == [[0.0]]


def noisy_moments(true, counts, sigma):
    """The triangles of the classes' moments with Gaussian noise of the gate's size."""
    exact = triangle(np.rint(true * counts[:, None, None] * GRID**2).astype(np.int64))
    return sanitised(exact + sigma * np.random.default_rng(4).normal(size=exact.shape))


def test_covariances_come_back_without_noise():
    true = np.stack([np.diag([3.0, 1.0, 0.5]), np.diag([0.2, 2.0, 1.0])])
    got = covariances(noisy_moments(true, np.array([50.0, 80.0]), 0), np.array([50.0, 80.0]),
                      grid=GRID, sigma=1e-9)  # fmt: skip
    assert got == pytest.approx(true, abs=1e-3)


def test_covariances_are_drawn_to_the_pooled_one_as_far_as_noise_explains():
    counts = np.full(10, 1000.0)
    same = np.stack([np.diag(np.linspace(1, 2, 8))] * 10)
    sigma = 300.0 * 29 * GRID**2
    noisy = noisy_moments(same, counts, sigma)
    shrunk = covariances(noisy, counts, grid=GRID, sigma=sigma)
    # The twin believes there is no noise, and shrinks nothing.
    twin = covariances(noisy, counts, grid=GRID, sigma=1e-9)
    assert ((shrunk - same) ** 2).sum() < ((twin - same) ** 2).sum() / 4
    assert np.linalg.eigvalsh(shrunk).min() >= LEAST_VARIANCE * 0.99


def test_no_variance_is_below_the_floor():
    got = covariances(sanitised(np.full((2, 6), -9e6)), np.array([0.0, -3.0]), grid=1, sigma=1.0)
    assert np.linalg.eigvalsh(got).min() >= LEAST_VARIANCE * 0.99


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_whitening_keeps_factors_below_one_and_says_the_length(power):
    variances = np.array([9.0, 4.0, 0.25])
    factors, length = whitening(variances, power)
    assert factors.max() == 1
    drawn = np.random.default_rng(6).normal(size=(50_000, 3)) * np.sqrt(variances) * factors
    assert np.mean((drawn**2).sum(axis=1)) == pytest.approx(length**2, rel=0.02)
    lengths = variances * factors**2
    assert lengths.max() / lengths.min() == pytest.approx(36 ** (1 - power))


def whitened(true, between, counts, sigma, seed=7):
    """Noisy whitened moments of classes with these covariances around two centres each."""
    variances = np.diag(true.mean(axis=0)) + between**2
    factors, length = whitening(variances, 1.0)
    scale = np.outer(factors, factors) / length**2
    exact = triangle(np.rint(true * scale * counts[:, None, None] * GRID**2).astype(np.int64))
    noise = np.random.default_rng(seed).normal(size=exact.shape) * sigma
    centres = np.stack([np.stack([between, -between])] * len(true))
    return sanitised(exact + noise), counts, counts[:, None] / [[2.0, 2.0]], centres, variances


def test_whitened_covariances_come_back_without_noise():
    true = np.stack([np.diag([3.0, 0.1, 0.5]), np.diag([1.0, 0.3, 1.5])])
    true[:, 0, 1] = true[:, 1, 0] = [0.2, -0.2]
    given = whitened(true, np.array([0.5, 0.0, 0.1]), np.array([5e5, 5e5]), 0)
    assert whitened_covariances(*given, grid=GRID, sigma=1e-9) == pytest.approx(true, rel=1e-2)


def test_whitened_covariances_are_drawn_to_the_pooled_one_and_never_flat():
    same = np.stack([np.diag(np.linspace(0.1, 4, 8))] * 10)
    sigma = 20.0 * 29 * GRID**2
    given = whitened(same, np.zeros(8), np.full(10, 1000.0), sigma)
    apart = np.abs(whitened_covariances(*given, grid=GRID, sigma=sigma) - same).max()
    # The twin believes there is no noise.
    twin = np.abs(whitened_covariances(*given, grid=GRID, sigma=1e-9) - same).max()
    assert apart < twin / 4
    for values in (-9e12, 9e12):
        wild = (sanitised(np.full((10, 36), values)), *given[1:])
        got = whitened_covariances(*wild, grid=GRID, sigma=sigma)
        assert np.isfinite(got).all()
        assert np.linalg.eigvalsh(got).min() > 0


def test_means_are_drawn_together_where_noise_explains_how_they_differ():
    rng = np.random.default_rng(9)
    true = np.zeros((10, 200))
    true[:, :5] = rng.normal(size=(10, 5)) * 3
    noisy = true + 1 + rng.normal(size=true.shape) * 0.2
    got = shrunk_means(noisy, np.full(10, 50.0), grid=2, sigma=20.0)
    assert got[:, :5] == pytest.approx(noisy[:, :5], abs=0.2)
    assert ((got - true - 1)[:, 5:] ** 2).sum() < ((noisy - true - 1)[:, 5:] ** 2).sum() / 3


def test_the_other_directions_come_back():
    axes = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    moment = (axes * [5, 3, 1, 0.5, 0.1, -2]) @ axes.T * 100
    noisy = sanitised(triangle(np.rint(moment * GRID**2).astype(np.int64)))
    others = beyond(noisy, 3, records=100.0, grid=GRID)
    assert others.shape == (6, 2)
    assert others @ others.T == pytest.approx(
        (axes[:, 3:5] * [0.5, 0.1]) @ axes[:, 3:5].T, abs=1e-3
    )
