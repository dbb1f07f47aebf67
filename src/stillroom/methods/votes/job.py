"""Method votes on its way to a student: public neighbours, one teacher per entity, noisy votes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stillroom.errors import BadInput
from stillroom.methods.base import Result
from stillroom.methods.votes.queries import PublicPart
from stillroom.methods.votes.requests import TESTS, VOTES, Asking
from stillroom.methods.votes.section import SECURE_SUM, SUMMED
from stillroom.methods.votes.sessions import Entities
from stillroom.methods.votes.student import VotesStudent
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.entity_votes import EntityTeacher, Queries
from stillroom.public.report_decoding import Reals, chances, likelihoods, plurality
from stillroom.public.report_decoding import shares as unbiased_shares
from stillroom.public.vote_regression import NoisyShares
from stillroom.sources import Setting
from stillroom.sources.base import Passages
from stillroom.sources.trained_linear import features_of
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe


AS_A_LABEL = 0.3
"""How far a decoded class is taken to be off, where it comes without noise of its own."""
LEAST_TOLD = 1e-9


class VotesJob:
    """A student of many entities' votes on public records.

    Args:
        setting: of a recipe of method votes.

    Raises:
        BadInput: something does not fit the records; nothing is paid for yet.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.recipe: VotesRecipe = setting.recipe
        self.asking = Asking(self.recipe, len(setting.facts.classes))
        self._refuse_misfits()
        self.student = VotesStudent(setting)
        self._features = features_of(setting)
        setting.begin()
        setting.progress.tell("features of public records")
        self._features.fit()
        self.public = PublicPart(self.recipe, setting.public.records, self._features.map)
        self._teachers = self._trained()

    def _refuse_misfits(self) -> None:
        asked, there = self.recipe.votes.questions, len(self.setting.public.records)
        if asked > there:
            raise BadInput(
                f"there are fewer public records than the {asked} questions that would be paid for",
                where="votes.queries, votes.tested",
                why="a record is asked about once",
                remedy="ask fewer questions, or make more records public",
            )
        idle = [n for n in self.recipe.entities.names if not len(self.asking.answered_by(n, VOTES))]
        if idle and not self.asking.in_shares:
            raise BadInput(
                f"{len(idle)} entities are drawn to answer none of the questions",
                where="entities.participation",
                why="an entity that reports nothing has nothing to pay for",
                remedy="let entities take part more often, or ask more questions",
            )
        for kind in self.asking.kinds:
            if not self.asking.weights(kind, self.asking.questions(kind)).all():
                raise BadInput(
                    "nobody is drawn, or has a budget, to answer one of the questions",
                    where="entities.participation, entities.epsilons",
                    why="there would be nothing to learn from it",
                    remedy="let more entities take part, or ask fewer questions",
                )

    def _trained(self) -> dict[str, EntityTeacher]:
        """One teacher per entity, each from its own records."""
        recipe, progress, part = self.recipe, self.setting.progress, self.recipe.votes
        progress.tell("teachers of the entities")
        network = part.teacher != "ridge"
        plan = EnsemblePlan(
            count=1,
            key=recipe.data.key,
            shard_cap=recipe.entities.largest,
            teacher=part.teacher,
            ridge=part.ridge,
            epochs=part.epochs,
        )
        found = {}
        for number, party in enumerate(self.setting.parties, 1):
            rows = None if network else self._features.map.rows
            found[party.name] = EntityTeacher(party.data, rows, plan, recipe.entities.per_person)
            progress.step(number, len(self.setting.parties))
        return found

    @property
    def width(self) -> int:
        """Of a row of votes."""
        return len(self.setting.facts.classes)

    def run(self, passages: Passages) -> Result:
        """Ask, sum or collect, decode, teach."""
        self.setting.progress.tell("votes")
        entities = Entities(
            self.recipe, self.asking, self._teachers, passages, self.setting.progress
        )
        told = self._told(entities)
        self._teachers = {}  # nothing is asked after this
        first = next(iter(passages.values()))
        state = self.setting.state_file("student", next(iter(first.values())))
        return Result(self.student.taught(self.public, told, state))

    def _told(self, entities: Entities) -> NoisyShares:
        """The entities' vote shares, with their noise, on the questions that were answered."""
        part, queries = self.recipe.votes, self.public.queries()
        if self.recipe.votes.report == SECURE_SUM:
            return self._of_sums(entities, queries)
        if part.report == SUMMED:
            shares, noise = self._of_responses(*entities.summed_responses(queries))
            return NoisyShares(shares, noise, self.public.speaker)
        size, reports = (len(queries), self.width), entities.reports(queries)
        if self.recipe.mode == "as-published":
            return NoisyShares(plurality(reports, *size), AS_A_LABEL, self.public.speaker)
        if part.report == "geometric":
            likely = chances(likelihoods(reports, *size))
            return NoisyShares(likely, AS_A_LABEL, self.public.speaker)
        return NoisyShares(*unbiased_shares(reports, *size), self.public.speaker)

    def _of_sums(self, entities: Entities, queries: Queries) -> NoisyShares:
        """The noisy histogram; with a threshold, where the entities seem to agree."""
        answered = np.arange(len(queries), dtype=np.int64)
        if self.recipe.votes.threshold is not None:
            answered = self._passed(entities, queries)
            queries = queries.some(answered)
        counts = entities.summed(VOTES, queries)
        # Of a question that only vanished entities were to answer nothing is left but noise.
        weights = self.asking.weights(VOTES, len(queries), entities.vanished)[:, None]
        weights = np.maximum(weights, 1)
        shares = counts / weights
        noise = entities.noise(VOTES) * float((1 / weights).mean())
        return NoisyShares(shares, noise, self.public.of_answered(answered))

    def _of_responses(self, counts: Integers, keep: Fraction) -> tuple[Reals, float]:
        """Counts of summed responses, less what lies alone would give."""
        entities, lie = self.recipe.entities.count, float((1 - keep) / (self.width - 1))
        told = max(float(keep) - lie, LEAST_TOLD)
        noise = math.sqrt(lie * (1 - lie) / entities) / told
        return (counts / entities - lie) / told, noise

    def _passed(self, entities: Entities, queries: Queries) -> Integers:
        """Questions on which enough entities seem to agree; the surest where too few do."""
        part = self.recipe.votes
        assert part.threshold is not None
        largest = entities.summed(TESTS, queries).max(axis=1)
        whole = self.asking.weights(TESTS, len(queries))
        passed = np.flatnonzero(largest >= float(part.threshold) * whole)
        if not len(passed):
            passed = np.argsort(-largest, kind="stable")
        return passed[: part.queries].astype(np.int64)
