"""Whole sessions: exact sums, vanishing entities, and random schedules of faults."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from federation.parties import planned, rows_of, total_of
from federation.schedules import Fault, Schedule, random_schedule
from stillroom.errors import BadInput
from stillroom.federation import Leg, Plan, Stage, run, secure_sum
from stillroom.gate.entropy import SeededEntropy
from stillroom.gate.mechanisms.discrete_gaussian import noise

STAGES = list(Stage)[:-1]
RING = {"neighbours": 6}


@pytest.mark.parametrize("more", [{}, {"bits": 64}, RING, {"largest": 0}])
def test_without_faults_the_sum_is_exact(more):
    plan, identities = planned(9, 1, 1, **more)
    rows = rows_of(plan)
    opened = secure_sum(plan, identities, rows)
    assert opened.survivors == plan.names
    assert opened.total.dtype == np.int64
    np.testing.assert_array_equal(opened.total, total_of(rows, plan.names))


def test_the_largest_entries_do_not_wrap_around():
    for bits in (32, 64):
        largest = (2 ** (bits - 1) - 1) // 3
        plan, identities = planned(3, 1, bits=bits, largest=largest)
        for sign in (1, -1):
            rows = dict.fromkeys(plan.names, np.full(plan.shape, sign * largest))
            assert np.all(secure_sum(plan, identities, rows).total == 3 * sign * largest)


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("more", [{}, RING])
def test_d_may_vanish_at_any_stage_and_one_more_may_not(stage, up, more):
    plan, identities = planned(9, 2, 1, **more)
    rows = rows_of(plan)
    for gone in ((0, 4), (7, 8), (0, 4, 8)):
        faults = [Fault(Leg(stage, position, up), "vanish") for position in gone]
        session = run(plan, identities, rows, Schedule(faults))
        if len(gone) > plan.dropouts:
            assert session.opened is None
            assert session.refusal is not None
            continue
        # Whoever's masked rows arrived is in the sum, even if it vanished afterwards.
        late = stage > Stage.MASKED
        names = [name for i, name in enumerate(plan.names) if late or i not in gone]
        assert session.opened.survivors == tuple(names)
        np.testing.assert_array_equal(session.opened.total, total_of(rows, names))


def test_d_may_vanish_at_different_stages():
    plan, identities = planned(9, 3, 2)
    rows = rows_of(plan)
    legs = [Leg(Stage.SHARE, 1, True), Leg(Stage.MASKED, 5, True), Leg(Stage.UNMASK, 8, False)]
    session = run(plan, identities, rows, Schedule([Fault(leg, "vanish") for leg in legs]))
    assert session.opened.survivors == tuple(n for n in plan.names if n not in ("e01", "e05"))
    np.testing.assert_array_equal(session.opened.total, total_of(rows, session.opened.survivors))


def check_schedule(number):
    """One random plan under one random schedule; whether it opened."""
    draws = np.random.default_rng([number, 77])
    size = int(draws.integers(3, 7))
    dropouts = int(draws.integers(0, (size + 1) // 2))
    colluders = int(draws.integers(0, min(2, size - 2 * dropouts)))
    # 4 neighbours, of whom 3 open a secret, may lose one.
    near = 4 if size == 6 and dropouts == 1 and not colluders else None
    plan, identities = planned(size, dropouts, colluders, shape=(2, 2), neighbours=near)
    rows = rows_of(plan, number)
    schedule = random_schedule(draws, size)
    session = run(plan, identities, rows, schedule)
    for own, key in schedule.shares().values():
        assert own < plan.threshold or key < plan.threshold
    senders = [reply.sender for reply in schedule.unmasked]
    assert len(senders) == len(set(senders))
    if session.opened is None:
        # What happens to one entity's messages harms nobody else.
        assert len(schedule.touched) > plan.dropouts
        return False
    survivors = session.opened.survivors
    assert len(survivors) >= plan.floor
    untouched = {n for i, n in enumerate(plan.names) if i not in schedule.touched}
    assert untouched <= set(survivors)
    np.testing.assert_array_equal(session.opened.total, total_of(rows, survivors))
    return True


@pytest.mark.parametrize("tenth", range(10))
def test_a_thousand_schedules_give_no_wrong_sum(tenth):
    opened = [check_schedule(100 * tenth + number) for number in range(100)]
    assert 20 < sum(opened) < 80


@pytest.mark.slow
@pytest.mark.parametrize("hundredth", range(100))
def test_ten_thousand_schedules_give_no_wrong_sum(hundredth):
    opened = [check_schedule(10_000 + 100 * hundredth + number) for number in range(100)]
    assert 20 < sum(opened) < 80


def test_noise_shares_of_the_callers_add_up():
    """False alarms: a cell's variance is within 6 standard errors, less than 1e-8."""
    plan, identities = planned(6, 2, shape=(2000, 10), largest=10**6)
    entropy, sigma = SeededEntropy(11), 20
    shares = {
        name: noise(entropy, Fraction(sigma), plan.cells).reshape(plan.shape) for name in plan.names
    }
    for gone in ((), (0,), (0, 3)):
        faults = [Fault(Leg(Stage.MASKED, position, True), "vanish") for position in gone]
        opened = run(plan, identities, shares, Schedule(faults)).opened
        ratio = np.mean(opened.total.astype(float) ** 2) / ((6 - len(gone)) * sigma**2)
        assert abs(ratio - 1) < 6 * np.sqrt(2 / plan.cells)


def test_rows_that_do_not_fit_are_refused_before_anything_is_sent():
    plan, identities = planned(3)
    rows = rows_of(plan)
    sent = []
    for bad in (
        np.zeros((4, 3), np.int64),
        np.zeros(plan.shape),
        np.full(plan.shape, plan.largest + 1),
        np.full(plan.shape, -(2**63)),
        np.full(plan.shape, 2**64 - 1, np.uint64),
    ):
        with pytest.raises(BadInput):
            run(plan, identities, {**rows, "e01": bad}, lambda leg, data: sent.append(data) or ())
    with pytest.raises(BadInput, match="no rows here"):
        run(plan, identities, {})
    assert sent == []


def test_a_session_without_a_network_opens_nothing():
    plan, identities = planned(3)
    session = run(plan, identities, rows_of(plan), lambda leg, data: ())
    assert session.opened is None
    assert "0 entities are left" in str(session.refusal)


def test_a_plan_with_names_in_any_order_is_the_same_plan():
    plan, identities = planned(4)
    turned = Plan(plan.session, dict(reversed(plan.roster.items())), 1, 0, plan.shape, plan.largest)
    assert turned.digest == plan.digest
    assert secure_sum(turned, identities, rows_of(plan)).survivors == plan.names
