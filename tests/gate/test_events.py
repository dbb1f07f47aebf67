"""Events: JSON in and out, and nothing unknown is priced."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from stillroom.errors import UnsupportedEvent
from stillroom.gate import (
    ConfidentVotes,
    GaussianSum,
    LaplaceCounts,
    NoisyVotes,
    RandomisedResponse,
)
from stillroom.gate.events import event_from_json, lines_from_json, lines_to_json

LINES = [
    *NoisyVotes(250, 10, Fraction(401, 10)).lines(7),
    *ConfidentVotes(5, 3, 50, threshold=3, threshold_sigma=9, most_answers=3).lines(9),
    *LaplaceCounts(Fraction(1, 3), 4).lines(1),
    *RandomisedResponse(4, Fraction(2, 5)).lines(2),
    *GaussianSum(100, 4, 100, rate=Fraction(1, 7)).lines(10),
    *GaussianSum(100, 4, 100).lines(1),
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
    ],
)
def test_unknown_or_malformed_events_are_refused(change):
    body = {**lines_to_json(LINES)[0], **change}
    with pytest.raises(UnsupportedEvent) as caught:
        event_from_json(body)
    assert caught.value.remedy


def test_missing_fields_are_refused():
    body = lines_to_json(LINES)[0]
    for name in ("sigma_squared", "coordinates", "norm", "sensitivity", "kind"):
        with pytest.raises(UnsupportedEvent):
            event_from_json({k: v for k, v in body.items() if k != name})
