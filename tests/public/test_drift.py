"""Noisy sums are told from noise alone, and noise alone is not taken for more."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.public.drift import Drift

SIGMA = 20.0


def chance(sums) -> float:
    drift = Drift(sums.shape[1])
    for one in sums:
        drift.add(one)
    return drift.chance(SIGMA)


def noise(rng, steps, size):
    return np.rint(rng.normal(0, SIGMA, (steps, size))).astype(np.int64)


@pytest.mark.parametrize(("steps", "size"), [(1, 30), (20, 30), (100, 1000)])
def test_noise_alone_is_likely(steps, size):
    """The chance is at most uniform: below 1/10 in a tenth of all runs, or less.

    Of 1,000 runs more than 150 are so by chance in one of 1e6 suites; the stream is fixed.
    """
    rng = np.random.default_rng(steps)
    found = [chance(noise(rng, steps, size)) for _ in range(1000)]
    assert sum(one <= 0.1 for one in found) <= 150
    assert max(found) > 0.5


@pytest.mark.parametrize("first", [1, 4, 60])
def test_a_signal_shows_that_is_strong_at_first_or_all_the_time(first):
    """The mean of a step is 2 sigma long at first, or a third of that always; noise is 32 long."""
    rng = np.random.default_rng(first)
    sums = noise(rng, 60, 1000)
    direction = rng.normal(size=1000)
    direction /= np.linalg.norm(direction)
    sums[:first] += np.rint(direction * SIGMA * 32 / np.sqrt(first)).astype(np.int64)
    assert chance(sums) < 1e-6


def test_a_swing_past_the_optimum_does_not_hide_it():
    """Steps that point back cancel the sum at the end, not the sum after the first of them."""
    rng = np.random.default_rng(3)
    sums = noise(rng, 64, 500)
    sums[:8] += 10
    sums[8:16] -= 10
    assert chance(sums) < 1e-6
    assert abs(sums.sum()) < 6 * SIGMA * np.sqrt(sums.size)
