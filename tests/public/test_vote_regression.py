"""Regression of noisy votes: what no answer tells alone, all of them tell together."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public.neighbour_graph import neighbour_graph, smoothed, with_masses
from stillroom.public.vote_regression import NoisyShares, regressed, single_queries
from stillroom.randomness import normals, order

TRUTH = np.repeat(np.arange(4), 100)


def clusters():
    """Four clusters of 100 samples each, of norm 1, one after the other."""
    rows = np.repeat(5.0 * np.eye(4, 8), 100, axis=0) + normals(1, "rows", size=(400, 8))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def votes(queries=400, noise=1.5):
    places = order(2, "places", size=400)[:queries]
    shares = 0.7 * np.eye(4)[TRUTH[places]] + 0.075
    shares = shares + noise * normals(2, "noise", size=shares.shape)
    return NoisyShares(shares, noise, single_queries(places, 400))


def test_answers_that_noise_has_drowned_label_all_samples_together():
    rows, asked = clusters(), votes()
    alone = asked.shares[asked.asked].argmax(axis=1)
    found = regressed(neighbour_graph(rows, 10), rows, asked)
    assert (alone == TRUTH).mean() < 0.5
    assert (found.argmax(axis=1) == TRUTH).mean() > 0.95
    assert np.allclose(found.sum(axis=1), 1)
    assert np.allclose(found.mean(axis=0), 0.25, atol=1e-6)


def test_it_is_ridge_regression_of_smoothed_rows():
    rows, asked = clusters(), votes(queries=50, noise=0.2)
    graph = neighbour_graph(rows, 5)
    smooth = smoothed(graph, rows, 2)
    smooth /= np.linalg.norm(smooth, axis=1, keepdims=True)
    seen = np.stack([smooth[asked.asked == query][0] for query in range(50)])
    kernel = seen @ seen.T + 0.2**2 / 0.5 * np.eye(50)
    dual = smooth @ seen.T @ np.linalg.solve(kernel, asked.shares - 0.25)
    found = regressed(graph, rows, asked, rounds=2, signal=0.5)
    assert np.allclose(found, with_masses(np.maximum(0.25 + dual, 1e-3)), atol=1e-4)


def test_a_group_is_seen_as_its_mean():
    rows = np.arange(10.0).reshape(5, 2)
    asked = NoisyShares(np.full((2, 3), 1 / 3), 1.0, np.array([1, 0, -1, 1, 1]))
    assert np.allclose(asked.means(rows), [rows[1], rows[[0, 3, 4]].mean(axis=0)])


def test_a_prior_moves_the_masses():
    rows = clusters()
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    found = regressed(neighbour_graph(rows, 10), rows, votes(noise=0.5), prior=prior)
    assert np.allclose(found.mean(axis=0), prior, atol=1e-6)


@pytest.mark.parametrize(
    ("shares", "noise", "asked", "said"),
    [
        (np.full((2, 3), np.nan), 1.0, [0, 1], "finite"),
        (np.zeros(2), 1.0, [0, 1], "rows of finite"),
        (np.zeros((2, 3)), 0.0, [0, 1], "above 0"),
        (np.zeros((2, 3)), float("nan"), [0, 1], "above 0"),
        (np.zeros((2, 3)), 1.0, [0, 0], "exactly the 2 queries"),
        (np.zeros((2, 3)), 1.0, [0, 1, 2], "exactly the 2 queries"),
        (np.zeros((2, 3)), 1.0, [0, 1, -2], "exactly the 2 queries"),
    ],
)
def test_votes_that_cannot_be_are_refused(shares, noise, asked, said):
    with pytest.raises(BadInput, match=said):
        NoisyShares(shares, noise, np.array(asked))


def test_votes_of_other_pictures_are_refused():
    rows = clusters()
    with pytest.raises(BadInput, match="399 rows of features and 400 pictures"):
        regressed(neighbour_graph(rows, 10), rows[1:], votes())
