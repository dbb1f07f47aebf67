"""Every mechanism passes every check; every broken twin of it fails the check made for it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from drawing import drawn
from privacy.cases import CASES
from privacy.conformance import CHECKS, Case, answers_of, check_price, new_ledger
from privacy.twins import TWINS, Twin
from stillroom.errors import BadInput, BudgetExhausted, NotSanitised
from stillroom.gate import Gate, GaussianAnswers, Ledger, Mechanism, NoisyVotes, Unprotected
from stillroom.gate.accounting import pairs_of, price
from stillroom.gate.ledger import verify
from stillroom.gate.mechanisms import mechanism_from_json
from stillroom.vocabulary import RECORD, Bounded, Norm, Sensitivity


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_mechanism_conforms(name, check, tmp_path):
    check(CASES[name](), tmp_path)


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("name", CASES)
def test_broken_twin_is_caught(name, twin, tmp_path):
    breaks, check = TWINS[twin]
    with pytest.raises(AssertionError):
        check(breaks(CASES[name]()), tmp_path)


def test_no_mechanism_is_forgotten():
    def leaves(cls):
        return (
            {cls} if not cls.__subclasses__() else set().union(*map(leaves, cls.__subclasses__()))
        )

    concrete = {cls.name for cls in leaves(Mechanism) if cls.__module__.startswith("stillroom.")}
    # It promises nothing, so no check of a promise applies; it has its own below.
    assert concrete <= {*CASES, Unprotected.name}


LEAK = Unprotected(width=2, reason="a leak for a test")
VALUE = np.array([[3, -7]])


def bare_case(mechanism: Mechanism = LEAK) -> Case:
    """Two worlds that are told apart by one look."""
    here, there = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    return Case(mechanism, VALUE, lambda answers: answers[:, 0], {3: 1.0}, lambda _: (here, there))


def test_unprotected_hands_through_and_costs_infinity(tmp_path):
    ledger = new_ledger(tmp_path)
    assert answers_of(bare_case(), ledger, 5).tolist() == VALUE.tolist() * 5
    (draw,) = ledger.store.rows("kind = 'draw'")
    assert draw.body["count"] == 5
    (block,) = ledger.store.rows("kind = 'block'")
    assert not block.body["epsilon"]
    assert not block.body["totals"]
    assert block.body["events"][0]["reason"] == LEAK.reason
    verify(ledger)
    lines = LEAK.lines(1)
    assert pairs_of(lines) == []
    assert price(lines, RECORD).epsilon(1e-5) == math.inf
    assert mechanism_from_json(LEAK.describe()) == LEAK


def test_unprotected_is_refused_unless_infinity_is_accepted(tmp_path):
    ledger = new_ledger(tmp_path)
    gate = Gate(ledger, ids=["a"])
    votes = NoisyVotes(teachers=5, classes=3, sigma=100)
    both = {"votes": (votes, 1), "leak": (LEAK, 1)}
    for wishes in ({"leak": (LEAK, 1)}, both):
        with pytest.raises(BudgetExhausted):
            gate.reserve_all(wishes)
    assert not list(ledger.store.rows("kind IN ('block', 'draw')"))
    gate.reserve_all(both, accept_infinite=True)
    # The whole budget is gone: even an answer that had fitted is refused.
    with pytest.raises(BudgetExhausted):
        Gate(Ledger.open(ledger.path), ids=["a"]).reserve(votes, 1)


class ClaimsABound(Twin):
    """Hands values through, and charges as if it drew noise."""

    def lines(self, count):
        return GaussianAnswers(sigma=100, width=2, squared_distance=1).lines(count)


def test_unprotected_that_claims_a_price_is_caught(tmp_path):
    with pytest.raises(AssertionError):
        check_price(bare_case(ClaimsABound(LEAK)), tmp_path)


def test_an_unprotected_value_passes_no_other_way(tmp_path):
    bare = Bounded(VALUE, LEAK.sensitivity)
    way = Gate(new_ledger(tmp_path), ids=["a"]).reserve(GaussianAnswers(100, 2, 4), 1)
    with pytest.raises(NotSanitised):
        drawn(way, bare)
    proven = Sensitivity.uniform(Norm.L2_SQUARED, 4)
    assert LEAK.sensitivity.covers(proven)
    assert not proven.covers(LEAK.sensitivity)


@pytest.mark.parametrize("reason", ["", "  ", None])
def test_nothing_leaves_without_a_reason(reason):
    with pytest.raises(BadInput):
        Unprotected(width=1, reason=reason)
