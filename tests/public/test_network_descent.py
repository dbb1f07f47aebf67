"""A network's steps: momentum, averaging, public gradients and the signal, on known numbers."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public import Descent
from stillroom.vocabulary import Sanitised

START = np.array([1.0, -1.0, 0.0], dtype=np.float32)
NUMBERS = {"unit": 0.5, "divisor": 2.0, "learning_rate": 0.1}


def noisy(*values):
    return Sanitised(np.array([values], dtype=np.int64), ())


def test_a_step_is_against_the_mean_gradient():
    network = Descent(START, **NUMBERS)
    network.step(noisy(4, 0, -8))
    assert network.weights == pytest.approx([0.9, -1.0, 0.2])
    assert network.weights.dtype == np.float32
    assert START.tolist() == [1.0, -1.0, 0.0]


def test_it_is_the_linear_layers_descent_from_another_start():
    rng = np.random.default_rng(1)
    linear = Descent(np.zeros((2, 3), np.float32), momentum=0.7, **NUMBERS)
    network = Descent(np.zeros(6, np.float32), momentum=0.7, **NUMBERS)
    for _ in range(9):
        sums = noisy(*rng.integers(-50, 50, 6))
        linear.step(sums)
        network.step(sums)
    assert np.array_equal(linear.weights.reshape(-1), network.weights)
    assert network.drift.chance(30.0) == linear.drift.chance(30.0)
    assert np.array_equal(network.result(), network.weights)


def test_the_average_follows_at_its_own_pace():
    network = Descent(START, ema=0.5, **NUMBERS)
    average = START.astype(np.float64)
    for step in range(1, 30):
        network.step(noisy(step, -step, 2))
        kept = min(0.5, (1 + step) / (10 + step))
        average = kept * average + (1 - kept) * network.weights
    assert network.result() == pytest.approx(average, rel=1e-6)
    assert network.result().dtype == np.float32
    assert not np.array_equal(network.result(), network.weights)


def test_a_public_gradient_has_its_share():
    seen = []

    def public(weights):
        seen.append(weights.copy())
        return weights - 3

    network = Descent(START, public_gradient=public, public_share=0.25, **NUMBERS)
    network.step(noisy(4, 0, -8))
    expected = START - 0.1 * (0.75 * np.array([1.0, 0, -2.0]) + 0.25 * (START - 3))
    assert network.weights == pytest.approx(expected, rel=1e-6)
    assert np.array_equal(seen[0], START)


def test_public_gradients_do_not_feign_a_signal():
    """Noise alone stays likely though the public gradient moves the weights a lot.

    A chance below 1e-6 is a false alarm in as many of all seeds; one is used.
    """
    rng = np.random.default_rng(2)
    network = Descent(
        np.zeros(500, np.float32), public_gradient=lambda w: w - 1, public_share=0.9, **NUMBERS
    )
    assert network.drift.chance(100.0) == 1.0
    for _ in range(20):
        network.step(noisy(*np.rint(rng.normal(0, 100, 500)).astype(np.int64)))
    assert network.drift.chance(100.0) > 1e-6
    for _ in range(20):
        network.step(noisy(*np.rint(rng.normal(60, 100, 500)).astype(np.int64)))
    assert network.drift.chance(100.0) < 1e-20


@pytest.mark.parametrize(
    "numbers",
    [
        {"start": np.array([np.nan], np.float32)},
        {"unit": 0},
        {"divisor": -1},
        {"learning_rate": float("inf")},
        {"momentum": 1},
        {"ema": 1.0},
        {"public_share": 0.5},
        {"public_share": 1.0, "public_gradient": lambda w: w},
        {"ema": 0.5, "average_from": 2},
    ],
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput) as caught:
        Descent(**{"start": START, **NUMBERS, **numbers})
    assert caught.value.where == next(iter(numbers))
