"""K-means of numbers finds what a slow reference finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from stillroom.public.k_means import centroids
from stillroom.randomness import normals, uniforms

N = normals(2, "values", size=3000)
KINDS = {
    "normal": N,
    "heavy tails": np.sign(N) * np.exp(2 * np.abs(N)),
    "two heaps": np.where(uniforms(2, "heap", size=3000) < 0.5, 0.3 * N + 2, N - 2),
    "few": N[:60],
    "on a grid": np.round(4 * N) / 4,
}


def left(values, centres):
    """The sum of squared distances to the nearest centroid."""
    return (np.abs(values[:, None] - centres[None].astype(np.float64)).min(axis=1) ** 2).sum()


@pytest.mark.parametrize("count", [2, 4, 16, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_no_worse_than_a_reference(kind, count):
    values = KINDS[kind].astype(np.float32)
    found = centroids(values, count)
    assert found.dtype == np.float32
    assert (np.diff(found) > 0).all()
    if len(np.unique(values)) <= count:
        assert np.array_equal(found, np.unique(values))
        return
    assert len(found) == count
    rows = values.astype(np.float64)[:, None]
    reference = KMeans(count, n_init=2, random_state=0).fit(rows).inertia_
    # Both end at a local optimum; the reference itself varies by this much with its start.
    assert left(values, found) <= 1.15 * reference + 1e-6


@settings(max_examples=40)
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=60), st.integers(1, 20))
def test_every_centroid_is_the_mean_of_its_numbers(values, count):
    numbers = np.array(values, dtype=np.float32)
    found = centroids(numbers, count)
    assert 1 <= len(found) <= count
    nearest = np.abs(numbers[:, None].astype(np.float64) - found[None]).argmin(axis=1)
    for place, centre in enumerate(found):
        own = numbers[nearest == place].astype(np.float64)
        # Rounded to float32 a centroid can lose a number that lies halfway to the next.
        if len(found) == 1:
            assert centre == pytest.approx(own.mean(), rel=1e-6, abs=1e-6)
        assert not len(own) or own.min() - 1e-5 <= centre <= own.max() + 1e-5


def test_order_does_not_matter_and_many_numbers_are_no_matter():
    values = normals(3, "many", size=300_000).astype(np.float32)
    found = centroids(values, 256)
    assert len(found) == 256
    assert np.array_equal(found, centroids(values[::-1].copy(), 256))
    # Panter and Dite 1951: the least mean square of normal numbers is sqrt(3) pi / 2 / 256^2.
    edges = (found[1:].astype(np.float64) + found[:-1]) / 2
    error = values - found[np.searchsorted(edges, values)].astype(np.float64)
    assert (error**2).mean() <= 1.1 * np.sqrt(3) * np.pi / 2 / 256**2


def test_no_numbers_have_no_centroids():
    assert len(centroids(np.zeros(0, np.float32), 4)) == 0
