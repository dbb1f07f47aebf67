"""One module per mechanism: description, event, sampler, law where finite, claim with theorem."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from stillroom.errors import BadInput, UnsupportedEvent
from stillroom.gate.mechanisms.base import Mechanism
from stillroom.gate.mechanisms.exponential_choice import ExponentialChoice
from stillroom.gate.mechanisms.gaussian_answers import GaussianAnswers
from stillroom.gate.mechanisms.randomised_response import RandomisedResponse
from stillroom.gate.mechanisms.selection import PrivateSelection
from stillroom.gate.mechanisms.shares import GaussianShare, ResponseShare
from stillroom.gate.mechanisms.sums import GaussianSum, LaplaceCounts, NoisyCounts
from stillroom.gate.mechanisms.truncated_geometric import TruncatedGeometric
from stillroom.gate.mechanisms.unary_encoding import UnaryEncoding
from stillroom.gate.mechanisms.unprotected import Unprotected
from stillroom.gate.mechanisms.votes import ConfidentVotes, NoisyArgmax, NoisyVotes
from stillroom.vocabulary import Unit

_BY_NAME: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        ConfidentVotes,
        ExponentialChoice,
        GaussianAnswers,
        GaussianShare,
        GaussianSum,
        LaplaceCounts,
        NoisyArgmax,
        NoisyCounts,
        NoisyVotes,
        PrivateSelection,
        RandomisedResponse,
        ResponseShare,
        TruncatedGeometric,
        UnaryEncoding,
        Unprotected,
    )
}


def mechanism_from_json(body: Mapping[str, Any]) -> Mechanism:
    """The mechanism that `describe` described; names are looked up here, never imported.

    Raises:
        UnsupportedEvent: an unknown mechanism, or a description that makes no sense.

    >>> mechanism_from_json(NoisyCounts(sigma=3, width=10).describe()).lines(2)[0][1]
    2
    """
    try:
        kind = _BY_NAME[body["mechanism"]]
        return kind(**{part.name: _field(part.name, body) for part in fields(kind)})
    except (AttributeError, BadInput, LookupError, TypeError, ValueError):
        raise UnsupportedEvent(
            "a mechanism is unknown or incompletely described",
            why="what it drew cannot be compared with what was charged",
            remedy="read it with the version of stillroom that wrote it, or a newer one",
        ) from None


def _field(name: str, body: Mapping[str, Any]) -> Any:
    if name == "unit":
        return Unit(body[name])
    if name == "base":
        # Looked at before it is followed: a stranger's file could nest them without end.
        if body[name]["mechanism"] == PrivateSelection.name:
            raise ValueError("a selection among selections has no price")
        return mechanism_from_json(body[name])
    return body[name]
