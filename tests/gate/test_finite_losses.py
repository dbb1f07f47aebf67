"""Finite pairs of laws: on a grid they are never cheaper, and hardly dearer."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.gate import ResponseShare, TruncatedGeometric, UnaryEncoding
from stillroom.gate.accounting import price
from stillroom.gate.entity_events import TruncatedGeometricEvent
from stillroom.gate.finite_losses import Losses, on_grid
from stillroom.gate.loss_distributions import Composed, finite_part
from stillroom.vocabulary import Pair, Sensitivity, Unit

ENTITY = Pair.of(Unit.ENTITY)


def delta(losses: Losses, epsilon: float) -> float:
    return float((losses.mass * np.maximum(0, -np.expm1(epsilon - losses.loss))).sum())


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=20),
    st.floats(1e-3, 0.5),
    st.floats(-3, 3),
)
def test_a_grid_is_never_below_and_exact_at_its_points(values, step, epsilon):
    losses = Losses(np.array(values), np.full(len(values), 1 / len(values)))
    lowest, masses = on_grid(losses, step)
    assert masses.min() >= 0
    grid = Losses((lowest + np.arange(len(masses))) * step, masses)
    assert masses.sum() == pytest.approx(1)
    assert delta(grid, epsilon) >= delta(losses, epsilon) - 1e-12
    at_point = round(epsilon / step) * step
    assert delta(grid, at_point) == pytest.approx(delta(losses, at_point), abs=1e-12)
    # Both laws keep their mass.
    second = (masses * np.exp(-grid.loss)).sum()
    assert second == pytest.approx((losses.mass * np.exp(-losses.loss)).sum())


def test_between_the_roundings_of_the_library():
    """dp_accounting rounds each loss down or up; the dots lie between, near the true value."""
    mechanism = TruncatedGeometric(10, 10)
    laws = [dict(enumerate(np.log(mechanism.law(truth)))) for truth in (9, 0)]
    found = {
        up: pld.from_two_probability_mass_functions(
            *laws, pessimistic_estimate=up, value_discretization_interval=1e-3
        ).self_compose(50)
        for up in (False, True)
    }
    losses = mechanism.lines(1)[0][0].losses
    dots = finite_part(losses, value_discretization_interval=1e-3).self_compose(50)
    for at in (1e-3, 1e-5, 1e-8):
        low, mine, high = (
            law.get_epsilon_for_delta(at) for law in (found[False], dots, found[True])
        )
        assert low < mine < high
        assert mine - price(mechanism.lines(50), ENTITY).epsilon(at) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_a_response_by_chance_costs_nothing(classes):
    share = ResponseShare(50, 0, 0, classes, Fraction(1, classes))
    assert price(share.lines(1), ENTITY).epsilon(1e-5) < 1e-3


@pytest.mark.parametrize(
    "mechanism",
    [
        TruncatedGeometric(2, Fraction(1, 40)),
        TruncatedGeometric(10_000, 2**30),
        UnaryEncoding(2, Fraction(1, 2**300)),
        UnaryEncoding(2, Fraction(1, 2) - Fraction(1, 2**300)),
        ResponseShare(1, 0, 0, 2, 1 - Fraction(1, 2**300)),
        ResponseShare(10**6, 0, 0, 10_000, Fraction(1, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [1, 1000, 10**12])
def test_the_ends_of_the_ranges_have_a_price(mechanism, count):
    found = price(mechanism.lines(count), ENTITY).epsilon(1e-5)
    assert found >= 0
    assert not math.isnan(found)


def test_slack_is_charged_to_epsilon_and_delta():
    law = pld.from_laplace_mechanism(1.0)
    free, charged = Composed(law, 0.0), Composed(law, 0.0, slack=0.1)
    assert charged.epsilon(1e-3) == free.epsilon(1e-3 * math.exp(-0.1)) + 0.2


def test_several_answers_that_change_cost_as_many():
    alone = TruncatedGeometric(10, 10).lines(6)[0][0]
    tripled = Sensitivity(alone.sensitivity.norm, {ENTITY: Fraction(3)})
    three = TruncatedGeometricEvent(10, Fraction(10), tripled)
    assert price([(three, 2)], ENTITY).epsilon(1e-5) == pytest.approx(
        price([(alone, 6)], ENTITY).epsilon(1e-5), rel=1e-3
    )
