"""What each entity pays: never more than its own epsilon, whatever way it answers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stillroom.errors import BadInput
from stillroom.gate.accounting import price as price_of
from stillroom.gate.mechanisms.shares import GaussianShare
from stillroom.methods.registry import parse
from stillroom.methods.votes.requests import VOTES, Asking, silence_in
from stillroom.methods.wording import unproven_by
from stillroom.pipeline.pricing import price

RECIPE = """
method = "votes"
mode = "{mode}"
purpose = "benchmark"
[data]
source = "digits"
test_is_public = true
public = "1/2"
declared_size = 700
{data}
[entities]
count = {count}
largest = 60
{entities}
[votes]
queries = 100
{votes}
{more}
[privacy]
epsilon = {epsilon}
"""


def recipe(entities="", votes="", more="", data="", mode="certified", epsilon="8.0", count=60):
    return parse(
        RECIPE.format(
            entities=entities, votes=votes, more=more, data=data, mode=mode, epsilon=epsilon,
            count=count,
        )
    )  # fmt: skip


def spent(told, name):
    cost = price(told)
    lines = [line for wish, n in cost.wishes_of(name).values() for line in wish.lines(n)]
    return price_of(lines, told.data.pair).epsilon(told.privacy.delta)


@pytest.mark.parametrize("weights", ["equal", "budget"])
def test_each_entity_stays_within_its_own_epsilon(weights):
    told = recipe(f'epsilons = [1.0, 3.0, 8.0]\nweights = "{weights}"')
    names = told.entities.names[:3]
    paid = [spent(told, name) for name in names]
    for own, epsilon in zip(paid, (1, 3, 8), strict=True):
        assert 0.8 * epsilon < own <= epsilon
    asking, cost = Asking(told, 10), price(told)
    counts = [cost.wishes_of(name)[VOTES][1] for name in names]
    if weights == "equal":
        # The smallest budget ends first, and goes on sending zeros and noise.
        assert counts[0] < counts[1] < counts[2] == 100
        quiet = silence_in(VOTES)
        assert cost.wishes_of(names[0])[quiet][1] == 100 - counts[0]
        assert quiet not in cost.wishes_of(names[2])
    else:
        assert counts == [100, 100, 100]
        assert [asking.weight(name) for name in names] == [10, 27, 64]


def test_silence_costs_nothing_and_adds_the_same_noise():
    told = recipe("epsilons = [1.0, 8.0]")
    wishes = price(told).wishes_of(told.entities.names[0])
    (votes, _), (silent, count) = wishes[VOTES], wishes[silence_in(VOTES)]
    assert isinstance(silent, GaussianShare)
    assert silent.weight == 0
    assert silent.share == votes.share
    assert price_of(silent.lines(count), told.data.pair).epsilon(1e-5) < 1e-12


def test_a_lottery_pays_for_what_is_drawn():
    told = recipe('participation = "1/2"')
    cost = price(told)
    counts = [cost.wishes_of(name)[VOTES][1] for name in told.entities.names]
    assert 25 < min(counts) < 50 < max(counts) < 75
    assert all(spent(told, name) <= 8 for name in told.entities.names[:4])


def test_persons_at_several_entities_need_so_many_times_the_noise():
    data = 'unit = "person"\nperson_column = "who"'
    one, three = (recipe(f"per_person = {m}", data=data) for m in (1, 3))
    shares = [price(told).wishes[VOTES][0].share for told in (one, three)]
    assert float(shares[1] / shares[0]) == pytest.approx(3, rel=0.02)


def test_tests_of_a_threshold_are_paid_for_with_the_votes():
    told = recipe(votes='threshold = "1/2"\ntested = 300\nthreshold_noise = 4')
    cost = price(told)
    votes, tests = cost.wishes[VOTES], cost.wishes["tests"]
    assert (votes[1], tests[1]) == (100, 300)
    assert float(tests[0].share / votes[0].share) == pytest.approx(4, rel=0.01)
    # The tested histogram moves by sqrt 2, and not by one count alone.
    assert set(tests[0].sensitivity.bounds.values()) == {Fraction(2 * 64**2)}
    assert 7.9 < cost.epsilon <= 8


@pytest.mark.parametrize("report", ["response", "unary", "geometric", "summed-response"])
def test_reports_cost_what_was_asked(report):
    assert 7.8 < price(recipe(votes=f'report = "{report}"')).epsilon <= 8


def test_reports_of_own_budgets():
    told = recipe("epsilons = [2.0, 8.0]", 'report = "response"')
    paid = [spent(told, name) for name in told.entities.names[:2]]
    assert 1.95 < paid[0] <= 2
    assert 7.8 < paid[1] <= 8


def test_a_changed_class_may_move_a_record_between_uneven_entities():
    even, uneven = recipe(), recipe('split = "uneven"\nsmallest = 3')
    assert unproven_by(even) == ()
    assert [str(pair) for pair in unproven_by(uneven)] == ["record/change", "person/change"]


def test_as_published():
    """T_n epsilon holds, loosely: pure (M - 1) / M of it, and less by composition."""
    from stillroom.methods.registry import method_named
    from stillroom.pipeline.pricing import nominal_facts

    told = recipe(
        votes='report = "geometric"', more='[published]\nepsilon = "1/10"', mode="as-published"
    )
    claim = method_named("votes").plan(told, nominal_facts(told)).claim
    assert claim.epsilon == pytest.approx(10)
    assert "holds" in claim.status
    assert price(told).epsilon < 9


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"entities": "epsilons = [1.0, 3.0]"}, "largest must be privacy.epsilon"),
        ({"entities": "dropouts = 30"}, "2 dropouts"),
        ({"entities": "per_person = 2"}, "per_person"),
        ({"entities": "smallest = 3"}, "uneven"),
        ({"entities": 'weights = "budget"'}, "epsilons"),
        ({"votes": "tested = 200"}, "threshold"),
        ({"votes": 'report = "unary"\nthreshold = "1/2"'}, "secure-sum"),
        ({"votes": 'report = "unary"', "entities": "dropouts = 2"}, "need neither"),
        ({"votes": 'report = "summed-response"', "entities": "epsilons = [1.0, 8.0]"}, "one noise"),
        (
            {"votes": 'report = "summed-response"', "entities": 'participation = "1/2"'},
            "everybody answers",
        ),
        ({"votes": 'report = "response"', "mode": "as-published"}, "geometric"),
        ({"data": "labelled = 0.5"}, "label"),
        ({"count": 800}, "declared_size"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(changes, word):
    with pytest.raises(BadInput, match=word):
        recipe(**changes)
