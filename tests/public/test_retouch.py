"""Retouching: what it does to a share of the pictures, and that it leaves the others alone."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.public import retouch
from stillroom.public.retouch import sharpened, warped


def test_sharpening_raises_contrast_and_keeps_the_ends():
    grey = np.tile(np.linspace(0, 1, 9), (1000, 1)).reshape(1000, 3, 3)
    sharp = sharpened(grey, 9, 0, 1.0).reshape(1000, 9)
    assert sharp[:, 0] == pytest.approx(0)
    assert sharp[:, -1] == pytest.approx(1)
    assert (np.diff(sharp, axis=1) > 0).all()
    assert (sharp[:, 6] - sharp[:, 2]).mean() > 0.6  # from 0.5
    half = sharpened(grey, 9, 0, 0.5)
    assert 400 < (half != grey).any(axis=(1, 2)).sum() < 600
    assert np.array_equal(sharpened(grey, 9, 0, 0.0), grey)


def test_a_warp_is_mild_and_for_a_share_only():
    y, x = np.mgrid[:28, :28]
    blob = np.exp(-((y - 11) ** 2 + (x - 16) ** 2) / 18)[None].repeat(400, axis=0)
    moved = warped(blob, 10, 0, 1.0)
    assert np.abs(moved - blob).mean() > 0.005
    correlation = [
        np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(blob, moved, strict=True)
    ]
    assert min(correlation) > 0.5
    assert moved.min() >= 0
    assert moved.max() <= 1
    half = warped(blob, 10, 0, 0.5)
    assert 150 < (half != blob).any(axis=(1, 2)).sum() < 250
    assert np.array_equal(warped(blob, 10, 0, 0.0), blob)


def test_looking_up_the_places_themselves_changes_nothing():
    pictures = np.random.default_rng(11).uniform(size=(5, 6, 7))
    y, x = np.mgrid[:6, :7].astype(np.float64)[:, None].repeat(5, axis=1)
    assert retouch._looked_up(pictures, y, x) == pytest.approx(pictures)
    assert retouch._looked_up(pictures, y + 100, x) == pytest.approx(0, abs=2e-3)


def test_colours_are_retouched_together():
    grey = np.random.default_rng(12).uniform(size=(40, 9, 8))
    colour = np.stack([grey, grey, np.zeros_like(grey)], axis=3)
    for retouched in (sharpened, warped):
        alone, together = retouched(grey, 13, 0, 0.7), retouched(colour, 13, 0, 0.7)
        assert together[..., 0] == pytest.approx(alone)
        assert together[..., 1] == pytest.approx(alone)
        assert together[..., 2] == pytest.approx(0)
