"""Graphs of neighbours: the true nearest ones, in any chunks, and labels that go along edges."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public import neighbour_graph as module
from stillroom.public.neighbour_graph import (
    nearest,
    neighbour_graph,
    smoothed,
    spread,
    with_masses,
)
from stillroom.randomness import normals


def clusters(each=30, count=4, apart=20.0):
    """Well apart, of `each` samples, one after the other."""
    centres = apart * np.eye(count, 6)
    return np.repeat(centres, each, axis=0) + normals(1, "clusters", size=(each * count, 6))


def test_the_nearest_are_those_of_all_distances():
    rows = normals(2, "rows", size=(90, 5))
    places, apart = nearest(rows, 7)
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    assert np.array_equal(places, np.argsort(distances, axis=1)[:, :7])
    assert np.allclose(apart, np.sort(distances, axis=1)[:, :7], atol=1e-4)


@pytest.mark.parametrize("cells", [1, 500, 90 * 90])
def test_chunks_change_nothing_and_progress_ends_at_the_end(monkeypatch, cells):
    rows, told = normals(2, "rows", size=(90, 5)), []
    whole, _ = nearest(rows, 4)
    monkeypatch.setattr(module, "CELLS", cells)
    places, _ = nearest(rows, 4, on_step=lambda *step: told.append(step))
    assert np.array_equal(places, whole)
    assert told[-1] == (90, 90)
    assert len(told) == -(-90 // max(1, cells // 90))


def test_a_large_offset_of_all_samples_does_not_blur_distances():
    rows = normals(2, "rows", size=(90, 5))
    assert np.array_equal(nearest(rows, 3)[0], nearest(rows + 3000.0, 3)[0])


def test_equal_samples_are_neighbours_of_weight_one():
    graph = neighbour_graph(np.zeros((6, 2)), 2)
    assert np.isfinite(graph.data).all()
    assert set(graph.data.tolist()) == {1.0}
    assert graph.diagonal().sum() == 0


def test_the_graph_is_symmetric_and_the_same_again():
    graph = neighbour_graph(clusters(), 5)
    assert abs(graph - graph.T).max() == 0
    assert abs(graph - neighbour_graph(clusters(), 5)).max() == 0


@pytest.mark.parametrize(
    ("rows", "neighbours"),
    [
        (np.zeros((5, 2)), 5),
        (np.zeros((5, 2)), 0),
        (np.zeros(5), 1),
        (np.full((5, 2), np.nan), 1),
        (np.array([["a"], ["b"]]), 1),
    ],
)
def test_what_has_no_neighbours_is_refused(rows, neighbours):
    with pytest.raises(BadInput, match=r"neighbours each|rows of finite numbers"):
        nearest(rows, neighbours)


def test_one_label_per_cluster_labels_all_of_it():
    labels = np.zeros((120, 4))
    labels[[3, 40, 70, 100]] = np.eye(4) - 0.25
    found = spread(neighbour_graph(clusters(), 5), labels, alpha=0.9)
    assert np.array_equal(found.argmax(axis=1), np.repeat(np.arange(4), 30))
    assert np.allclose(found.sum(axis=1), 1)


def test_many_labels_outvote_a_wrong_one():
    labels = np.repeat(np.eye(4), 30, axis=0) - 0.25
    labels[5] = [-0.25, 0.75, -0.25, -0.25]
    found = spread(neighbour_graph(clusters(), 5), labels, alpha=0.9)
    assert found[5].argmax() == 0


def test_spreading_solves_its_equation():
    graph = neighbour_graph(clusters(each=8), 3).toarray().astype(np.float64)
    labels = np.abs(normals(3, "labels", size=(32, 4)))
    roots = np.sqrt(graph.sum(axis=1))
    walk = graph / roots[:, None] / roots[None]
    solved = np.linalg.solve(np.eye(32) - 0.7 * walk, 0.3 * labels)
    found = spread(neighbour_graph(clusters(each=8), 3), labels, alpha=0.7)
    assert np.allclose(found, with_masses(solved), atol=1e-5)


def test_masses_follow_the_prior():
    shares = np.abs(normals(4, "shares", size=(200, 3))) + np.array([2.0, 0.1, 0.1])
    for prior in (np.array([0.5, 0.3, 0.2]), np.array([5.0, 3.0, 2.0])):
        assert np.allclose(with_masses(shares, prior).mean(axis=0), [0.5, 0.3, 0.2], atol=1e-6)
    assert np.allclose(with_masses(shares).mean(axis=0), 1 / 3, atol=1e-6)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [1.0, 0.0, 0.0], [np.nan, 1, 1], [np.inf, 1, 1]])
def test_a_prior_that_cannot_be_is_refused(prior):
    with pytest.raises(BadInput, match="masses of the classes"):
        with_masses(np.ones((4, 3)), np.array(prior))


@pytest.mark.parametrize(
    ("labels", "alpha", "said"),
    [
        (np.zeros((120, 3)), 1.0, "alpha in"),
        (np.zeros((120, 3)), -0.1, "alpha in"),
        (np.full((120, 3), np.nan), 0.5, "finite"),
        (np.zeros((119, 3)), 0.5, "do not belong"),
        (np.zeros(120), 0.5, "do not belong"),
    ],
)
def test_labels_that_cannot_spread_are_refused(labels, alpha, said):
    with pytest.raises(BadInput, match=said):
        spread(neighbour_graph(clusters(), 5), labels, alpha=alpha)


def test_one_teachers_smoothed_scores_are_the_same_in_any_company():
    graph, scores = neighbour_graph(clusters(), 5), normals(5, "scores", size=(120, 7, 4))
    together = smoothed(graph, scores, rounds=3)
    other = scores.copy()
    other[:, [0, 1, 2, 3, 5, 6]] = np.nan
    assert together.shape == scores.shape
    assert np.array_equal(together[:, 4], smoothed(graph, other, rounds=3)[:, 4])
    assert np.array_equal(together[:, 4], smoothed(graph, scores[:, 4], rounds=3))


def test_smoothing_repairs_single_mistakes_and_no_round_changes_nothing():
    graph, truth = neighbour_graph(clusters(), 5), np.repeat(np.arange(4), 30)
    scores = np.eye(4)[truth]
    scores[::10] = 0.4 * np.roll(scores[::10], 1, axis=1)
    assert (smoothed(graph, scores, rounds=2).argmax(axis=1) == truth).all()
    assert np.array_equal(smoothed(graph, scores, rounds=0), scores.astype(np.float32))
    with pytest.raises(BadInput, match="do not belong"):
        smoothed(graph, scores[1:])
