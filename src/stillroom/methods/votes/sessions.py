"""Questions put to all entities at once: each pays and answers by itself; sums are opened once.

A session is one ledger row per entity. Its rows are summed once and never again: two sums of the
same rows over other survivors would differ by single rows. An entity whose answer was lost, when a
run was cut off, has vanished: what is lost is never drawn again (L2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stillroom.federation import Leg, Plan, enrol, new_session, run, suggested_neighbours
from stillroom.gate import (
    GaussianShare,
    Passage,
    RandomisedResponse,
    ResponseShare,
    TruncatedGeometric,
    UnaryEncoding,
)
from stillroom.methods.votes.participation import WHOLE_WEIGHT
from stillroom.methods.votes.requests import VOTES, Asking, silence_in
from stillroom.private.entity_votes import EntityTeacher, Queries, silence
from stillroom.public.report_decoding import Reals, Reports
from stillroom.sources.base import Passages, Progress
from stillroom.vocabulary import Bounded, Integers

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe

REACH = 14
"""Standard deviations within which every share of noise lies: its tables end before."""


@dataclass(frozen=True, eq=False)
class Entities:
    """All entities with their teachers, ready to be asked through their own gates.

    Args:
        recipe: the recipe.
        asking: who is asked what.
        teachers: by the entity's name.
        passages: by the entity's name and the request's.
        progress: told.
    """

    recipe: VotesRecipe
    asking: Asking
    teachers: Mapping[str, EntityTeacher]
    passages: Passages
    progress: Progress
    vanished: set[str] = field(default_factory=set)

    def summed(self, kind: str, queries: Queries) -> Integers:
        """The opened sum of all rows of a session, one row per question."""
        rows = {}
        for number, name in enumerate(self.teachers, 1):
            self.progress.step(number, len(self.teachers))
            rows[name] = self._rows(name, kind, queries)
        return self._opened(rows, self._largest(kind))

    def noise(self, kind: str) -> float:
        """The noise on each count of an opened sum: everybody's share is in it."""
        return math.sqrt(sum(share**2 for share in self._shares(kind)))

    def _shares(self, kind: str) -> list[Fraction]:
        there = [own for name, own in self.passages.items() if name not in self.vanished]
        found = [(own.get(kind) or own[silence_in(kind)]).mechanism for own in there]
        return [one.share for one in found if isinstance(one, GaussianShare)]

    def _largest(self, kind: str) -> int:
        """No entry of a row is larger: no noise share is REACH standard deviations long."""
        return WHOLE_WEIGHT + math.ceil(REACH * max(self._shares(kind))) + 1

    def _opened(self, rows: Mapping[str, Integers], largest: int) -> Integers:
        """The exact sum of the rows of all who are there, by a secure sum in this process.

        Raises:
            BadInput: more have vanished than the noise was calculated for.
        """
        self.progress.tell("secure sum")
        dropouts, colluding = self.recipe.entities.dropouts, self.recipe.entities.colluding
        identities, roster = enrol(rows)
        queries, classes = next(iter(rows.values())).shape
        plan = Plan(
            new_session(),
            roster,
            dropouts,
            colluding,
            (queries, classes),
            largest,
            # Every entity has paid by now: a sum that leaves 32 bits must not be refused.
            bits=32 if len(rows) * largest < 1 << 31 else 64,
            neighbours=suggested_neighbours(len(rows), dropouts, colluding),
        )
        session = run(plan, identities, rows, carry=partial(_to_those_there, plan, self.vanished))
        if session.opened is None:
            assert session.refusal is not None
            raise session.refusal
        total: Integers = np.asarray(session.opened.total, dtype=np.int64)
        return total

    def _rows(self, name: str, kind: str, queries: Queries) -> Integers:
        """One entity's rows: its noisy votes, and noise alone where it sits out."""
        teacher, own = self.teachers[name], self.passages[name]
        rows = np.zeros((len(queries), self.asking.classes), dtype=np.int64)
        places, weight = self.asking.answered_by(name, kind), self.asking.weight(name)
        places = places[places < len(queries)]
        if kind in own:
            some, least = queries.some(places), self.recipe.votes.abstain

            def votes() -> Bounded:
                return teacher.votes(some, weight, least)

            if self._is_lost(name, own[kind], some):
                return rows
            rows[places] = own[kind].answer(some.digest(kind), votes).value
        quiet = np.setdiff1d(np.arange(len(queries)), places if kind in own else [])
        if len(quiet):
            silent = queries.some(quiet)
            if not self._is_lost(name, own[silence_in(kind)], silent):
                rows[quiet] = self._silence(own[silence_in(kind)], silent)
        return rows

    def _is_lost(self, name: str, passage: Passage, queries: Queries) -> bool:
        """Whether an entity cannot answer any more; it has vanished then."""
        wanted = len(queries)
        known = passage.knows(queries.digest(passage.name))
        if not known and passage.ahead(wanted) < wanted:
            self.vanished.add(name)
        return name in self.vanished

    def _silence(self, passage: Passage, queries: Queries) -> Integers:
        unit, classes = self.recipe.data.pair.unit, self.asking.classes
        rows: Integers = passage.answer(
            queries.digest(passage.name), lambda: silence(len(queries), classes, unit)
        ).value
        return rows

    def summed_responses(self, queries: Queries) -> tuple[Integers, Fraction]:
        """The sum of all entities' responses, and the chance with which each told the truth."""
        rows, keep = {}, Fraction(0)
        for number, name in enumerate(self.teachers, 1):
            self.progress.step(number, len(self.teachers))
            passage = self.passages[name][VOTES]
            assert isinstance(passage.mechanism, ResponseShare)
            keep = passage.mechanism.keep
            rows[name] = np.zeros((len(queries), self.asking.classes), dtype=np.int64)
            if not self._is_lost(name, passage, queries):
                rows[name] = self._told(passage, name, queries)
        return self._opened(rows, largest=1), keep

    def reports(self, queries: Queries) -> list[Reports]:
        """What each entity reported for everyone to see."""
        found = []
        for number, name in enumerate(self.teachers, 1):
            self.progress.step(number, len(self.teachers))
            places = self.asking.answered_by(name, VOTES)
            if not len(places):
                continue
            passage, some = self.passages[name][VOTES], queries.some(places)
            if not self._is_lost(name, passage, some):
                found.append(Reports(places, self._told(passage, name, some), law_of(passage)))
        return found

    def _told(self, passage: Passage, name: str, queries: Queries) -> Integers:
        teacher, least = self.teachers[name], self.recipe.votes.abstain
        question = queries.digest(VOTES)
        told: Integers = passage.answer(question, lambda: teacher.reports(queries, least)).value
        return told


def _to_those_there(plan: Plan, vanished: set[str], leg: Leg, data: bytes) -> tuple[bytes, ...]:
    """A network that does not reach those who have vanished."""
    return () if plan.names[leg.position] in vanished else (data,)


def law_of(passage: Passage) -> Reals:
    """The chance of each report, one row per answer; of a row of bits, that each is set."""
    mechanism = passage.mechanism
    if isinstance(mechanism, UnaryEncoding):
        law = np.full((mechanism.classes, mechanism.classes), float(mechanism.flip))
        np.fill_diagonal(law, 0.5)
        return law
    assert isinstance(mechanism, (RandomisedResponse, TruncatedGeometric))
    return np.array(
        [[float(p) for p in mechanism.law(answer)] for answer in range(mechanism.classes)]
    )
