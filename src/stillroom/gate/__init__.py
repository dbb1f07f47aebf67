"""The gate: the only place that draws privacy noise and the only maker of Sanitised values."""

from stillroom.gate.gate import Gate
from stillroom.gate.ledger import Head, Ledger, Purpose
from stillroom.gate.mechanisms import (
    UNANSWERED,
    ConfidentVotes,
    GaussianAnswers,
    GaussianSum,
    LaplaceCounts,
    Mechanism,
    NoisyArgmax,
    NoisyCounts,
    NoisyVotes,
    RandomisedResponse,
    Unprotected,
    mechanism_from_json,
)
from stillroom.gate.mechanisms.base import check_count
from stillroom.gate.passage import Passage
from stillroom.vocabulary import Budget

__all__ = [
    "UNANSWERED",
    "Budget",
    "ConfidentVotes",
    "Gate",
    "GaussianAnswers",
    "GaussianSum",
    "Head",
    "LaplaceCounts",
    "Ledger",
    "Mechanism",
    "NoisyArgmax",
    "NoisyCounts",
    "NoisyVotes",
    "Passage",
    "Purpose",
    "RandomisedResponse",
    "Unprotected",
    "check_count",
    "mechanism_from_json",
]
