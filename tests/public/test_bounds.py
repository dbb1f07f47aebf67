"""The adaptive bound: a median of public lengths, rounded up to the grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.errors import BadInput
from stillroom.private.hints import Hints, hint_residual, hint_steps
from stillroom.public.bounds import MOST_UNITS, adaptive_bound, residual_norms, shrunk


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 900.0), st.sampled_from([1000, 1024, 65536]))
def test_the_bound_is_rounded_up_and_has_its_steps(length, steps):
    bound = adaptive_bound([length], steps=steps, origin="a test")
    assert Fraction(length) <= bound.value <= Fraction(length) * (1 + Fraction(length) / steps) * 2
    assert hint_steps(bound.value, bound.units) == bound.steps == steps
    assert bound.origin == "a test"


def test_half_of_the_residuals_are_clipped():
    lengths = np.linspace(0.1, 2, 1001)
    bound = float(adaptive_bound(lengths, steps=1 << 16, origin="a test").value)
    assert bound == pytest.approx(1.05, rel=1e-4)
    assert (lengths > bound).mean() == pytest.approx(0.5, abs=0.01)


def test_the_lengths_are_those_that_teachers_are_clipped_by():
    rng = np.random.default_rng(0)
    known, hidden = rng.normal(size=(40, 6)), rng.normal(size=(15, 6))
    values, centre = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
    hints, grid = Hints(np.zeros((40, 1)), values), 1 << 16
    norms = residual_norms(hidden, known, values, centre, hints.ridge)
    whole = hint_residual(hidden, known, hints, centre, 100 * grid, grid)
    assert np.linalg.norm(whole / grid, axis=1) == pytest.approx(norms, abs=1e-3)


@pytest.mark.parametrize(
    "norms",
    [[], [0.0], [0.0, 0.0, 1.0], [float("nan"), 1.0], [1.0, float("inf")], [2000.0], ["1.0"], [1]],
)
def test_lengths_that_give_no_bound(norms):
    with pytest.raises(BadInput, match="give no bound"):
        adaptive_bound(norms, steps=1024, origin="a test")


def test_the_shortest_bound():
    assert adaptive_bound([1024 / MOST_UNITS], steps=1024, origin="").units == MOST_UNITS


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_shrinking_never_hurts_much_and_helps_where_noise_is_long(noise):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 64))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True) / 0.5
    noisy = truth + noise * rng.normal(size=truth.shape)
    away = np.linalg.norm(shrunk(noisy, noise) - truth)
    assert away <= 1.02 * np.linalg.norm(noisy - truth)
    assert away <= 1.02 * np.linalg.norm(truth), "no worse than the auxiliary teacher alone"
    if noise == 1.0:
        assert np.linalg.norm(noisy - truth) > 10 * np.linalg.norm(truth), "the twin that does not"


def test_nothing_is_left_of_nothing():
    assert not shrunk(np.zeros((3, 2)), 0.0).any()
    assert shrunk(np.zeros((0, 2)), 1.0).shape == (0, 2)
