"""Plans: any solvable combination, and a clear word for the others."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom import plan
from stillroom.errors import BadInput
from stillroom.gate import NoisyCounts, NoisyVotes
from stillroom.gate.accounting import price
from stillroom.gate.calibration import smallest_sigma
from stillroom.vocabulary import RECORD


def test_each_number_can_be_the_unknown_one():
    priced = plan(teachers=100, queries=50, sigma=30)
    assert priced.solved == "epsilon"
    by_noise = plan(queries=50, epsilon=priced.epsilon)
    assert by_noise.solved == "sigma"
    assert float(by_noise.sigma) == pytest.approx(30, abs=0.005)
    by_count = plan(sigma=30, epsilon=priced.epsilon)
    assert by_count.solved == "queries"
    assert by_count.queries == 50
    by_delta = plan(sigma=30, queries=50, epsilon=priced.epsilon)
    assert by_delta.solved == "delta"
    assert by_delta.delta == pytest.approx(1e-5, rel=0.02)


def test_everything_given_is_a_check():
    assert plan(queries=50, sigma=30, epsilon=5, delta=1e-5).fits
    assert not plan(queries=50, sigma=30, epsilon=0.5, delta=1e-5).fits


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 3000), st.floats(0.05, 15), st.sampled_from([1e-5, 1e-8]))
def test_the_smallest_noise_fits_and_less_does_not(queries, epsilon, delta):
    sigma = smallest_sigma(lambda s: NoisyVotes(1, 2, s).lines(queries), epsilon, delta, RECORD)
    assert plan(queries=queries, sigma=sigma, delta=delta).epsilon <= epsilon
    if sigma > Fraction(1, 1000):
        less = sigma - Fraction(1, 1000)
        # Discretisation may move a figure by a few parts in a million between neighbours.
        assert plan(queries=queries, sigma=less, delta=delta).epsilon > epsilon * (1 - 1e-5)


@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"queries": 5},
        {"sigma": 5},
        {"epsilon": 5},
        {"queries": 0, "sigma": 5},
        {"queries": 5, "sigma": 0},
        {"queries": 5, "sigma": -1},
        {"queries": 5, "epsilon": 0},
        {"queries": 5, "epsilon": -2},
        {"queries": 5, "epsilon": float("nan")},
        {"queries": 5, "sigma": 5, "delta": 1.0},
        {"queries": 5, "sigma": 5, "delta": 0.0},
        {"queries": 5, "sigma": 5, "classes": 1},
        {"queries": 5, "sigma": 5, "teachers": 0},
        {"queries": 5, "sigma": 5, "teachers": 9, "consensus": [1.5]},
        {"sigma": 1, "epsilon": 0.001},
        {"queries": 100, "sigma": 1, "epsilon": 0.01},
    ],
)
def test_bad_numbers_are_refused_with_a_remedy(numbers):
    with pytest.raises(BadInput) as caught:
        plan(**numbers)
    assert caught.value.remedy


def test_json_is_json_even_when_infinite():
    document = plan(queries=100_000, sigma="0.01").to_json()
    assert document["epsilon"]["certified"] == "infinite"
    json.dumps(document, allow_nan=False)


def test_the_least_noise_is_found_where_rdp_has_no_room():
    """Beside an evaluation at sigma 6 RDP never comes below 0.65; the certified price does."""
    beside = NoisyCounts(sigma=6, width=100).lines(1)

    def lines(sigma):
        return NoisyVotes(1, 2, sigma).lines(20) + beside

    assert price(beside, RECORD).rdp(1e-5) > 0.62 > price(beside, RECORD).epsilon(1e-5)
    sigma = smallest_sigma(lines, 0.62, 1e-5, RECORD)
    assert price(lines(sigma), RECORD).epsilon(1e-5) <= 0.62
    assert price(lines(sigma - Fraction(1, 1000)), RECORD).epsilon(1e-5) > 0.62
    with pytest.raises(BadInput):
        smallest_sigma(lines, 0.59, 1e-5, RECORD)
