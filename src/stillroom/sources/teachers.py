"""What an ensemble answers, fixed beforehand: how many votes and hints, and their noise."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from pydantic import Field

from stillroom.gate import ConfidentVotes, GaussianAnswers, Mechanism
from stillroom.gate.accounting import ROUNDING_VARIANCE
from stillroom.private import EnsemblePlan
from stillroom.recipe import Exact, Section
from stillroom.recipe.common import MOST_UNITS
from stillroom.recipe.section import LARGEST_RATE, MOST_DRAWS
from stillroom.sources.base import Request
from stillroom.sources.noise import least_sigma
from stillroom.vocabulary import Unit

VOTES, HINTS = "votes", "hints"
GRID = 1024
"""Units a whole vote has."""
HINT_STEPS = 1024
"""Units the clip of a hint has, whatever its length."""


class TeachersSection(Section):
    """Source ensemble: one teacher per shard of the sensitive records; each answer is charged.

    >>> teachers = TeachersSection.of(shard_cap=300, votes=2000, hints=500, hint_share="1/5")
    >>> requests = teachers.requests(classes=10, hint_width=32)
    >>> [(r.name, r.count, round(float(r.at(Fraction(1)).sigma))) for r in requests]
    [('votes', 2000, 72408), ('hints', 500, 102400)]
    """

    count: int = Field(250, ge=2, le=MOST_DRAWS, description="teachers, one per shard")
    shard_cap: int = Field(
        ge=1, le=MOST_UNITS, description="the most records of a shard; a public constant"
    )
    ridge: float = Field(
        0.1, gt=0, le=LARGEST_RATE, description="penalty of a teacher's linear layer"
    )
    votes: int = Field(
        500, ge=1, le=MOST_DRAWS, description="soft votes that are paid for, over all rounds"
    )
    grouped: bool = Field(
        False, description="group public pictures by the student's features: one vote per group"
    )
    hints: int = Field(0, ge=0, le=MOST_DRAWS, description="hints that are paid for")
    hint_share: Exact = Field(
        Fraction(1, 10), gt=0, lt=1, description="of the budget, for hints where there are some"
    )
    temperature: float = Field(
        0.1, ge=1e-6, le=1e6, description="divides a teacher's scores before its vote"
    )
    threshold: Exact | None = Field(
        None, gt=0, le=1, description="answer only where this share of the teachers agrees"
    )
    threshold_noise: Exact = Field(
        Fraction(3), gt=0, description="noise of that test, in units of the votes' noise"
    )
    asked: int | None = Field(
        None,
        ge=1,
        le=MOST_DRAWS,
        description="with a threshold: queries that are tested; votes caps the answers",
    )

    @property
    def gated(self) -> bool:
        """Whether only queries are answered that the teachers agree on (Papernot et al. 2018)."""
        return self.threshold is not None

    @property
    def questions(self) -> int:
        """How many queries are asked: with a threshold, more than are answered."""
        return (self.asked or self.votes) if self.gated else self.votes

    def ensemble(self, key: str) -> EnsemblePlan:
        """The teachers, for a public key of the shards."""
        return EnsemblePlan(count=self.count, key=key, shard_cap=self.shard_cap, ridge=self.ridge)

    def squared_mus(self, multiplier: Fraction) -> tuple[Fraction, Fraction]:
        """What votes and hints may tell; together exactly one over the multiplier squared."""
        whole, share = 1 / Fraction(multiplier) ** 2, self.hint_share if self.hints else Fraction(0)
        return whole * (1 - share), whole * share

    def requests(self, classes: int, hint_width: int, unit: Unit = Unit.RECORD) -> list[Request]:
        """Votes, then hints where there are any.

        Guarantee: all answers together tell no more than one Gaussian release whose noise is the
        scale times its sensitivity: mu^2 is what `squared_mus` says, or a little less.

        Args:
            classes: how many classes there are.
            hint_width: coordinates of a hint.
            unit: what shares a shard.
        """

        def hints(scale: Fraction) -> Mechanism:
            squared = 4 * HINT_STEPS**2
            sigma = self.hints * squared / self.squared_mus(scale)[1] + ROUNDING_VARIANCE
            return GaussianAnswers(least_sigma(sigma), hint_width, squared, unit)

        asked = [Request(VOTES, lambda scale: self._votes(scale, classes, unit), self.questions)]
        return [*asked, Request(HINTS, hints, self.hints, wide=True)] if self.hints else asked

    def _votes(self, scale: Fraction, classes: int, unit: Unit) -> Mechanism:
        for_votes, _ = self.squared_mus(scale)
        if self.threshold is None:
            squared = 2 * GRID**2
            sigma = least_sigma(self.votes * squared / for_votes + ROUNDING_VARIANCE)
            return GaussianAnswers(sigma, classes, squared, unit)
        # A test moves one count by one, an answer two; whole votes have an exact price.
        noise = self.threshold_noise
        sigma = least_sigma((self.questions / noise**2 + 2 * self.votes) / for_votes)
        threshold = ceil(self.threshold * self.count)
        return ConfidentVotes(
            self.count, classes, sigma, unit, threshold, noise * sigma, self.votes
        )

    def misfits(self, declared_size: int) -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together."""
        return {
            "teachers.count: more teachers than data.declared_size records": (
                self.count > declared_size
            ),
            "teachers.asked, teachers.threshold_noise: there is no threshold": not self.gated
            and bool({"asked", "threshold_noise"} & self.model_fields_set),
            "teachers.asked: fewer queries than teachers.votes answers": self.questions
            < self.votes,
            "teachers.grouped: means over groups have no threshold": self.gated and self.grouped,
        }
