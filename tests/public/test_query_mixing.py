"""Queries made of others stay pictures, and each is made of its own two alone."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.public.query_mixing import Variety, lookalikes, mixed_queries, retouched
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
    assert (made <= 1).all()
    lighter = (made > np.maximum(one, other) + 1e-6).reshape(len(made), -1).any(axis=1)
    assert lighter.mean() < 0.6, "only a filled silhouette may be lighter than both"
    assert np.array_equal(made, mixed_queries(one, other, seed=3))
    assert not np.array_equal(made, mixed_queries(one, other, seed=4))


def test_both_parts_show():
    white, black = np.ones((300, 12, 12), np.float32), np.zeros((300, 12, 12), np.float32)
    made = mixed_queries(white, black, seed=0)
    light = made.mean(axis=(1, 2))
    assert 0.08 < (light == 1).mean() < 0.3, "the lighter pixel"
    made = mixed_queries(black, white, seed=0)
    light = made.mean(axis=(1, 2))
    assert 0.35 < (light == 0).mean() < 0.65, "nothing has no silhouette to fill"
    assert 0.2 < ((light > 0) & (light < 1)).mean() < 0.5, "the cut"


def test_a_silhouette_is_kept():
    square = np.zeros((200, 16, 16), np.float32)
    square[:, 4:12, 4:12] = 0.8
    made = mixed_queries(square, np.ones_like(square), seed=1)
    outside = made[:, :2].max(axis=(1, 2)) == 0
    assert outside.mean() == pytest.approx(0.5, abs=0.15)
    filled = made[outside][:, 6:10, 6:10]
    assert (filled.mean(axis=(1, 2)) > 0.05).mean() > 0.9
    assert filled.mean(axis=(1, 2)).std() > 0.1, "in many greys"


@pytest.mark.parametrize("shape", SHAPES)
def test_lookalikes_are_alike_and_all_different(shape):
    wanted, pool = pictures(shape, 7, count=20), pictures(shape, 8, count=400)
    chosen = lookalikes(pool, wanted)
    assert chosen.shape == wanted.shape
    places = [np.flatnonzero((pool == one).reshape(400, -1).all(axis=1)) for one in chosen]
    assert all(len(place) for place in places)
    assert len({one.tobytes() for one in chosen}) == 20

    def likeness(those):
        rows, others = (each.reshape(20, -1) - each.mean() for each in (wanted, those))
        norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
        return float(((rows * others).sum(axis=1) / norms).mean())

    assert likeness(chosen) > likeness(pool[:20]) + 0.2
    assert lookalikes(pool, wanted[:0]).shape == (0, *shape)


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


@pytest.mark.parametrize("shape", SHAPES)
def test_as_many_of_each_kind_as_asked_for(shape):
    variety = Variety(plain=5, mixed=7, structured=3, candidates=4)
    given = pictures(shape, 3, count=variety.samples)
    made = variety.of(given, seed=2)
    assert variety.samples == 5 + 7 + 3 + 3
    assert made.shape == (15, *shape)
    assert np.array_equal(made[:5], retouched(given[:5], seed=2))
    pool = structured_queries(12, shape, seed=2)
    assert all((pool == one).reshape(12, -1).all(axis=1).any() for one in made[12:])
