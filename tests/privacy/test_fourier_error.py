"""How much delta dp_accounting's Fourier transforms lose, measured against the exact law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from stillroom.gate.loss_distributions import FOURIER_ERROR

SETTINGS = [
    (sigma, moves)
    for sigma in (3, 5, 10, 20, 30, 50, 100, 300, 1000)
    for moves in (2, 10, 50, 200, 1000, 1500, 5000, 20_000, 100_000)
    if 1e-4 <= moves / sigma**2 <= 40
]


def exact_delta(epsilon: float, sigma: int, moves: int) -> float:
    """The losses add up to (X + moves / 2) / sigma^2, X a discrete Gaussian of their sum."""
    variance = moves * sigma**2
    start = math.ceil(epsilon * sigma**2 - moves / 2)
    x = np.arange(start, start + 12 * int(math.sqrt(variance)) + 100, dtype=np.float64)
    mass = np.exp(-(x**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return float((mass * -np.expm1(epsilon - (x + moves / 2) / sigma**2)).sum())


def worst_loss(settings, intervals, made: float = 0.0) -> float:
    """The most delta a composition loses; `made` is lost on purpose beside it."""
    worst = -math.inf
    for sigma, moves in settings:
        for interval in intervals:
            law = pld.from_discrete_gaussian_mechanism(
                sigma, 1, value_discretization_interval=interval, use_connect_dots=True
            ).self_compose(moves)
            for delta in (1e-9, 1e-10, 1e-11, 1e-12):
                epsilon = law.get_epsilon_for_delta(delta + made * moves)
                worst = max(worst, (exact_delta(epsilon, sigma, moves) - delta) / moves)
    return worst


@pytest.mark.slow
def test_the_allowance_is_eight_times_what_is_ever_lost():
    assert worst_loss(SETTINGS, (1e-4, 2e-5)) < FOURIER_ERROR / 8


def test_a_loss_as_large_as_the_allowance_would_be_seen():
    """So that the figure above is small for its reason, and not because nothing is measured.

    Nothing is asked of the processor: how little it loses is its own affair.
    """
    seen = worst_loss([(50, 20_000)], (1e-4,), made=FOURIER_ERROR)
    assert seen == pytest.approx(FOURIER_ERROR, rel=1 / 8)
