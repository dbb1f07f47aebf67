"""One module a mechanism: description, event, sampler, law where finite, claim with theorem."""

from stillroom.gate.mechanisms.base import Mechanism
from stillroom.gate.mechanisms.randomised_response import RandomisedResponse
from stillroom.gate.mechanisms.sums import GaussianSum, LaplaceCounts, NoisyCounts
from stillroom.gate.mechanisms.votes import UNANSWERED, ConfidentVotes, NoisyArgmax, NoisyVotes

__all__ = [
    "UNANSWERED",
    "ConfidentVotes",
    "GaussianSum",
    "LaplaceCounts",
    "Mechanism",
    "NoisyArgmax",
    "NoisyCounts",
    "NoisyVotes",
    "RandomisedResponse",
]
