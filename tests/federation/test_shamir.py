"""Shamir's shares: values worked by hand, reconstruction, and what too few shares say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from stillroom.errors import BadInput
from stillroom.federation.shamir import PRIME, combine, element, evaluated, split

elements = st.integers(0, PRIME - 1)


def test_the_prime_is_the_one_of_curve_25519():
    assert PRIME == 2**255 - 19
    assert pow(2, PRIME - 1, PRIME) == 1


def test_values_worked_by_hand():
    # 1234 + 166 x + 94 x^2 at 1..6, and its value at 0 from three of them.
    shares = evaluated([1234, 166, 94], range(6))
    assert list(shares.values()) == [1494, 1942, 2578, 3402, 4414, 5614]
    assert combine({1: 1942, 3: 3402, 4: 4414}) == 1234
    # -1 + x + x^4 + x^5 at 2: 2 - 1 + 16 + 32; at 1: 2.
    assert evaluated([PRIME - 1, 1, 0, 0, 1, 1], [1, 0]) == {1: 49, 0: 2}
    # A line through (1, 0) and (2, 1) has -1 at 0.
    assert combine({0: 0, 1: 1}) == PRIME - 1
    assert combine({7: 12345}) == 12345


@given(secret=elements, data=st.data())
@settings(max_examples=50, deadline=None)
def test_as_many_as_the_threshold_give_the_secret_back(secret, data):
    holders = data.draw(st.lists(st.integers(0, 5000), min_size=1, max_size=9, unique=True))
    threshold = data.draw(st.integers(1, len(holders)))
    shares = split(secret, threshold, holders)
    chosen = data.draw(st.permutations(holders))[:threshold]
    assert combine({holder: shares[holder] for holder in chosen}) == secret


def test_every_choice_of_holders_opens_the_same_secret():
    secret = element()
    shares = split(secret, 3, range(6))
    for size in (3, 4, 6):
        for chosen in combinations(range(6), size):
            assert combine({holder: shares[holder] for holder in chosen}) == secret


@given(secret=elements, other=elements)
@settings(max_examples=30, deadline=None)
def test_one_share_too_few_fits_every_secret(secret, other):
    shares = split(secret, 3, range(3))
    known = {0: shares[0], 1: shares[1]}
    # The third share that would make it the other secret always exists: solve for it.
    base = combine({**known, 2: 0})
    slope = (combine({**known, 2: 1}) - base) % PRIME
    third = (other - base) * pow(slope, -1, PRIME) % PRIME
    assert combine({**known, 2: third}) == other
    assert third == shares[2] or other != secret


def test_shares_of_one_secret_are_uniform():
    """False alarms: chi-square in both directions, 1e-6 in all."""
    shares = [split(0, 2, [0, 1]) for _ in range(4000)]
    for holder in (0, 1):
        top = [share[holder] >> 251 for share in shares]
        low = [share[holder] & 15 for share in shares]
        for nibbles in (top, low):
            counts = np.bincount(nibbles, minlength=16)
            statistic = np.sum((counts - 250) ** 2 / 250)
            assert chi2.ppf(1.25e-7, 15) < statistic < chi2.isf(1.25e-7, 15)


@pytest.mark.parametrize(
    ("secret", "threshold", "holders"),
    [
        (PRIME, 1, [0]),
        (-1, 1, [0]),
        (1, 0, [0]),
        (1, 3, [0, 1]),
        (1, 1, []),
        (1, 2, [4, 4]),
        (1, 2, [-1, 0]),
    ],
)
def test_sharing_that_would_open_too_early_or_never_is_refused(secret, threshold, holders):
    with pytest.raises(BadInput, match="cannot be shared"):
        split(secret, threshold, holders)
