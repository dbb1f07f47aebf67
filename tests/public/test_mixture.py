"""The mixture: what it makes of noisy sums, and the pictures it draws."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.features.basis import Basis
from stillroom.public.mixture import Mixture


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
        {"outside": np.ones((11, 3))},
        {"outside": np.array(1.0)},
        {"outside": np.full((12, 3), np.inf)},
        {"basis": np.array([9, 8, 12])},
        {"basis": np.array([9, 8, 73, 0])},
        {"basis": np.array(["a", "b", "c", "d"])},
        {"basis": None},
        {"weights": np.array(["a"])},
    ],
)
def test_arrays_that_are_no_mixture(broken):
    with pytest.raises(BadInput):
        Mixture.of({**a_mixture().arrays(), **broken})


def test_arrays_that_are_missing():
    with pytest.raises(BadInput, match="not a mixture"):
        Mixture.of({"basis": np.array([9, 8, 12, 0])})


def test_samples_in_colour():
    colour = a_mixture(basis=Basis(9, 8, 12, chroma=3))
    pictures, _ = Mixture.of(colour.arrays()).sample(3, 20, sharpen=0.5, warp=0.5)
    assert pictures.shape == (20, 9, 8, 3)
    assert np.ptp(pictures, axis=3).max() > 0.01


def test_samples_spread_outside_the_directions_too():
    grey = np.zeros((3, 2, 12)) + np.eye(12)[0] * 0.5 * np.sqrt(72)
    outside = np.eye(12)[:, [7, 9]] * [0.1, 0.3]
    wide = a_mixture(centres=grey, directions=np.eye(12)[:, 1:5], outside=outside)
    pictures, _ = Mixture.of(wide.arrays()).sample(8, 6000)
    along = pictures.reshape(len(pictures), -1) @ wide.basis.matrix.T
    assert along[:, [6, 7, 9]].std(axis=0) == pytest.approx([0, 0.1, 0.3], rel=0.05, abs=0.02)
