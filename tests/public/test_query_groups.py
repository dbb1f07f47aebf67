"""Groups of queries: all filled, numbered without gaps, and of samples that are alike."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public import query_groups
from stillroom.public.query_groups import group


def features(samples, width=3, seed=0):
    return np.random.default_rng(seed).standard_normal((samples, width)).astype(np.float32)


def has_gaps(found, count):
    return not np.array_equal(np.unique(found), np.arange(count))


@pytest.mark.parametrize("small", [10_000, 50])
@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (features(200), 1),
        (features(200), 13),
        (features(200), 200),
        (np.zeros((100, 2)), 7),
        (np.zeros((60, 2)), 60),
        (np.repeat(features(5), 30, axis=0), 40),
        (np.arange(90, dtype=np.uint8).reshape(90, 1) // 30, 8),
    ],
)
def test_exactly_so_many_groups_none_empty(monkeypatch, small, rows, count):
    monkeypatch.setattr(query_groups, "SMALL", small)
    found = group(rows, count, seed=1)
    assert found.shape == (len(rows),)
    assert found.dtype == np.int64
    assert not has_gaps(found, count)
    assert np.array_equal(found, group(rows, count, seed=1))


def test_without_the_repair_equal_samples_leave_gaps():
    assert has_gaps(query_groups._clusters(np.repeat(features(5), 30, axis=0), 40, seed=1), 40)


@pytest.mark.parametrize("small", [10_000, 50])
def test_samples_far_apart_are_never_together(monkeypatch, small):
    monkeypatch.setattr(query_groups, "SMALL", small)
    where = np.repeat(np.arange(4), 50)
    found = group(features(200) * 0.01 + 100.0 * where[:, None], 4, seed=2)
    assert len({*zip(where.tolist(), found.tolist(), strict=True)}) == 4


def test_a_repair_keeps_the_other_groups_and_halves_the_largest():
    rows = np.array([[0.0], [0.1], [0.2], [5.0], [9.0], [9.1]])
    found = np.array([4, 4, 4, 4, 7, 7])
    assert query_groups._filled(rows, found, 2).tolist() == [0, 0, 0, 0, 1, 1]
    assert query_groups._filled(rows, found, 3).tolist() == [2, 0, 0, 2, 1, 1]


def test_another_seed_groups_otherwise():
    assert not np.array_equal(group(features(300), 20, seed=1), group(features(300), 20, seed=2))


@pytest.mark.parametrize("count", [0, 4])
def test_more_groups_than_samples_are_refused(count):
    with pytest.raises(BadInput, match="cannot fill"):
        group(features(3), count, seed=1)


@pytest.mark.parametrize("rows", [np.zeros(4), np.full((4, 2), np.nan), np.array([["a"], ["b"]])])
def test_what_is_no_feature_is_refused(rows):
    with pytest.raises(BadInput, match="rows of finite numbers"):
        group(rows, 1, seed=1)
