"""Composites consist of parts of the public pictures; copies move as little as was asked."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public.composites import composites, turned_and_shifted

HEIGHT, WIDTH = 9, 7


def pictures(*more, count=12, dtype=np.uint8):
    """No line of any picture is like another, or like itself mirrored."""
    every = np.random.default_rng(1).permutation(count * HEIGHT * WIDTH * int(np.prod(more)))
    return every.reshape(count, HEIGHT, WIDTH, *more).astype(dtype)


def explained(made, given):
    """Which kind a picture is and, for two parts, where the cut is."""
    for one in given:
        for kind, part in (
            ("turn", one[::-1, ::-1]),
            ("left-right", one[:, ::-1]),
            ("up-down", one[::-1]),
        ):
            if np.array_equal(made, part):
                return kind, None
    for one in given:
        for other in given:
            same = [
                (np.array_equal(m, a), np.array_equal(m, b))
                for m, a, b in zip(made, one, other, strict=True)
            ]
            cut = sum(a for a, _ in same)
            upper, lower = [(True, False)] * cut, [(False, True)] * (len(made) - cut)
            if 0 < cut < len(made) and same == upper + lower:
                return "cut", cut
    return "unknown", None


@pytest.mark.parametrize(("more", "dtype"), [((), np.int16), ((3,), np.float32)])
def test_every_composite_is_made_of_public_parts_in_thirds(more, dtype):
    given = pictures(*more, dtype=dtype)
    made = composites(given, 300, seed=1)
    assert made.shape == (300, *given.shape[1:])
    assert made.dtype == given.dtype
    found = [explained(one, given) for one in made]
    kinds = Counter(kind for kind, _ in found)
    assert kinds["cut"] == kinds["turn"] == kinds["left-right"] + kinds["up-down"] == 100
    assert min(kinds["left-right"], kinds["up-down"]) > 20  # a fair coin: once in 1e9 otherwise
    assert {cut for kind, cut in found if kind == "cut"} == {3, 4, 5, 6}


def test_a_blend_would_not_pass_for_a_composite():
    given = pictures(dtype=np.int16)
    assert explained(given[0], given)[0] == "unknown"
    assert explained((given[0] + given[1]) // 2, given)[0] == "unknown"


def test_the_pictures_given_stay_as_they_are_and_seeds_matter():
    given = pictures()
    before = given.copy()
    made = composites(given, 30, seed=1)
    assert np.array_equal(given, before)
    assert np.array_equal(made, composites(given, 30, seed=1))
    assert not np.array_equal(made, composites(given, 30, seed=2))
    assert len(composites(given, 0, seed=1)) == 0
    assert not np.array_equal(
        turned_and_shifted(given, seed=1, degrees=9, shift=0.1, scale=0.1), given
    )
    assert np.array_equal(given, before)


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (pictures(count=1), 3),
        (pictures()[:, :1], 3),
        (pictures(), -1),
        (pictures()[0], 3),
        (pictures()[:, :, :0], 3),
        (pictures().astype(str), 3),
    ],
)
def test_what_no_composite_can_be_made_of_is_refused(given, count):
    with pytest.raises(BadInput):
        composites(given, count, seed=1)


STILL = {"degrees": 0.0, "shift": 0.0, "scale": 0.0}


@pytest.mark.parametrize("more", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64])
def test_a_copy_that_may_not_move_is_the_same(more, dtype):
    given = pictures(*more).astype(dtype)
    copies = turned_and_shifted(given, seed=1, **STILL)
    assert copies.dtype == given.dtype
    assert np.allclose(copies, given, rtol=1e-3, atol=1e-3)


def spot(count, row, column, height=41, width=61):
    """A soft round spot, and where it is from the middle."""
    y, x = np.mgrid[:height, :width]
    one = np.exp(-((y - row) ** 2 + (x - column) ** 2) / 8)
    return np.tile(one, (count, 1, 1))


def centre_of_mass(copies):
    total = copies.sum(axis=(1, 2))
    y, x = np.mgrid[: copies.shape[1], : copies.shape[2]]
    middle = (np.array(copies.shape[1:]) - 1) / 2
    rows, columns = (copies * y).sum(axis=(1, 2)) / total, (copies * x).sum(axis=(1, 2)) / total
    return rows - middle[0], columns - middle[1]


def test_shifts_reach_their_bound_and_no_farther():
    rows, columns = centre_of_mass(
        turned_and_shifted(spot(400, 20, 30), seed=1, **{**STILL, "shift": 0.1})
    )
    assert 3.9 < np.abs(rows).max() < 4.15
    assert 5.9 < np.abs(columns).max() < 6.15
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 0.25  # 5 standard deviations


def test_turns_keep_the_distance_from_the_middle_and_reach_their_bound():
    rows, columns = centre_of_mass(
        turned_and_shifted(spot(400, 20, 42), seed=1, **{**STILL, "degrees": 30.0})
    )
    assert np.hypot(rows, columns) == pytest.approx(np.full(400, 12.0), abs=0.1)
    assert 29 < np.abs(np.degrees(np.arctan2(rows, columns))).max() < 30.5


def test_scales_reach_their_bound_and_no_farther():
    rows, columns = centre_of_mass(
        turned_and_shifted(spot(400, 20, 40), seed=1, **{**STILL, "scale": 0.2})
    )
    assert np.abs(rows).max() < 0.05
    assert 8.0 - 0.1 < columns.min() < 8.1
    assert 11.9 < columns.max() < 12.1


def test_each_picture_and_each_name_moves_in_its_own_way():
    given = spot(5, 20, 30)
    little = {"degrees": 9.0, "shift": 0.1, "scale": 0.1}
    copies = turned_and_shifted(given, "epoch", 1, seed=1, **little)
    assert len(np.unique(copies.reshape(5, -1), axis=0)) == 5
    assert np.array_equal(copies, turned_and_shifted(given, "epoch", 1, seed=1, **little))
    assert not np.array_equal(copies, turned_and_shifted(given, "epoch", 2, seed=1, **little))


def test_what_comes_in_from_outside_is_black():
    white = np.full((50, 8, 8), 200, dtype=np.uint8)
    copies = turned_and_shifted(white, seed=1, **{**STILL, "shift": 0.5})
    assert copies.min() == 0
    assert copies.max() == 200


@pytest.mark.parametrize(
    "wrong", [{"degrees": -1.0}, {"shift": 1.5}, {"scale": 1.0}, {"scale": float("nan")}]
)
def test_bounds_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match="out of range"):
        turned_and_shifted(pictures(), seed=1, **{**STILL, **wrong})
