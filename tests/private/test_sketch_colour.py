"""The sketch of colour pictures: the same sums, in three planes."""

from __future__ import annotations

import numpy as np
import pytest

from private.test_sketch import CLASSES, TIGHT, WIDE
from stillroom.errors import BadInput
from stillroom.features.basis import Basis
from stillroom.private.sketch import SketchRecords

BASIS = Basis(8, 8, 40, chroma=6)


def records(pictures, labels, clip=WIDE):
    return SketchRecords(pictures, labels, CLASSES, basis=BASIS, full_scale=16.0, clip=clip)


def some(seed, size):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 17, size=(size, 8, 8, 3)), rng.integers(0, CLASSES, size)


def test_the_sums_are_those_of_slow_arithmetic():
    pictures, labels = some(1, 60)
    pictures[..., 2] //= 4
    c = (pictures.reshape(60, -1) / 16) @ BASIS.matrix.T
    c *= np.minimum(1, 10 / np.linalg.norm(c, axis=1))[:, None]
    table = records(pictures, labels).class_sums().open_bounded().reshape(CLASSES, -1) / 1024
    for which in range(CLASSES):
        assert table[which, :-1] == pytest.approx(c[labels == which].sum(axis=0), abs=0.2)


@pytest.mark.parametrize("kind", ["white", "red", "any"])
@pytest.mark.parametrize("clip", [TIGHT, WIDE])
def test_one_record_moves_each_sum_by_its_bound_at_most(kind, clip):
    pictures, labels = some(2, 30)
    pictures[13] = {"white": 16, "red": np.array([16, 0, 0])}.get(kind, pictures[13])
    means = np.zeros((CLASSES, BASIS.count))
    whole, less = (
        records(pictures[kept], labels[kept], clip) for kept in (slice(None), np.arange(30) != 13)
    )
    for one, other in (
        (whole.class_sums(), less.class_sums()),
        (whole.second_moment(means), less.second_moment(means)),
    ):
        away = (one.open_bounded() - other.open_bounded()).astype(object)
        assert 0 < int((away**2).sum()) <= min(one.sensitivity.bounds.values())


def test_grey_pictures_have_no_colour():
    pictures, labels = some(3, 5)
    with pytest.raises(BadInput, match="cannot be used"):
        records(pictures[..., 0], labels)
