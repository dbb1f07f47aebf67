"""Descent on noisy sums, alone and beside an exact gradient of public records."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.public import Descent
from stillroom.public.descent import softmax_gradient
from stillroom.randomness import integers, normals
from stillroom.vocabulary import Sanitised

ROWS = normals(1, "rows", size=(30, 4)).astype(np.float32)
LABELS = integers(1, "labels", size=30, below=3)
WEIGHTS = normals(1, "weights", size=(3, 4)).astype(np.float32)
GRADIENT = softmax_gradient(ROWS, LABELS, classes=3)
SUMS = [Sanitised(row[None], ()) for row in integers(1, "sums", size=(6, 12), below=99) - 50]


def layer(**named):
    numbers = {"unit": 0.01, "divisor": 2.0, "learning_rate": 0.5, "momentum": 0.9}
    return Descent(np.zeros((3, 4), np.float32), **{**numbers, **named})


def stepped(made, sums=SUMS):
    for noisy in sums:
        made.step(noisy)
    return made


def test_the_public_gradient_is_that_of_the_cross_entropy():
    weights = torch.tensor(WEIGHTS, requires_grad=True)
    F.cross_entropy(torch.tensor(ROWS) @ weights.T, torch.tensor(LABELS)).backward()
    assert np.allclose(GRADIENT(WEIGHTS), weights.grad.numpy(), atol=1e-6)


def test_the_public_gradient_is_a_slope():
    """By central differences, in double precision."""

    def loss(weights):
        scores = ROWS.astype(np.float64) @ weights.T
        return float(np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(30), LABELS]))

    found = GRADIENT(WEIGHTS)
    for place in [(0, 0), (1, 3), (2, 1)]:
        step = np.zeros((3, 4))
        step[place] = 1e-5
        slope = (loss(WEIGHTS + step) - loss(WEIGHTS - step)) / 2e-5
        assert found[place] == pytest.approx(slope, abs=1e-5)


def test_large_scores_do_not_overflow():
    found = softmax_gradient(ROWS * 1000, LABELS, classes=3)(WEIGHTS * 1000)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("average_from", [None, 2])
def test_without_a_share_nothing_changes(average_from):
    plain = stepped(layer(average_from=average_from))
    idle = stepped(layer(average_from=average_from, public_gradient=GRADIENT, public_share=0.0))
    assert np.array_equal(plain.result(), idle.result())
    # A share without a gradient is refused.
    with pytest.raises(BadInput):
        layer(average_from=average_from, public_share=0.5)
    helped = stepped(layer(average_from=average_from, public_gradient=GRADIENT, public_share=0.5))
    assert not np.array_equal(plain.result(), helped.result())


def test_a_step_is_a_mean_of_both_gradients():
    made = layer(momentum=0.0, public_gradient=GRADIENT, public_share=0.25)
    start = made.weights.copy()
    made.step(SUMS[0])
    noisy = SUMS[0].value.reshape(3, 4) * 0.01 / 2
    wanted = start - 0.5 * (0.25 * GRADIENT(start) + 0.75 * noisy)
    assert np.allclose(made.weights, wanted, atol=1e-7)


def test_a_public_start_is_at_rest():
    made = layer(public_gradient=GRADIENT)
    made.start_publicly(20)
    scores = ROWS @ made.weights.T
    assert (scores.argmax(1) == LABELS).mean() > (np.bincount(LABELS).max() / 30)
    start = made.weights.copy()
    made.step(Sanitised(np.zeros((1, 12), np.int64), ()))
    assert np.array_equal(made.weights, start)


def test_public_gradients_are_no_signal():
    """What tells a model that learns from one that does not looks at noisy sums alone."""
    helped = layer(public_gradient=GRADIENT, public_share=0.9)
    helped.start_publicly(5)
    assert helped.drift.chance(30.0) == 1.0
    assert stepped(helped).drift.chance(30.0) == stepped(layer()).drift.chance(30.0) < 1
