"""Views: the first is the picture, the others stay near it, and all are the same again."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.models.augmentation import Views
from stillroom.randomness import integers

PICTURES = integers(3, "pictures", size=(200, 8, 8), below=256).astype(np.uint8)


def dot(size=101, at=50):
    """A bright spot in the middle, soft enough to be found between pixels."""
    place = np.arange(size)
    row = np.exp(-((place - at) ** 2) / 18)
    return (np.outer(row, row) * 100).astype(np.float32)


def centre(picture):
    place = np.arange(len(picture))
    return (
        np.array([(picture.sum(1) * place).sum(), (picture.sum(0) * place).sum()]) / picture.sum()
    )


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1), (8, 8, 3)], ids=str)
def test_the_first_view_is_the_picture_itself(kind, shape):
    pictures = integers(3, "some", size=(6, *shape), below=200).astype(kind)
    seen = Views(count=3, turn=20, shift=0.2, scale=0.2, mirror=True).of(pictures, seed=1)
    assert seen.shape == (3, 6, *shape)
    assert seen.dtype == kind
    assert np.array_equal(seen[0], pictures)
    assert not np.array_equal(seen[1], pictures)
    assert not np.array_equal(seen[1], seen[2])
    # Between two pixels, or beyond the edge: never outside the values there were.
    assert seen.min() >= 0
    assert seen.max() <= pictures.max()


def test_one_view_is_no_change_and_nothing_is_nothing():
    assert np.array_equal(Views(turn=90, shift=0.5).of(PICTURES, 1), PICTURES[None])
    assert Views(count=2).of(PICTURES[:0], 1).shape == (2, 0, 8, 8)
    assert np.array_equal(Views(count=2).of(PICTURES, 1)[1], PICTURES)


def test_the_same_seed_gives_the_same_views():
    views = Views(count=2, turn=10, shift=0.1)
    assert np.array_equal(views.of(PICTURES, 7), views.of(PICTURES, 7))
    assert not np.array_equal(views.of(PICTURES, 7), views.of(PICTURES, 8))


def test_many_pictures_are_moved_like_few(monkeypatch):
    views = Views(count=2, turn=10, shift=0.1, mirror=True)
    whole = views.of(PICTURES, 7)
    monkeypatch.setattr("stillroom.models.augmentation._TOGETHER", 64)
    assert np.array_equal(views.of(PICTURES, 7), whole)


def test_a_mirrored_view_is_the_picture_from_right_to_left():
    seen = Views(count=2, mirror=True).of(PICTURES, seed=1)[1]
    same = (seen == PICTURES).all(axis=(1, 2))
    turned = (seen == PICTURES[:, :, ::-1]).all(axis=(1, 2))
    assert (same ^ turned).all()
    assert 60 < turned.sum() < 140
    assert (Views(count=2).of(PICTURES, seed=1)[1] == PICTURES).all()


def test_no_view_is_shifted_farther_than_said():
    pictures = np.repeat(dot()[None], 60, axis=0)
    moves = [centre(view) - 50 for view in Views(count=2, shift=0.1).of(pictures, seed=2)[1]]
    farthest = np.abs(moves).max(axis=0)
    assert (farthest <= 0.1 * 101 + 0.1).all()
    # Some go most of the way, in both directions.
    assert (np.max(moves, axis=0) > 6).all()
    assert (np.min(moves, axis=0) < -6).all()


def test_no_view_is_turned_farther_than_said():
    """A spot right of the middle goes round it."""
    picture = np.roll(dot(), 25, axis=1)
    views = Views(count=2, turn=30).of(np.repeat(picture[None], 60, axis=0), seed=2)[1]
    down, right = np.array([centre(view) - 50 for view in views]).T
    angles = np.rad2deg(np.arctan2(down, right))
    assert np.abs(np.hypot(down, right) - 25).max() < 0.3
    assert np.abs(angles).max() <= 30.5
    assert angles.max() > 20
    assert angles.min() < -20


def test_no_view_is_larger_or_smaller_than_said():
    picture = np.roll(dot(), 25, axis=1)
    views = Views(count=2, scale=0.2).of(np.repeat(picture[None], 60, axis=0), seed=2)[1]
    away = np.array([centre(view)[1] - 50 for view in views]) / 25
    assert away.max() <= 1.2 + 0.01
    assert away.min() >= 1 / 1.2 - 0.01
    assert away.max() > 1.12
    assert away.min() < 0.9
