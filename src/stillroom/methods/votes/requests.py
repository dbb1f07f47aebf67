"""What entities pay for: the noise of their answers as a function of its scale; without torch.

For sums the scale is noise over all that one entity can tell, 1 / mu. For reports that are seen one
by one it is one over the epsilon of a report. It is sought for the recipe's epsilon, which is the
largest of the entities' own.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stillroom.gate import (
    GaussianShare,
    Mechanism,
    RandomisedResponse,
    ResponseShare,
    TruncatedGeometric,
    UnaryEncoding,
)
from stillroom.gate.accounting import ROUNDING_VARIANCE
from stillroom.gate.calibration import smallest_sigma
from stillroom.methods.votes.participation import (
    WHOLE_WEIGHT,
    drawn_for,
    most_drawn,
    votes_of,
    weight_of,
)
from stillroom.methods.votes.section import SECURE_SUM, SUMMED
from stillroom.sources import Request
from stillroom.sources.noise import least_sigma
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe

TESTS, VOTES = "tests", "votes"
SMALLEST_SHARE = Fraction(2)
STEEPEST = Fraction(1, 40)
"""The smallest scale of a report by itself: beyond an epsilon of 40 there is hardly any noise."""
_FINE = 10**9
"""Probabilities of reports are whole parts of it."""


def silence_in(kind: str) -> str:
    """The request of rows that say nothing."""
    return f"silence in {kind}"


@dataclass(frozen=True)
class Asking:
    """Who is asked what, and what that costs; all of it public.

    Args:
        recipe: the recipe.
        classes: how many there are.
    """

    recipe: VotesRecipe
    classes: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """The sessions, in the order they are paid for."""
        return (VOTES,) if self.recipe.votes.threshold is None else (VOTES, TESTS)

    def questions(self, kind: str) -> int:
        """How many there are of a kind, for all entities together."""
        return self.recipe.votes.questions if kind == TESTS else self.recipe.votes.queries

    def answered_by(self, name: str, kind: str) -> Integers:
        """What an entity answers: the questions it is drawn for, as far as its budget goes."""
        entities, privacy, asked = self.recipe.entities, self.recipe.privacy, self.questions(kind)
        drawn = drawn_for(entities, name, asked, kind)
        own = entities.epsilon_of(name, privacy.epsilon)
        if not self.in_shares or entities.weights == "budget":
            return drawn
        most = most_drawn(entities, asked, kind)
        paid = votes_of(own, privacy.epsilon, privacy.delta, self.recipe.data.pair, most)
        return drawn[:paid]

    def weight(self, name: str) -> int:
        """Of an entity's vote, in units of the sum."""
        entities, privacy = self.recipe.entities, self.recipe.privacy
        if entities.weights == "equal":
            return WHOLE_WEIGHT
        own = entities.epsilon_of(name, privacy.epsilon)
        return weight_of(own, privacy.epsilon, privacy.delta, self.recipe.data.pair)

    def weights(self, kind: str, questions: int, vanished: Collection[str] = ()) -> Integers:
        """The weight of all votes on each of the first questions, as if nobody abstained."""
        total = np.zeros(questions, dtype=np.int64)
        for name in self.recipe.entities.names:
            if name in vanished:
                continue
            places = self.answered_by(name, kind)
            total[places[places < questions]] += self.weight(name)
        return total

    @property
    def in_shares(self) -> bool:
        """Whether votes are summed with shares of noise."""
        return self.recipe.mode == "certified" and self.recipe.votes.report == SECURE_SUM

    @property
    def answers(self) -> int:
        """Nominal answers of a report by itself: who abstains has one of its own."""
        return self.classes + (self.recipe.votes.abstain is not None)

    def requests(self) -> list[Request]:
        """Votes first, then the tests of a threshold, then rows of those who sit out."""
        if not self.in_shares:
            return [self._reports()]
        paid = [self._votes(kind) for kind in self.kinds]
        return [*paid, *(self._silence(kind) for kind in self.kinds if self._anyone_silent(kind))]

    def _votes(self, kind: str) -> Request:
        def of_party(name: str) -> Request | None:
            count, weight = len(self.answered_by(name, kind)), self.weight(name)
            at = partial(self._share, kind, weight)
            return Request(kind, at, count) if count and weight else None

        most = most_drawn(self.recipe.entities, self.questions(kind), kind)
        return Request(kind, partial(self._share, kind, WHOLE_WEIGHT), most, of_party=of_party)

    def _silence(self, kind: str) -> Request:
        name_of, at = silence_in(kind), partial(self._share, kind, 0)

        def of_party(name: str) -> Request | None:
            said = len(self.answered_by(name, kind)) if self.weight(name) else 0
            left = self.questions(kind) - said
            return Request(name_of, at, left) if left else None

        return Request(name_of, at, self.questions(kind), of_party=of_party)

    def _anyone_silent(self, kind: str) -> bool:
        asked = self.questions(kind)
        return any(
            len(self.answered_by(name, kind)) < asked or not self.weight(name)
            for name in self.recipe.entities.names
        )

    def _share(self, kind: str, weight: int, scale: Fraction) -> GaussianShare:
        """One entity's row; all rows of all sessions together tell 1 / scale of the heaviest vote.

        sigma^2 = scale^2 D^2 (Q + tests / noise^2), with D^2 = 2 (w m)^2 for m entities per person.
        """
        entities, part = self.recipe.entities, self.recipe.votes
        noise = part.threshold_noise
        often = Fraction(most_drawn(entities, part.queries, VOTES))
        if part.threshold is not None:
            often += most_drawn(entities, part.questions, TESTS) / noise**2
        distance = 2 * (WHOLE_WEIGHT * entities.per_person) ** 2
        squared = scale**2 * distance * often + ROUNDING_VARIANCE
        if kind == TESTS:
            squared *= noise**2
        honest = entities.count - entities.dropouts - entities.colluding
        return GaussianShare(
            entities.count,
            entities.dropouts,
            entities.colluding,
            self.classes,
            max(SMALLEST_SHARE, least_sigma(squared / honest)),
            weight,
            self.recipe.data.pair.unit,
            entities.per_person if weight else 1,
        )

    def _reports(self) -> Request:
        """Reports by themselves, or summed responses: each entity has the noise of its epsilon."""
        recipe, privacy = self.recipe, self.recipe.privacy
        asked = most_drawn(recipe.entities, recipe.votes.queries, VOTES)
        published = recipe.mode == "as-published"

        def of_party(name: str) -> Request | None:
            count = len(self.answered_by(name, VOTES))
            own = recipe.entities.epsilon_of(name, privacy.epsilon)
            if not count:
                return None
            if published or own == privacy.epsilon:
                return Request(VOTES, self.report, count, sought=not published)
            found = smallest_sigma(
                lambda scale: self.report(scale).lines(asked),
                own,
                privacy.delta,
                recipe.data.pair,
            )
            return Request(VOTES, lambda scale: self.report(found), count)

        return Request(VOTES, self.report, asked, sought=not published, of_party=of_party)

    def report(self, scale: Fraction) -> Mechanism:
        """How one question is answered, at a scale of the noise."""
        unit, recipe, answers = self.recipe.data.pair.unit, self.recipe, self.answers
        if recipe.mode == "as-published":
            # The printed law lives on 0..M, with 0 counted as class 1: clamped to M classes.
            return TruncatedGeometric(answers, answers / recipe.published_part.epsilon, unit)
        scale = max(scale, STEEPEST)
        if recipe.votes.report == "geometric":
            return TruncatedGeometric(answers, (answers - 1) * scale, unit)
        odds = math.exp(1 / scale)
        if recipe.votes.report == "unary":
            flip = Fraction(math.ceil(_FINE / (odds + 1)), _FINE)
            return UnaryEncoding(answers, min(flip, Fraction(_FINE // 2 - 1, _FINE)), unit)
        keep = max(Fraction(1, answers), Fraction(int(_FINE * odds / (odds + answers - 1)), _FINE))
        if recipe.votes.report == SUMMED:
            entities = recipe.entities
            away = (entities.dropouts, entities.colluding)
            return ResponseShare(entities.count, *away, answers, keep, unit)
        return RandomisedResponse(answers, keep, unit)
