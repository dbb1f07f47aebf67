"""Queries made of others stay pictures, and each is made of its own two alone."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.public.query_mixing import mixed_queries, retouched
from stillroom.public.structured_queries import structured_queries

SHAPES = [(16, 16), (8, 8), (12, 12, 3)]


def pictures(shape, seed, count=60):
    return structured_queries(count, shape, seed=seed)


@pytest.mark.parametrize("shape", SHAPES)
def test_mixtures_are_pictures(shape):
    one, other = pictures(shape, 1), pictures(shape, 2)
    made = mixed_queries(one, other, seed=3)
    assert made.shape == one.shape
    assert made.dtype == np.float32
    assert (made >= 0).all()
    assert (made <= np.maximum(one, other) + 1e-6).all(), "never lighter than both"
    assert np.array_equal(made, mixed_queries(one, other, seed=3))
    assert not np.array_equal(made, mixed_queries(one, other, seed=4))


def test_both_parts_show():
    white, black = np.ones((90, 12, 12), np.float32), np.zeros((90, 12, 12), np.float32)
    made = mixed_queries(white, black, seed=0).mean(axis=(1, 2))
    assert (made == 1).sum() > 15, "the lighter pixel"
    assert np.isclose(made, 0.3).sum() > 15, "the silhouette"
    assert ((made > 0.01) & (made < 0.99) & ~np.isclose(made, 0.3)).sum() > 15, "the cut"
    assert np.isclose(mixed_queries(black, white, seed=0).mean(axis=(1, 2)), 0).sum() > 15


@pytest.mark.parametrize("shape", SHAPES)
def test_a_share_is_retouched(shape):
    given = pictures(shape, 5, count=200)
    made = retouched(given, seed=1, share=0.6)
    assert made.dtype == np.float32
    assert made.min() >= 0
    assert made.max() <= 1
    assert np.isfinite(made).all()
    lit = given.max(axis=tuple(range(1, given.ndim))) > 0.05
    changed = np.abs(made - given).max(axis=tuple(range(1, given.ndim))) > 1e-6
    assert changed[lit].mean() == pytest.approx(0.6, abs=0.15)
    assert np.array_equal(retouched(given, seed=1, share=0.0), given)


def test_blank_pictures_stay_blank():
    assert not retouched(np.zeros((9, 8, 8), np.float32), seed=1, share=1.0).any()


def test_nothing_in_nothing_out():
    none = np.zeros((0, 8, 8), np.float32)
    assert mixed_queries(none, none, seed=0).shape == (0, 8, 8)
    assert retouched(none, seed=0).shape == (0, 8, 8)
