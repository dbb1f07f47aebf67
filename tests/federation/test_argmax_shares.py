"""Shares of noisy rows: one says nothing, two say all, and damaged ones are refused."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from federation.sharing import planned, shared
from stillroom.errors import BadInput
from stillroom.federation import argmax_shares
from stillroom.federation.argmax_plan import MODULUS, MOST_BITS, SECURITY, ArgmaxPlan
from stillroom.federation.argmax_shares import reconstructed, share_rows, summed

FALSE_ALARMS = 1e-6


def test_the_modulus_suits_mpyc():
    assert MODULUS % 4 == 3
    assert MODULUS.bit_length() > MOST_BITS + SECURITY + 1
    # Lucas and Lehmer: 2^127 - 1 is prime.
    number = 4
    for _ in range(125):
        number = (number * number - 2) % MODULUS
    assert number == 0


@pytest.mark.parametrize("pair", list(combinations(range(3), 2)))
def test_any_two_parties_reconstruct(pair):
    plan = planned(queries=50, classes=4, weight=500)
    rows = np.random.default_rng(1).integers(-500, 500, (50, 4))
    packets = share_rows(plan, 1, rows)
    np.testing.assert_array_equal(reconstructed(plan, [packets[one] for one in pair]), rows)


def test_sums_of_shares_are_shares_of_the_sum():
    plan = planned(queries=20, entities=5, dropouts=2, weight=9)
    rows = np.random.default_rng(2).integers(-9, 9, (5, 20, 3))
    packets = shared(plan, rows)
    contents = [[one.content for one in packets if one.party == party] for party in (0, 1)]
    for present in (slice(None), slice(0, 3)):
        first, second = (summed(plan, party, contents[party][present]) for party in (0, 1))
        value = (2 * first - second) % MODULUS
        assert ((value - rows[present].sum(0)) % MODULUS == 0).all()


def looks_uniform(packets) -> bool:
    """Chi-square of every byte of the shares, both tails, `FALSE_ALARMS` for all of them together.

    The top byte has 7 bits. Elements are independent, and so are bytes of one up to 2^-120.
    """
    level = FALSE_ALARMS / (16 * len(packets)) / 2
    for packet in packets:
        body = np.frombuffer(packet.content[-32 - 16 * 60_000 : -32], np.uint8).reshape(-1, 16)
        for place in range(16):
            values = 128 if place == 15 else 256
            counts = np.bincount(body[:, place], minlength=values)
            if len(counts) > values:
                return False
            found = ((counts - len(body) / values) ** 2).sum() * values / len(body)
            if not level < stats.chi2.cdf(found, values - 1) < 1 - level:
                return False
    return True


SHARED = planned(queries=10_000, classes=6, entities=1)
ZEROS = np.zeros((10_000, 6), np.int64)


@pytest.mark.parametrize("rows", [ZEROS, ZEROS + 1, ZEROS - 1])
def test_one_partys_shares_are_uniform(rows):
    assert looks_uniform(share_rows(SHARED, 0, rows))


@pytest.mark.parametrize(
    "twin",
    [
        lambda count: np.full(count, 2**126 // 3, object),
        lambda count: np.zeros(count, object),
        lambda count: np.arange(count).astype(object) * (MODULUS // 60_000),
        lambda count: np.array([number >> 4 for number in real(count)], object),
    ],
    ids=["constant", "none", "evenly spread", "four bits short"],
)
def test_coefficients_that_are_not_uniform_are_noticed(monkeypatch, twin):
    monkeypatch.setattr(argmax_shares, "coefficients", twin)
    assert not looks_uniform(share_rows(SHARED, 0, ZEROS))


real = argmax_shares.coefficients


def test_no_two_sharings_are_alike():
    first, second = share_rows(SHARED, 0, ZEROS), share_rows(SHARED, 0, ZEROS)
    assert all(one.content != other.content for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("numbers", "bits"),
    [
        ({"entities": 250, "sigma": Fraction(40)}, 11),
        ({"entities": 250, "sigma": Fraction(40), "dropouts": 200}, 12),
        ({"entities": 250, "sigma": Fraction(0)}, 9),
        ({"entities": 255, "sigma": Fraction(0)}, 9),
        ({"entities": 256, "sigma": Fraction(0)}, 10),
        ({"entities": 1000, "sigma": Fraction(1000), "weight": 100}, 18),
    ],
)
def test_bits(numbers, bits):
    plan = ArgmaxPlan("a test", queries=1000, classes=10, **numbers)
    assert plan.bits == bits
    spread = float(plan.sigma) * (plan.entities / (plan.entities - plan.dropouts)) ** 0.5
    largest = plan.entities * plan.weight + 10.3 * spread  # sqrt(2 log(2 x 10^4 x 2^64))
    assert 2 ** (bits - 2) <= largest < 2 ** (bits - 1)


def test_noise_beyond_the_bits_is_as_rare_as_stated():
    """By the continuous Gaussian of the same spread, whose tail is smaller than the bound used."""
    plan = ArgmaxPlan("a test", 1000, 10, 100, Fraction(60))
    over = 2 ** (plan.bits - 1) - plan.entities
    assert 2 * stats.norm.sf(over / 60) * 10_000 < 2**-64


@pytest.mark.parametrize(
    "numbers",
    [
        {"weight": 2**31},
        {"sigma": Fraction(2**30)},
        {"entities": 2**30, "weight": 4},
        {"entities": 2**20, "sigma": 2**20, "dropouts": 2**20 - 1},
    ],
)
def test_what_does_not_fit_is_refused(numbers):
    with pytest.raises(BadInput, match=r"need .* bits") as caught:
        planned(**numbers)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "numbers",
    [
        *({"queries": 0}, {"classes": 1}, {"entities": 0}, {"sigma": -1}, {"sigma": "often"}),
        *({"weight": 0}, {"dropouts": -1}, {"dropouts": 3}, {"dropouts": 1, "colluding": 2}),
        *({"queries": 10**7}, {"queries": 2.0}, {"entities": True}, {"sigma": float("nan")}),
    ],
)
def test_numbers_out_of_range_are_refused(numbers):
    with pytest.raises(BadInput, match="out of range"):
        planned(**numbers)


@pytest.mark.parametrize(
    "rows",
    [
        *(np.zeros((3, 4), int), np.zeros((4, 4), int), np.zeros(12, int), np.zeros((4, 3))),
        *(np.zeros((4, 3), bool), np.zeros((4, 3), object), np.zeros((1, 4, 3), int)),
    ],
    ids=str,
)
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(BadInput, match="rows are integers"):
        share_rows(planned(), 0, rows)


@pytest.mark.parametrize("number", [4, -5, 2**62, -(2**62)])
def test_rows_that_do_not_fit_are_refused_and_not_quoted(number):
    plan = planned()
    assert plan.bits == 3
    rows = np.zeros((4, 3), np.int64)
    rows[2, 1] = number
    with pytest.raises(BadInput, match="do not fit") as caught:
        share_rows(plan, 0, rows)
    assert str(number) not in str(caught.value)


def sealed(body: bytes) -> bytes:
    """A damaged packet whose checksum is right again."""
    return body + hashlib.sha256(body).digest()


PLAN = planned()
GOOD = [packet.content for packet in shared(PLAN, np.zeros((3, 4, 3), int)) if packet.party == 0]
OTHER = [packet.content for packet in shared(PLAN, np.zeros((3, 4, 3), int)) if packet.party == 1]
ELSEWHERE = share_rows(planned(classes=3, weight=2), 0, np.zeros((4, 3), int))[0].content


@pytest.mark.parametrize(
    ("contents", "what"),
    [
        ([b"", *GOOD[1:]], "damaged"),
        ([GOOD[0][:-1], *GOOD[1:]], "damaged"),
        ([GOOD[0] + b"\0", *GOOD[1:]], "damaged"),
        ([GOOD[0][:100] + b"\xff\xfe" + GOOD[0][102:], *GOOD[1:]], "damaged"),
        ([sealed(b"x" + GOOD[0][1:-32]), *GOOD[1:]], "belongs to another"),
        ([OTHER[0], *GOOD[1:]], "belongs to another"),
        ([ELSEWHERE, *GOOD[1:]], "belongs to another"),
        ([sealed(GOOD[0][:-48] + b"\xff" * 16), *GOOD[1:]], "outside the field"),
        ([sealed(GOOD[0][:-48] + b"\xff" * 15 + b"\x7f"), *GOOD[1:]], "outside the field"),
        ([GOOD[0], *GOOD], "twice"),
        (GOOD[1:], "only 2 of 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_packets_that_cannot_be_added_are_refused(contents, what):
    with pytest.raises(BadInput, match=what) as caught:
        summed(PLAN, 0, contents)
    assert caught.value.remedy


def test_packets_do_not_show_their_content():
    assert repr(share_rows(PLAN, 2, np.zeros((4, 3), int))[1]) == "SharePacket(party=1, entity=2)"
