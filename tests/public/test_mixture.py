"""The mixture: what it makes of noisy sums, and the pictures it draws."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.features.basis import Basis, triangle
from stillroom.public.mixture import (
    LEAST_VARIANCE,
    Mixture,
    class_means,
    covariances,
    first_centres,
    moved_centres,
    principal,
)
from stillroom.vocabulary import Sanitised

GRID = 1024
RNG = np.random.default_rng(1)


def sanitised(values):
    return Sanitised(np.rint(values).astype(np.int64).reshape(1, -1), ())


def a_mixture(**changed):
    rng = np.random.default_rng(2)
    parts = {
        "weights": np.array([[3.0, 1.0], [1.0, -5.0], [0.0, -2.0]]),
        "centres": rng.normal(size=(3, 2, 12)) + np.eye(12)[0] * 4,
        "directions": np.linalg.qr(rng.normal(size=(12, 4)))[0],
        "covariances": np.stack([np.diag([0.4, 0.3, 0.2, 0.1])] * 3),
        "basis": Basis(9, 8, 12),
    }
    return Mixture(**{**parts, **changed})


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


@pytest.mark.parametrize("options", [{}, {"sharpen": 0.5, "warp": 0.5}, {"scale": (0.5, 0.5)}])
def test_samples_are_pictures_and_repeat_themselves(options):
    pictures, classes = a_mixture().sample(5, 300, **options)
    assert pictures.shape == (300, 9, 8)
    assert pictures.dtype == np.float32
    assert 0 <= pictures.min() < pictures.max() <= 1
    assert set(classes) == {0, 1, 2}
    again, same = a_mixture().sample(5, 300, **options)
    assert np.array_equal(pictures, again)
    assert np.array_equal(classes, same)
    assert not np.array_equal(pictures, a_mixture().sample(6, 300, **options)[0])


def test_centres_are_drawn_by_weight_and_negative_ones_never():
    still = a_mixture(covariances=np.zeros((3, 4, 4)))
    pictures, classes = still.sample(7, 3000)
    first = np.clip(still.basis.inverse(still.centres[:, 0]), 0, 1)
    from_first = np.abs(pictures - first[classes]).max(axis=(1, 2)) < 1e-5
    assert from_first[classes == 1].all()
    # The seed is fixed, so these shares of 3/4 and 1/2 (no weight at all: even) are too.
    assert from_first[classes == 0].mean() == pytest.approx(3 / 4, abs=0.05)
    assert from_first[classes == 2].mean() == pytest.approx(1 / 2, abs=0.05)


def test_samples_spread_as_the_covariance_says():
    shape = np.array([[0.05, 0.02], [0.02, 0.03]])
    axes = np.eye(12)[:, [1, 5]]
    grey = np.zeros((3, 2, 12)) + np.eye(12)[0] * 0.5 * np.sqrt(72)  # nothing is cut off
    wide = a_mixture(centres=grey, directions=axes, covariances=np.stack([shape] * 3))
    pictures, _ = wide.sample(8, 20000, scale=(2.0, 2.0))
    along = pictures.reshape(len(pictures), -1) @ wide.basis.matrix.T @ axes
    assert np.cov(along.T) == pytest.approx(4 * shape, rel=0.05)


@pytest.mark.parametrize("wrong", [{"count": -1}, {"sharpen": 1.5}, {"warp": -0.1}])
def test_shares_out_of_range(wrong):
    with pytest.raises(BadInput, match="share"):
        a_mixture().sample(12, **{"count": 5, **wrong})


def test_no_samples_are_no_pictures():
    pictures, classes = a_mixture().sample(13, 0, sharpen=1.0, warp=1.0)
    assert (pictures.shape, classes.shape) == ((0, 9, 8), (0,))


def test_arrays_and_back():
    once = a_mixture()
    again = Mixture.of({name: array.copy() for name, array in once.arrays().items()})
    assert np.array_equal(once.sample(3, 20)[0], again.sample(3, 20)[0])
    assert again.basis == once.basis


@pytest.mark.parametrize(
    "broken",
    [
        {"weights": np.ones((3, 3))},
        {"centres": np.ones((3, 12))},
        {"centres": np.ones((3, 2, 11))},
        {"directions": np.ones((12, 5))},
        {"directions": np.ones(12)},
        {"directions": np.array(1.0)},
        {"covariances": np.full((3, 4, 4), np.nan)},
        {"weights": np.ones((0, 2)), "centres": np.ones((0, 2, 12))},
        {"basis": np.array([9, 8])},
        {"basis": np.array([9, 8, 73])},
        {"basis": np.array(["a", "b", "c"])},
        {"basis": None},
        {"weights": np.array(["a"])},
    ],
)
def test_arrays_that_are_no_mixture(broken):
    with pytest.raises(BadInput):
        Mixture.of({**a_mixture().arrays(), **broken})


def test_arrays_that_are_missing():
    with pytest.raises(BadInput, match="not a mixture"):
        Mixture.of({"basis": np.array([9, 8, 12])})
