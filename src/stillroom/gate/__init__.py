"""The gate: the only place that draws privacy noise and the only maker of Sanitised values."""

from stillroom.gate.gate import Gate
from stillroom.gate.ledger import Head, Ledger, Purpose
from stillroom.gate.mechanisms import mechanism_from_json
from stillroom.gate.mechanisms.base import Mechanism, check_count
from stillroom.gate.mechanisms.exponential_choice import ExponentialChoice
from stillroom.gate.mechanisms.gaussian_answers import GaussianAnswers
from stillroom.gate.mechanisms.randomised_response import RandomisedResponse
from stillroom.gate.mechanisms.selection import PrivateSelection
from stillroom.gate.mechanisms.shares import SITS_OUT, GaussianShare, ResponseShare
from stillroom.gate.mechanisms.sums import GaussianSum, LaplaceCounts, NoisyCounts
from stillroom.gate.mechanisms.truncated_geometric import TruncatedGeometric
from stillroom.gate.mechanisms.unary_encoding import UnaryEncoding
from stillroom.gate.mechanisms.unprotected import Unprotected
from stillroom.gate.mechanisms.votes import UNANSWERED, ConfidentVotes, NoisyArgmax, NoisyVotes
from stillroom.gate.passage import Passage
from stillroom.vocabulary import Budget

__all__ = [
    "SITS_OUT",
    "UNANSWERED",
    "Budget",
    "ConfidentVotes",
    "ExponentialChoice",
    "Gate",
    "GaussianAnswers",
    "GaussianShare",
    "GaussianSum",
    "Head",
    "LaplaceCounts",
    "Ledger",
    "Mechanism",
    "NoisyArgmax",
    "NoisyCounts",
    "NoisyVotes",
    "Passage",
    "PrivateSelection",
    "Purpose",
    "RandomisedResponse",
    "ResponseShare",
    "TruncatedGeometric",
    "UnaryEncoding",
    "Unprotected",
    "check_count",
    "mechanism_from_json",
]
