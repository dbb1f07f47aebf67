"""Plans: which numbers are refused, and what the neighbour graph promises."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from stillroom.errors import BadInput
from stillroom.federation import Plan, suggested_neighbours
from stillroom.federation.plan import neighbourhood_threshold


def roster(size):
    return {f"e{number:03}": bytes([number % 256] * 32) for number in range(size)}


def plan_for(size, dropouts=0, colluders=0, **more):
    given = {"shape": (2, 3), "largest": 10, **more}
    return Plan("s", roster(size), dropouts, colluders, **given)


def is_accepted(*numbers, **more):
    try:
        plan_for(*numbers, **more)
    except BadInput:
        return False
    return True


def test_exactly_the_plans_with_one_opening_are_accepted():
    for size in range(2, 12):
        for dropouts in range(size + 1):
            for colluders in range(size + 1):
                fine = size - dropouts > colluders and size > 2 * dropouts + colluders
                assert is_accepted(size, dropouts, colluders) == fine
                if fine:
                    plan = plan_for(size, dropouts, colluders)
                    assert 2 * plan.threshold > size + colluders
                    assert plan.threshold == plan.floor > colluders


@pytest.mark.parametrize(
    "change",
    [
        {"session": ""},
        {"session": "x" * 101},
        {"roster": roster(1)},
        {"roster": {"a": bytes(32), "b": bytes(31)}},
        {"dropouts": -1},
        {"dropouts": 1.0},
        {"colluders": True},
        {"shape": (0, 3)},
        {"shape": (2, 3, 4)},
        {"shape": (2**20, 2**20)},
        {"largest": -1},
        {"bits": 16},
    ],
)
def test_numbers_out_of_range_are_refused(change):
    with pytest.raises(BadInput):
        replace(plan_for(5), **change)


def test_sums_have_head_room():
    assert is_accepted(4, largest=2**29 - 1)
    assert not is_accepted(4, largest=2**29)
    assert is_accepted(4, largest=2**29, bits=64)
    assert not is_accepted(4, largest=2**61, bits=64)


def test_every_field_changes_the_digest():
    plan = plan_for(9, 1)
    changes = (
        *({"session": "t"}, {"roster": roster(8)}, {"dropouts": 2}, {"colluders": 1}),
        *({"shape": (3, 2)}, {"largest": 11}, {"bits": 64}, {"neighbours": 4}, {"subject": "x"}),
        {"roster": {**roster(9), "e000": bytes([9] * 32)}},
    )
    digests = {replace(plan, **change).digest for change in changes} | {plan.digest}
    assert len(digests) == len(changes) + 1


def test_the_graph_is_regular_and_mutual_and_follows_from_the_plan():
    plan = plan_for(30, 2, neighbours=8)
    near = [set(plan.neighbours_of(p)) for p in range(30)]
    assert all(len(of) == 8 and p not in of for p, of in enumerate(near))
    assert all(p in near[q] for p in range(30) for q in near[p])
    other = replace(plan, session="t")
    assert near != [set(other.neighbours_of(p)) for p in range(30)]
    assert near == [set(replace(plan).neighbours_of(p)) for p in range(30)]


def connected(plan, left):
    seen, edge = set(), [next(iter(left))]
    while edge:
        p = edge.pop()
        if p not in seen:
            seen.add(p)
            edge += left.intersection(plan.neighbours_of(p))
    return seen == left


def test_no_c_plus_d_entities_cut_the_graph():
    plan = plan_for(11, 2, 1, neighbours=4)
    everybody = set(range(11))
    for gone in combinations(range(11), 3):
        assert connected(plan, everybody.difference(gone))
    cut = {plan._ring[place] for place in (0, 1, 4, 5)}
    assert not connected(plan, everybody - cut)


def test_graphs_that_break_a_rule_are_refused():
    for k in range(-2, 14):
        fine = k % 2 == 0 and 3 < k < 10 and neighbourhood_threshold(k, 1) <= k
        assert is_accepted(11, 2, 1, neighbours=k) == fine
    for k in range(2, 60, 2):
        for c in range(k):
            assert k + 1 + c < 2 * neighbourhood_threshold(k, c) <= k + 3 + c


@pytest.mark.parametrize("size", [101, 150, 400, 1000, 3000])
@pytest.mark.parametrize("rate", [50, 20, 8])
def test_suggested_graphs_are_accepted_and_small(size, rate):
    dropouts, colluders = size // rate, size // 100
    k = suggested_neighbours(size, dropouts, colluders)
    assert dropouts + colluders < k < size / 2
    plan = plan_for(size, dropouts, colluders, neighbours=k)
    assert plan.threshold <= k - k * dropouts / size


def test_small_sessions_use_all_pairs():
    assert suggested_neighbours(100, 5, 1) is None
    assert suggested_neighbours(100, 5, 1, pairs_pay=0) == 14
    assert suggested_neighbours(3, 1, 0, pairs_pay=0) is None
