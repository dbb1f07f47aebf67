"""Stacks: the same arithmetic as one teacher alone, in a number of steps that is public."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from stillroom.data import digits
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.private import EnsemblePlan, stacked
from stillroom.private.shard_training import pictures
from stillroom.private.stacked import Asker, train_networks
from stillroom.randomness import seeded_torch

DIGITS = digits()
ROWS, LABELS = pixels(DIGITS.x), DIGITS.y
LINEAR = EnsemblePlan(4, "a test", 40, "linear", epochs=3, batch=16, learning_rate=0.05)
MLP = replace(LINEAR, teacher="mlp", epochs=1, learning_rate=0.01)
OWN = replace(LINEAR, teacher="stillroom.models.zoo:linear")
SIZES = (40, 3, 0, 25)
START = {
    "classes.weight": np.zeros((10, ROWS.shape[1]), np.float32),
    "classes.bias": np.zeros(10, np.float32),
}


def shards_of(rows, sizes=SIZES):
    ends = np.cumsum(sizes)
    return [rows[b - n : b] for b, n in zip(ends, sizes, strict=True)]


def train(plan, rows=ROWS, sizes=SIZES, labels=LABELS, first=0, start=None):
    return train_networks(plan, shards_of(rows, sizes), shards_of(labels, sizes), first, 10, start)


def test_a_stack_learns_what_its_teachers_learn_alone():
    """Padding weighs nothing: the plain loop over a network never sees it."""
    stack, alone = train(LINEAR, start=START), train(OWN, start=START)
    assert stack.keys() == alone.keys()
    for name in stack:
        assert stack[name] == pytest.approx(alone[name], abs=2e-4)


def test_padding_that_counts_as_records_is_caught():
    """The twin's padding is a record of zeros with label 0."""
    rows = np.concatenate([ROWS[40:43], np.zeros((37, ROWS.shape[1]), np.float32)])
    labels = np.concatenate([LABELS[40:43], np.zeros(37, np.int64)])
    padded = train(LINEAR, rows, (40,), labels, first=1, start=START)
    honest = train(LINEAR, ROWS[40:], (3,), LABELS[40:], first=1, start=START)
    alone = train(OWN, ROWS[40:], (3,), LABELS[40:], first=1, start=START)
    for name in honest:
        assert honest[name] == pytest.approx(alone[name], abs=2e-4)
        assert np.abs(padded[name] - alone[name]).max() > 0.05


@pytest.mark.parametrize("sizes", [(40, 1), (2, 1), (0, 1)])
def test_the_number_of_steps_is_public(sizes, monkeypatch):
    steps = []
    honest = torch.optim.Adam.step
    monkeypatch.setattr(
        torch.optim.Adam, "step", lambda self: steps.append(len(steps)) or honest(self)
    )
    train(LINEAR, sizes=sizes)
    assert steps == list(range(LINEAR.steps))


def test_weights_and_order_are_keyed_by_the_teachers_number():
    twice = train(LINEAR, np.tile(ROWS[:10], (2, 1)), (10, 10), np.tile(LABELS[:10], 2), first=5)
    again = train(LINEAR, ROWS[:10], (10,), LABELS[:10], first=6)
    assert not np.array_equal(twice["classes.weight"][0], twice["classes.weight"][1])
    assert twice["classes.weight"][1] == pytest.approx(again["classes.weight"][0], abs=1e-5)
    other = train(replace(LINEAR, training_seed=1), ROWS[:10], (10,), LABELS[:10], first=6)
    assert not np.array_equal(other["classes.weight"], again["classes.weight"])


@pytest.mark.parametrize("plan", [LINEAR, MLP, OWN])
def test_threads_do_not_matter_and_are_left_as_they_were(plan):
    before = torch.get_num_threads()
    alone = train(plan)
    torch.set_num_threads(2)
    try:
        shared = train(plan)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(alone[name], shared[name]) for name in alone)


def with_dropout(spec, shape, classes, *, seed):
    with seeded_torch(seed, "a test"):
        return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(int(np.prod(shape)), classes))


def test_networks_that_draw_are_repeatable_and_leave_the_generator_alone(monkeypatch):
    monkeypatch.setattr(stacked, "build", with_dropout)
    state = torch.get_rng_state()
    one, two = train(OWN), train(OWN)
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_teacher_is_asked_with_its_own_weights():
    found = train(LINEAR)
    asker = Asker(LINEAR, ROWS.shape[1:], 10)
    for j in (0, 3, 0):
        state = {name: array[j] for name, array in found.items()}
        expected = ROWS[:2000] @ state["classes.weight"].T + state["classes.bias"]
        assert asker.scores(state, ROWS[:2000]) == pytest.approx(expected, abs=1e-4)


def test_the_hidden_layer_is_what_enters_the_last_linear_one():
    found = train(MLP)
    asker = Asker(MLP, ROWS.shape[1:], 10)
    state = {name: array[0] for name, array in found.items()}
    hidden = asker.hidden(state, ROWS[:50])
    assert hidden.shape == (50, 256)
    scores = hidden @ state["classes.weight"].T + state["classes.bias"]
    assert asker.scores(state, ROWS[:50]) == pytest.approx(scores, abs=1e-4)


def test_a_network_without_a_linear_layer_has_no_hint(monkeypatch):
    def without(spec, shape, classes, *, seed):
        return nn.Sequential(nn.Conv2d(1, classes, 8), nn.Flatten())

    monkeypatch.setattr(stacked, "build", without)
    found = train(OWN, pictures(DIGITS.x[:80]))
    state = {name: array[0] for name, array in found.items()}
    asker = Asker(OWN, (1, 8, 8), 10)
    assert asker.scores(state, pictures(DIGITS.x[:5])).shape == (5, 10)
    with pytest.raises(BadInput, match="linear layer"):
        asker.hidden(state, pictures(DIGITS.x[:5]))


def test_an_unknown_network_is_refused():
    with pytest.raises(BadInput, match="no model"):
        train(replace(LINEAR, teacher="granite"))
