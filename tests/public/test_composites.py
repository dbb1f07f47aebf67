"""Composites consist of parts of the public pictures."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public.composites import composites

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
