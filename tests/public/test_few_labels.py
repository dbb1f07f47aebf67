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
from stillroom.models import checkpoints
from stillroom.models.augmentation import Views
from stillroom.models.checkpoints import Checkpoint
from stillroom.public.few_labels import (
    FewLabels,
    agreed,
    joined_features,
    learn,
    network_says,
    spread_shares,
    train_on_shares,
    voted,
)
from stillroom.public.neighbour_graph import neighbour_graph
from stillroom.public.vote_regression import NoisyShares, regressed, single_queries
from stillroom.randomness import normals, order

NOISE = 0.8
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


def few():
    """Noisy votes on 400 of 1200 pictures; of single answers, two of three are wrong."""
    x, y, rows = digits()
    places = order(2, "places", size=1200)[:400]
    shares = 0.8 * np.eye(10)[y[places]] + 0.02 + NOISE * normals(2, "noise", size=(400, 10))
    return x[:1200], rows[:1200], NoisyShares(shares, NOISE, single_queries(places, 1200))


def correct(network, start=1200):
    x, y, _ = digits()
    return (network_says(network, x[start:], full_scale=16)[0].argmax(axis=1) == y[start:]).mean()


def test_drowned_votes_teach_a_student_and_the_second_round_is_no_worse():
    x, rows, votes = few()
    told = []
    network = learn(x, rows, votes, PLAN, full_scale=16, on_step=lambda *step: told.append(step))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert not network.training
    once = learn(x, rows, votes, replace(PLAN, rounds=1), full_scale=16)
    assert correct(network) > max(0.9, correct(once) - 0.02)


def test_the_same_seed_gives_the_same_student_and_another_one_another():
    x, rows, votes = few()
    plan = replace(PLAN, epochs=1)
    first, again = (learn(x, rows, votes, plan, full_scale=16) for _ in range(2))
    other = learn(x, rows, votes, replace(plan, start_seed=4), full_scale=16)
    assert all(
        torch.equal(a, b)
        for a, b in zip(first.state_dict().values(), again.state_dict().values(), strict=True)
    )
    assert not torch.equal(first[-1].weight, other[-1].weight)


@pytest.mark.parametrize("cut", [2, 3])
def test_a_student_that_is_cut_off_goes_on_to_the_same_bytes(tmp_path, monkeypatch, cut):
    monkeypatch.setattr(checkpoints, "OFTEN", 0.0)
    x, rows, votes = few()
    plan, kept = replace(PLAN, model="mlp"), Checkpoint(tmp_path / "student.pt", "key")
    told = []

    def stop(done, total):
        told.append(done)
        if done == cut:
            raise KeyboardInterrupt

    def student(**more):
        return learn(x, rows, votes, plan, full_scale=16, **more).state_dict()

    with pytest.raises(KeyboardInterrupt):
        student(kept=kept, on_step=stop)
    again = student(kept=kept, on_step=lambda done, total: told.append(done))
    assert told == [1, 2, 3, 4]
    whole = student()
    assert all(torch.equal(again[name], whole[name]) for name in whole)


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
    _, rows, votes = few()
    _, y, _ = digits()
    graph = neighbour_graph(rows, 10)
    own = np.eye(10)[np.where(np.arange(1200) % 5 == 0, (y[:1200] + 1) % 10, y[:1200])]
    by_votes = voted(graph, rows, votes, PLAN)
    both = agreed(spread_shares(graph, 0.9 * own + 0.01, 0.8), by_votes)
    assert np.allclose(both.sum(axis=1), 1)
    right = (both.argmax(axis=1) == y[:1200]).mean()
    assert right > 0.95
    assert right >= (by_votes.argmax(axis=1) == y[:1200]).mean()


def test_an_alpha_of_zero_leaves_the_graph_out():
    _, rows, votes = few()
    plan, graph = replace(PLAN, alpha=0.0), neighbour_graph(rows, 10)
    assert np.array_equal(voted(graph, rows, votes, plan), regressed(graph, rows, votes))
    shares = np.full((1200, 10), 0.1)
    assert np.array_equal(spread_shares(graph, shares, 0.0), shares)


def test_what_one_opinion_rules_out_another_may_still_say():
    first, second = np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])
    assert np.allclose(agreed(first, second), [[0.5, 0.5, 0.0]], atol=1e-5)


def test_a_loss_that_is_not_a_number_is_told_with_its_step():
    x, rows, votes = few()
    wild = replace(PLAN, learning_rate=1e30)
    with pytest.raises(BadInput, match="not a number") as caught:
        learn(x, rows, votes, wild, full_scale=16)
    assert "epoch 1, step" in str(caught.value)


def test_rows_that_do_not_fit_are_refused():
    x, rows, votes = few()
    with pytest.raises(BadInput, match="1200 pictures, 1199 rows"):
        learn(x, rows[1:], votes, PLAN, full_scale=16)


@pytest.mark.parametrize("numbers", [{"rounds": 0}, {"epochs": 0}])
def test_a_student_that_would_learn_nothing_is_refused(numbers):
    with pytest.raises(BadInput, match="learns nothing"):
        FewLabels(**numbers)
