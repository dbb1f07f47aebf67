"""What an ensemble answers, fixed beforehand: how many votes and hints, and their noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from stillroom.gate import ConfidentVotes, GaussianAnswers, Mechanism
from stillroom.gate.accounting import ROUNDING_VARIANCE
from stillroom.methods.plan_numbers import check_plan, least_sigma
from stillroom.private import EnsemblePlan
from stillroom.private.hints import MOST_HINT_STEPS, MOST_HINT_WIDTH
from stillroom.private.quantise import MOST_STEPS
from stillroom.vocabulary import Unit

"""Noise is rounded up to thousandths of a grid unit."""


@dataclass(frozen=True)
class Confident:
    """Only queries that the teachers agree on are answered (Papernot et al. 2018).

    Args:
        threshold: the share of the teachers that must agree.
        noise: the test's noise, as a multiple of the votes' noise.
        most: the cap on answers; charged in full.
    """

    threshold: Fraction
    noise: Fraction
    most: int


@dataclass(frozen=True)
class EnsembleAnswers:
    """Everything about the answers that is fixed beforehand; all of it public.

    Args:
        teachers: the ensemble.
        classes: how many classes there are.
        hints: charged hint answers; 0 for none.
        hint_width: coordinates of a hint.
        votes: charged votes over all rounds; a group is one vote.
        hint_share: of mu squared, what goes to hints; 0 without them.
        temperature: of the teachers' softmax.
        confident: the gating, if wanted; votes are hard then.
        grid: units a whole vote has.
        hint_steps: units the clip of a hint has, whatever its length.
        chunk: queries a question; a crash loses one question at most.
        unit: what shares a shard.

    Raises:
        BadInput: a number is out of range.

    >>> teachers = EnsemblePlan(count=250, key="an example", shard_cap=300)
    >>> plan = EnsembleAnswers(teachers, 10, 500, 32, 2000, Fraction(1, 5))
    >>> [(m.name, n, round(float(m.sigma))) for m, n in plan.wishes(Fraction(1))]
    [('gaussian-answers', 2000, 72408), ('gaussian-answers', 500, 102400)]
    """

    teachers: EnsemblePlan
    classes: int
    hints: int
    hint_width: int
    votes: int
    hint_share: Fraction
    temperature: float = 1.0
    confident: Confident | None = None
    grid: int = 1024
    hint_steps: int = 1024
    chunk: int = 1024
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        object.__setattr__(self, "hint_share", Fraction(self.hint_share))
        gate = self.confident
        checks = {
            "classes": self.classes >= 2,
            "hints": self.hints >= 0,
            "hint_width": bool(self.hints) <= self.hint_width <= MOST_HINT_WIDTH,
            "votes": self.votes >= 1,
            "hint_share": 0 < self.hint_share < 1 if self.hints else self.hint_share == 0,
            "temperature": 1e-6 <= self.temperature <= 1e6,
            "confident": gate is None
            or (0 < gate.threshold <= 1 and gate.noise > 0 and 1 <= gate.most <= self.votes),
            "grid": 1 <= self.grid <= MOST_STEPS,
            "hint_steps": 1 <= self.hint_steps <= MOST_HINT_STEPS,
            "chunk": self.chunk >= 1,
        }
        check_plan(self, checks)

    def squared_mus(self, multiplier: Fraction) -> tuple[Fraction, Fraction]:
        """What votes and hints may tell; together exactly one over the multiplier squared."""
        whole = 1 / Fraction(multiplier) ** 2
        return whole * (1 - self.hint_share), whole * self.hint_share

    def wishes(self, multiplier: Fraction) -> list[tuple[Mechanism, int]]:
        """The ways through the gate that a source needs: votes, then hints if there are any.

        Guarantee: all answers together tell no more than one Gaussian release whose noise is
        `multiplier` times its sensitivity: mu^2 is what `squared_mus` says, or a little less.

        Args:
            multiplier: the scale of all noise; `smallest_sigma` finds it.
        """
        for_votes, for_hints = self.squared_mus(multiplier)
        squared = 2 * self.grid**2
        if self.confident is None:
            sigma = least_sigma(self.votes * squared / for_votes + ROUNDING_VARIANCE)
            votes: Mechanism = GaussianAnswers(sigma, self.classes, squared, self.unit)
        else:
            gate, count = self.confident, self.teachers.count
            noise = Fraction(gate.noise)
            # A test moves one count by one, an answer two; whole votes have an exact price.
            sigma = least_sigma((self.votes / noise**2 + 2 * gate.most) / for_votes)
            threshold = ceil(Fraction(gate.threshold) * count)
            votes = ConfidentVotes(
                count, self.classes, sigma, self.unit, threshold, noise * sigma, gate.most
            )
        if not self.hints:
            return [(votes, self.votes)]
        squared = 4 * self.hint_steps**2
        sigma = least_sigma(self.hints * squared / for_hints + ROUNDING_VARIANCE)
        hints = GaussianAnswers(sigma, self.hint_width, squared, self.unit)
        return [(votes, self.votes), (hints, self.hints)]
