"""Events: JSON in and out, and nothing unknown is priced."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from stillroom.errors import UnsupportedEvent
from stillroom.gate import (
    ConfidentVotes,
    GaussianAnswers,
    GaussianShare,
    GaussianSum,
    LaplaceCounts,
    NoisyArgmax,
    NoisyCounts,
    NoisyVotes,
    RandomisedResponse,
    ResponseShare,
    TruncatedGeometric,
    UnaryEncoding,
)
from stillroom.gate.accounting import price
from stillroom.gate.events import event_from_json, lines_from_json, lines_to_json
from stillroom.gate.mechanisms import mechanism_from_json
from stillroom.vocabulary import RECORD, Pair, Unit

OF_ENTITIES = [
    *TruncatedGeometric(10, Fraction(10, 3)).lines(2),
    *UnaryEncoding(10, Fraction(2, 7)).lines(3),
    *GaussianShare(250, 20, 30, 10, Fraction(5, 2)).lines(4),
    *GaussianShare(250, 20, 30, 10, Fraction(5, 2), weight=3, unit=Unit.PERSON).lines(5),
    *ResponseShare(250, 20, 30, 10, Fraction(1, 7)).lines(6),
]
VOTES = NoisyVotes(250, 10, Fraction(401, 10)).lines(7)
LINES = [
    *VOTES,
    *OF_ENTITIES,
    *ConfidentVotes(5, 3, 50, threshold=3, threshold_sigma=9, most_answers=3).lines(9),
    *LaplaceCounts(Fraction(1, 3), 4).lines(1),
    *RandomisedResponse(4, Fraction(2, 5)).lines(2),
    *GaussianSum(100, 4, 100, rate=Fraction(1, 7)).lines(10),
    *GaussianSum(100, 4, 100).lines(1),
    *GaussianAnswers(100, 4, 200).lines(3),
]


def test_round_trip():
    assert lines_from_json(json.loads(json.dumps(lines_to_json(LINES)))) == LINES


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "os.system"},
        {"version": 2},
        {"sigma_squared": "not a number"},
        {"sigma_squared": "1/0"},
        {"norm": "l7"},
        {"sensitivity": {"neighbour/whatever": "1"}},
        {"sensitivity": {"record/change": "-1"}},
        {"coordinates": None},
        {"coordinates": -3},
        {"sigma_squared": "-4"},
        {"sigma_squared": "0"},
        {"norm": "l1"},
    ],
)
def test_unknown_or_malformed_events_are_refused(change):
    body = {**lines_to_json(VOTES)[0], **change}
    with pytest.raises(UnsupportedEvent) as caught:
        event_from_json(body)
    assert caught.value.remedy


def test_missing_fields_are_refused():
    body = lines_to_json(VOTES)[0]
    for name in ("sigma_squared", "coordinates", "norm", "sensitivity", "kind"):
        with pytest.raises(UnsupportedEvent):
            event_from_json({k: v for k, v in body.items() if k != name})


@pytest.mark.parametrize("keep", ["1/5", "1", "3/2", "1/1000"])
def test_a_response_below_chance_or_certain_has_no_price(keep):
    """Below chance its Renyi curve was negative, and lowered the price of everything beside it."""
    response = RandomisedResponse(4, Fraction(2, 5)).lines(1)[0][0].to_json()
    assert event_from_json({**response, "keep": "1/4"}).keep == Fraction(1, 4)
    with pytest.raises(UnsupportedEvent):
        event_from_json({**response, "keep": keep})


MECHANISMS = [
    NoisyVotes(250, 10, Fraction(401, 10), Unit.PERSON),
    NoisyArgmax(5, 3, 7),
    ConfidentVotes(5, 3, 50, threshold=3, threshold_sigma=9, most_answers=3),
    NoisyCounts(5, 3),
    NoisyCounts(5, 3, records=7, unit=Unit.PERSON),
    LaplaceCounts(Fraction(1, 3), 4),
    RandomisedResponse(4, Fraction(2, 5)),
    GaussianAnswers(100, 4, 200),
    GaussianSum(100, 4, 100, rate=Fraction(1, 7)),
    TruncatedGeometric(10, Fraction(10, 3)),
    UnaryEncoding(10, Fraction(2, 7), Unit.RECORD),
    GaussianShare(250, 20, 30, 10, Fraction(5, 2), weight=3),
    ResponseShare(250, 20, 30, 10, Fraction(1, 7)),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_mechanisms_come_back_from_their_description(mechanism):
    assert mechanism_from_json(json.loads(json.dumps(mechanism.describe()))) == mechanism


@pytest.mark.parametrize("change", [{"mechanism": "os.system"}, {"sigma": "0"}, {"unit": "me"}])
def test_unknown_mechanisms_are_refused(change):
    with pytest.raises(UnsupportedEvent, match="mechanism"):
        mechanism_from_json({**MECHANISMS[0].describe(), **change})


@pytest.mark.parametrize("count", [0, -5, None, "7", 1.5])
def test_a_count_that_lowers_the_price_is_refused(count):
    with pytest.raises(UnsupportedEvent, match="count"):
        lines_from_json([{**lines_to_json(LINES)[0], "count": count}])


@pytest.mark.parametrize("event", [LINES[-1][0], LINES[-2][0]], ids=lambda event: event.kind)
def test_noise_too_small_for_e3_is_infinite(event):
    """Such an event cannot be made here, but can be written into a file."""
    coarse = event_from_json({**event.to_json(), "sigma_squared": "3"})
    assert price([(coarse, 1)], RECORD).epsilon(1e-5) == math.inf


WRONG = {
    "truncated-geometric": [
        {"classes": 1},
        {"classes": 10_001},
        {"classes": 2**62},
        {"scale": "0"},
        {"scale": "-3"},
        {"scale": "1/100"},
        {"scale": str(2**31)},
        {"norm": "l1"},
        {"sensitivity": {"entity/change": "1/2"}},
    ],
    "unary-encoding": [
        {"classes": 1},
        {"classes": 10_001},
        {"flip": "0"},
        {"flip": "1/2"},
        {"flip": "2/3"},
        {"flip": "-1/3"},
        {"norm": "unit-steps"},
    ],
    "distributed-discrete-gaussian": [
        {"honest": 0},
        {"honest": -4},
        {"honest": 2.5},
        {"honest": 10**6 + 1},
        {"honest": 2**62},
        {"share_squared": "399/100"},
        {"share_squared": "0"},
        {"coordinates": 10_001},
        {"coordinates": 0},
        {"norm": "contribution-squared"},
    ],
    "summed-randomised-response": [
        {"honest": 0},
        {"honest": True},
        {"honest": 10**6 + 1},
        {"classes": 1},
        {"classes": 10_001},
        {"keep": "1"},
        {"keep": "1/11"},
        {"keep": "0"},
        {"norm": "l2-squared"},
    ],
}


@pytest.mark.parametrize("event", [event for event, _ in OF_ENTITIES], ids=lambda e: e.kind)
def test_wrong_numbers_of_entities_are_refused(event):
    body = event.to_json()
    assert event_from_json(body) == event
    for change in WRONG[event.kind]:
        with pytest.raises(UnsupportedEvent):
            event_from_json({**body, **change})
    for name in set(body) - {"version"}:
        with pytest.raises(UnsupportedEvent):
            event_from_json({k: v for k, v in body.items() if k != name})


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": "gaussian-share", "share": "1.99"},
        {"mechanism": "gaussian-share", "colluding": 230},
        {"mechanism": "gaussian-share", "entities": 2**40},
        {"mechanism": "gaussian-share", "weight": "3"},
        {"mechanism": "response-share", "keep": "1/11"},
        {"mechanism": "response-share", "dropouts": None},
        {"mechanism": "truncated-geometric", "scale": "1/9"},
        {"mechanism": "truncated-geometric", "scale": 2**31},
        {"mechanism": "truncated-geometric", "classes": 2**40},
        {"mechanism": "unary-encoding", "flip": "1/2"},
        {"mechanism": "unary-encoding", "classes": [10]},
    ],
)
def test_wrong_mechanisms_of_entities_are_refused(change):
    (known,) = [m for m in MECHANISMS if m.name == change["mechanism"]]
    with pytest.raises(UnsupportedEvent, match="mechanism"):
        mechanism_from_json({**known.describe(), **change})


def test_shares_in_a_grid_as_coarse_as_they_are_infinite():
    """One honest share of 2 on a weighted vote: the Gaussian of E3 would have no variance."""
    lines = GaussianShare(1, 0, 0, 10, 2, weight=3).lines(1)
    assert price(lines, Pair.of(Unit.ENTITY)).epsilon(1e-5) == math.inf
    assert price(lines, RECORD).epsilon(1e-5) == math.inf
