"""Samples that a judge agrees with: only those, all classes alike, and always enough."""

from __future__ import annotations

import numpy as np

from public.test_mixture import a_mixture
from stillroom.public.accepted import accepted_samples


def bright(pictures, classes):
    return pictures.mean(axis=(1, 2)) > np.median(pictures.mean(axis=(1, 2)))


def test_only_accepted_ones_and_all_classes_alike():
    floor = np.median(a_mixture().sample(1, 500)[0].mean(axis=(1, 2)))

    def judge(pictures, classes):
        return pictures.mean(axis=(1, 2)) > floor

    pictures, classes = accepted_samples(a_mixture(), 5, 100, judge, warp=0.5)
    assert pictures.shape == (100, 9, 8)
    assert np.bincount(classes).tolist() == [34, 33, 33]
    assert judge(pictures, classes).all()
    again, same = accepted_samples(a_mixture(), 5, 100, judge, warp=0.5)
    assert np.array_equal(pictures, again)
    assert np.array_equal(classes, same)
    assert len(np.unique(classes[:20])) == 3  # in no order


def test_a_judge_that_takes_nothing_does_not_hang():
    pictures, classes = accepted_samples(
        a_mixture(), 5, 31, lambda pictures, classes: np.zeros(len(classes), dtype=bool)
    )
    assert len(pictures) == 31
    assert np.bincount(classes).tolist() == [11, 10, 10]


def test_no_samples():
    assert accepted_samples(a_mixture(), 5, 0, bright)[0].shape == (0, 9, 8)
