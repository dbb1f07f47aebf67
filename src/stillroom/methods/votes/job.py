"""Method votes on its way to a student: public neighbours, one teacher per entity, noisy votes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stillroom.errors import BadInput
from stillroom.methods.base import Result
from stillroom.methods.votes.queries import PublicPart
from stillroom.methods.votes.requests import TESTS, VOTES, Asking
from stillroom.methods.votes.section import SECURE_SUM, SUMMED
from stillroom.methods.votes.sessions import Entities, noise_of
from stillroom.methods.votes.student import VotesStudent
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.entity_votes import EntityTeacher, Queries
from stillroom.public.noisy_votes import posterior
from stillroom.public.report_decoding import Reals, chances, likelihoods, plurality
from stillroom.sources import Setting
from stillroom.sources.base import Passages
from stillroom.sources.trained_linear import features_of
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe


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
        asked, likely = self._answers(entities, passages)
        self._teachers = {}  # nothing is asked after this
        return Result(self.student.taught(self.public, asked, likely))

    def _answers(self, entities: Entities, passages: Passages) -> tuple[Integers, Reals]:
        """Which questions were answered, and the chances of their classes."""
        part, classes = self.recipe.votes, self.width
        queries = self.public.queries()
        everything = np.arange(len(queries), dtype=np.int64)
        if self.recipe.mode == "as-published":
            return everything, plurality(entities.reports(queries), len(queries), classes)
        if part.local:
            told = likelihoods(entities.reports(queries), len(queries), classes)
            return everything, chances(told)
        if part.report == SUMMED:
            return everything, self._of_responses(*entities.summed_responses(queries))
        assert part.report == SECURE_SUM
        if part.threshold is None:
            return everything, self._of_votes(entities, passages, VOTES, queries)
        passed = self._passed(entities, passages, queries)
        if not len(passed):
            return passed, np.zeros((0, classes))
        return passed, self._of_votes(entities, passages, VOTES, queries.some(passed))

    def _of_votes(
        self, entities: Entities, passages: Passages, kind: str, queries: Queries
    ) -> Reals:
        whole = sum(self.asking.weight(name) for name in passages)
        shares = entities.summed(kind, queries) / whole
        return posterior(shares, noise_of(passages, kind) / whole)

    def _of_responses(self, counts: Integers, keep: object) -> Reals:
        """Counts of summed responses, less what lies alone would give."""
        truth, entities = float(keep), self.recipe.entities.count  # type: ignore[arg-type]
        lie = (1 - truth) / (self.width - 1)
        shares = (counts / entities - lie) / max(truth - lie, 1e-9)
        noise = math.sqrt(lie * (1 - lie) / entities) / max(truth - lie, 1e-9)
        return posterior(shares, noise)

    def _passed(self, entities: Entities, passages: Passages, queries: Queries) -> Integers:
        """Questions on which enough entities seem to agree, as many as are paid for."""
        part = self.recipe.votes
        assert part.threshold is not None
        whole = sum(self.asking.weight(name) for name in passages)
        largest = entities.summed(TESTS, queries).max(axis=1)
        passed = np.flatnonzero(largest >= float(part.threshold) * whole)
        return passed[: part.queries].astype(np.int64)
