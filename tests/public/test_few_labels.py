"""A student of few labels: what is spread, learnt and said again, on the built-in digits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from stillroom.errors import BadInput
from stillroom.models.augmentation import Views
from stillroom.public.few_labels import (
    FewLabels,
    joined_features,
    label_rows,
    learn,
    network_says,
    relabelled,
    single_queries,
    train_on_shares,
)
from stillroom.public.neighbour_graph import neighbour_graph, spread
from stillroom.randomness import normals, order

PLAN = FewLabels(views=Views(shift=0.05), epochs=2, batch=32, learning_rate=0.01, start_seed=3)


@cache
def digits():
    """1200 pictures to learn from and 597 to be tested on, with features of norm 1."""
    x, y = load_digits(return_X_y=True)
    mixed = order(1, "digits", size=len(x))
    x, y = x[mixed], y[mixed]
    rows = x - x.mean(axis=0)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return x.reshape(-1, 8, 8).astype(np.uint8), y, rows


def few(wrong=0):
    """Sixty labels among 1200 pictures, the first of them wrong."""
    x, y, rows = digits()
    places = order(2, "places", size=1200)[:60]
    likely = np.eye(10)[(y[places] + (np.arange(60) < wrong)) % 10] * 0.9 + 0.01
    return x[:1200], rows[:1200], label_rows(likely, single_queries(places, 1200))


def correct(network, start=1200):
    x, y, _ = digits()
    return (network_says(network, x[start:], full_scale=16)[0].argmax(axis=1) == y[start:]).mean()


def test_sixty_labels_teach_a_student_and_the_second_round_is_no_worse():
    x, rows, labels = few(wrong=4)
    told = []
    network = learn(x, rows, labels, PLAN, full_scale=16, on_step=lambda *step: told.append(step))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert not network.training
    once = learn(x, rows, labels, replace(PLAN, rounds=1), full_scale=16)
    assert correct(network) > max(0.9, correct(once) - 0.02)


def test_the_same_seed_gives_the_same_student_and_another_one_another():
    x, rows, labels = few()
    plan = replace(PLAN, epochs=1)
    first, again = (learn(x, rows, labels, plan, full_scale=16) for _ in range(2))
    other = learn(x, rows, labels, replace(plan, start_seed=4), full_scale=16)
    assert all(
        torch.equal(a, b)
        for a, b in zip(first.state_dict().values(), again.state_dict().values(), strict=True)
    )
    assert not torch.equal(first[-1].weight, other[-1].weight)


def test_groups_speak_for_all_their_pictures():
    likely = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]])
    rows = label_rows(likely, np.array([1, -1, 0, 0]))
    assert rows[2].tolist() == rows[3].tolist()
    assert np.allclose(rows[0], [-1 / 3, 2 / 3, -1 / 3])
    assert not rows[1].any()


@pytest.mark.parametrize("asked", [[0, 2], [-2, 0]])
def test_a_query_that_there_is_not_is_refused(asked):
    with pytest.raises(BadInput, match="not among the 2 answered"):
        label_rows(np.ones((2, 3)) / 3, np.array(asked))


def test_what_is_said_is_what_the_network_computes():
    x, _, _ = digits()
    network = train_on_shares(x[:64], np.full((64, 10), 0.1), PLAN, full_scale=16)
    shares, learnt = network_says(network, x[:40], full_scale=16)
    pictures = torch.from_numpy(x[:40]).float()[:, None] / 16
    with torch.no_grad():
        assert np.allclose(shares, torch.softmax(network(pictures), 1).numpy(), atol=1e-5)
        assert np.allclose(learnt, network[:-1](pictures).numpy(), atol=1e-5)


def test_a_network_without_blocks_is_refused():
    with pytest.raises(BadInput, match="no block before the last"):
        network_says(nn.Linear(4, 2), np.zeros((3, 2, 2)), full_scale=1)


def test_the_joined_features_have_both_parts():
    plan = replace(PLAN, learnt=3, given_share=0.5)
    given, learnt = normals(1, "given", size=(50, 4)), normals(1, "learnt", size=(50, 7))
    learnt[:, 2] *= 100
    rows = joined_features(given, learnt, plan)
    assert rows.shape == (50, 7)
    assert np.allclose(rows[:, 3:], 0.5 * given, atol=1e-6)
    assert np.allclose(np.linalg.norm(rows[:, :3], axis=1), 1, atol=1e-6)
    # The longest direction is the last of the learnt ones, and nearly all of most rows.
    assert np.median(np.abs(rows[:, 2])) > 0.99
    agree = np.sign(rows[:, 2]) == np.sign(learnt[:, 2] - learnt[:, 2].mean())
    assert agree.all() or not agree.any()


def test_network_and_votes_correct_each_other():
    _, y, rows = digits()
    graph = neighbour_graph(rows[:1200], 10)
    _, _, labels = few(wrong=10)
    own = np.eye(10)[np.where(np.arange(1200) % 5 == 0, (y[:1200] + 1) % 10, y[:1200])]
    by_votes = spread(graph, labels, alpha=PLAN.alpha).argmax(axis=1)
    both = relabelled(graph, 0.9 * own + 0.01, labels, PLAN)
    assert np.allclose(both.sum(axis=1), 1)
    right = (both.argmax(axis=1) == y[:1200]).mean()
    assert right > 0.95
    assert right >= (by_votes == y[:1200]).mean()


def test_a_loss_that_is_not_a_number_is_told_with_its_step():
    x, rows, labels = few()
    wild = replace(PLAN, learning_rate=1e30)
    with pytest.raises(BadInput, match="not a number") as caught:
        learn(x, rows, labels, wild, full_scale=16)
    assert "epoch 1, step" in str(caught.value)


def test_rows_that_do_not_fit_are_refused():
    x, rows, labels = few()
    with pytest.raises(BadInput, match="1200 pictures, 1199 rows"):
        learn(x, rows[1:], labels, PLAN, full_scale=16)
