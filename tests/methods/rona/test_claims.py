"""RONA's own figures: what its formula gives, and what it printed."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from methods.rona.published_plans import capped, plan_of
from stillroom.errors import BadInput
from stillroom.gate.accounting import price
from stillroom.methods.rona.claims import PUBLISHED, claimed_epsilon, verdict_on
from stillroom.vocabulary import RECORD


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 38.7), (math.sqrt(2), 64.2), (2, 109.3)])
def test_the_demonstrations_numbers_do_not_give_the_papers_epsilon(sensitivity, epsilon):
    found = claimed_epsilon(3125, 10, 1e-5, sensitivity)
    assert found == pytest.approx(epsilon, abs=0.05)
    assert (
        found > 4 * max(each.epsilon for part in PUBLISHED.values() for each in part.values()) - 1
    )


def test_the_printed_pairs():
    printed = {
        (name, h.epsilon, h.delta) for part in PUBLISHED.values() for name, h in part.items()
    }
    assert printed == {
        ("mnist", 7.68, 1e-5),
        ("svhn", 7.03, 1e-6),
        ("cifar-10", 8.87, 1e-5),
        ("mnist", 9.60, 1e-5),
        ("svhn", 9.83, 1e-6),
        ("cifar-10", 9.59, 1e-5),
    }


def test_the_residual_is_charged_for_twice_the_bound():
    plan = plan_of(reading="residual", sigma=Fraction(40), batch=16)
    wishes = capped(plan, 40, hint_width=3, classes=10, most=60)
    assert sum(count for _, count in wishes.values()) == 60
    lines = [line for mechanism, count in wishes.values() for line in mechanism.lines(count)]
    charged = price(lines, RECORD).epsilon(1e-5)
    assert charged == pytest.approx(claimed_epsilon(60, 40, 1e-5, sensitivity=2), rel=2e-3)
    assert charged > 1.9 * claimed_epsilon(60, 40, 1e-5)


def test_the_literal_reading_has_no_price():
    wishes = capped(plan_of(batch=16), 40, hint_width=3, classes=10)
    lines = [line for mechanism, count in wishes.values() for line in mechanism.lines(count)]
    assert price(lines, RECORD).epsilon(1e-5) == math.inf


def test_the_sentences():
    literal = verdict_on(plan_of(), 40_000, 1e-5)
    assert "3125 calls, epsilon 38.73 at delta 1e-05" in literal
    assert "Executed: 3200. The claim does not hold: the noise on a loss never" in literal
    assert "infinite" in literal
    residual = verdict_on(plan_of(reading="residual"), 40_000, 1e-5)
    assert "The claim holds for a larger epsilon" in residual
    assert "2B" in residual


@pytest.mark.parametrize("wrong", [{"calls": 0}, {"sigma": 0}, {"delta": 0}, {"sensitivity": 0}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput):
        claimed_epsilon(**{"calls": 1, "sigma": 1.0, "delta": 1e-5, **wrong})
