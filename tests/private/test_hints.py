"""Hints: every teacher's row stays in its ball, in integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.errors import BadInput
from stillroom.private.hints import Hints, hint_residual, hint_sensitivity, hint_steps
from stillroom.vocabulary import Norm, Sensitivity, Unit


def residuals(hidden, seed=0, bound="1/2", grid=512, size=20):
    rng = np.random.default_rng(seed)
    known, values = rng.normal(size=(30, hidden.shape[1])), rng.normal(size=(30, 5))
    hints = Hints(np.zeros((30, 1)), values)
    centre = rng.normal(size=(size, 5))
    return hint_residual(hidden, known, hints, centre, hint_steps(bound, grid), grid)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e6, 1e200, 1e307]))
def test_a_hint_stays_in_its_ball(seed, scale):
    hidden = np.random.default_rng(seed).normal(size=(20, 8)) * scale
    found = residuals(hidden, seed)
    assert (found.astype(object) ** 2).sum(axis=1).max() <= 256**2
    if scale in (1.0, 1e6):
        assert (found**2).sum(axis=1).max() > 250**2, "the clip is used, not undershot"


def rounded_hint(hidden, known, hints, centre, steps, grid):
    """The broken twin: clipped as floats, rounded to the nearest, never checked."""
    inputs = np.hstack([known, np.ones((len(known), 1))])
    own_map = np.linalg.lstsq(inputs, hints.values, rcond=None)[0]
    away = (hidden @ own_map[:-1] + own_map[-1] - centre) * grid
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    return np.rint(away * np.minimum(1, steps / lengths)).astype(np.int64)


def test_a_hint_that_is_rounded_is_caught(monkeypatch):
    hidden = np.random.default_rng(1).normal(size=(400, 8)) * 100

    def longest():
        return (residuals(hidden, size=400, grid=40) ** 2).sum(axis=1).max()

    assert longest() <= 20**2
    monkeypatch.setitem(globals(), "hint_residual", rounded_hint)
    assert longest() > 20**2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_hint_that_is_no_number_is_zero(value):
    hidden = np.ones((20, 8))
    hidden[3, 2] = value
    assert not residuals(hidden).any()


def test_hints_are_mapped_on_public_records():
    """A teacher whose hidden layer is a turned copy of the public hints adds nothing."""
    rng = np.random.default_rng(0)
    values, turn = rng.normal(size=(60, 5)), np.linalg.qr(rng.normal(size=(5, 5)))[0]
    hints = Hints(np.zeros((40, 1)), values[:40], ridge=1e-9)
    same = hint_residual(values[40:] @ turn, values[:40] @ turn, hints, values[40:], 1000, 1000)
    assert not same.any()
    away = hint_residual(
        values[40:] @ turn, values[:40] @ turn, hints, values[40:] + 0.1, 900, 1000
    )
    assert away / 1000 == pytest.approx(np.full((20, 5), -0.1), abs=0.002)


def test_hint_sensitivity_is_the_diameter():
    assert hint_steps("0.5", 100) == 50
    assert hint_sensitivity(50, Unit.RECORD) == Sensitivity.uniform(Norm.L2_SQUARED, 100**2)


RECORDS = np.zeros((6, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: hint_steps("1/100", 10),
        lambda: hint_steps(1, 2**30),
        lambda: Hints(RECORDS, np.zeros((5, 2))),
        lambda: Hints(RECORDS, np.full((6, 2), np.nan)),
        lambda: Hints(RECORDS, np.zeros((6, 2)), ridge=0),
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(BadInput):
        wrong()
