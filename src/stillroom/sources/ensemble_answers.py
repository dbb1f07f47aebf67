"""What an ensemble answers through its paid passages.

Hints: each teacher maps its hidden layer to the public auxiliary teacher's, and the sum of the
clipped differences is released. Votes: the sum of the teachers' soft votes is released, for one
query or for the mean of a group; or, with a threshold, the class they agree on. What is made of the
answers is post-processing; queries may follow from earlier answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial

import numpy as np

from stillroom.data import Dataset, PublicPictures
from stillroom.errors import BadInput
from stillroom.gate import UNANSWERED, Mechanism, Passage
from stillroom.private import Ensemble, Hints
from stillroom.private.ensemble import Rows
from stillroom.public.bounds import shrunk
from stillroom.public.noisy_votes import posterior, vote_shares
from stillroom.sources import base
from stillroom.sources.base import Reals, Records, Scores
from stillroom.sources.hint_bound import public_bound
from stillroom.sources.noise import sigma_of
from stillroom.sources.sketch import DrawnSketch
from stillroom.sources.teachers import GRID, HINT_STEPS, TeachersSection
from stillroom.vocabulary import Bounded, Integers, Sanitised

CHUNK = 1024
"""Queries per question: a crash loses one question at most."""
LEAST_PROBABILITY = 1e-6


class PaidEnsemble(base.Answers):
    """Answers of an ensemble through a paid gate, as many as were paid for and in order.

    The same question again gets the same answer free (L7). Queries that are no longer paid for are
    left out, and nothing is drawn for them.

    Guarantee: one record (one person, where persons share a shard) or one whole teacher, at the
    price of the passages' block.
    Assumes: queries, groups, hints and centres are public or sanitised; the block's recipe names
    the features and the start of the teachers.

    Args:
        section: the numbers.
        ensemble: its teachers.
        votes: the passage of its votes; it may hold fewer answers than planned.
        hints: the passage of its hints, where there are some.
        labelled: public records for the bound of hints.
        rows: the teachers' features; pixels when left out.
        chunk: queries per question.
        sketch: drawn beside the teachers, perhaps.

    Raises:
        BadInput: the ensemble or the passages are not those of the section.
    """

    def __init__(
        self,
        section: TeachersSection,
        ensemble: Ensemble,
        votes: Passage,
        hints: Passage | None,
        labelled: Dataset,
        rows: Rows | None = None,
        chunk: int = CHUNK,
        sketch: DrawnSketch | None = None,
    ) -> None:
        width = 1 if hints is None else hints.mechanism.coordinates
        planned = [_kind(r.at(Fraction(1))) for r in section.requests(ensemble.classes, width)]
        given = [_kind(passage.mechanism) for passage in (votes, hints) if passage is not None]
        if ensemble.plan != section.ensemble(ensemble.plan.key) or given != planned:
            raise BadInput(
                "the teachers or the passages are not those of the section",
                where="ensemble",
                why="answers would be read in units they were not given in",
                remedy="train `section.ensemble`, and reserve what `section.requests` lists",
            )
        self._section, self._labelled, self._chunk = section, labelled, chunk
        self._rows, self.sketch = rows, sketch
        self._ensemble: Ensemble | None = ensemble
        self._plan = ensemble.plan
        self._classes = ensemble.classes
        self._votes, self._hints = votes, hints
        self._given: dict[bytes, list[Sanitised[Integers]]] = {}

    @property
    def left(self) -> int:  # type: ignore[override]
        """How many queries may still be asked, or groups of them."""
        return self._votes.rest

    def scores(self, x: Records, groups: Integers | None = None) -> Scores:
        """The logarithms of the classes' probabilities, for as many as are paid for.

        Raises:
            BadInput: groups do not fit, or the teachers are gone.
        """
        if groups is not None:
            return self._group_scores(x, groups)
        section, kind = self._section, "votes" if self._section.gated else "soft votes"

        def bounded(part: slice) -> Bounded:
            if section.gated:
                return self._teachers.votes(x[part])
            return self._teachers.soft_votes(x[part], GRID, section.temperature)

        found = self._ask(self._votes, len(x), lambda part: self._question(kind, x[part]), bounded)
        if not section.gated:
            chances = self._chances(found)
            return self._scores(chances, np.arange(len(chances)))
        none: Integers = np.zeros(0, dtype=np.int64)
        classes = np.concatenate([none, *(noisy.value for noisy in found)])
        answered = np.flatnonzero(classes != UNANSWERED)
        return self._scores(np.eye(self._classes)[classes[answered]], answered)

    def _group_scores(self, x: Records, groups: Integers) -> Scores:
        fits = groups.shape == (len(x),) and groups.dtype.kind in "iu"
        size = len(np.unique(groups[groups >= 0])) if fits else 0
        if self._section.gated or not fits or groups.max(initial=-1) != size - 1:
            raise BadInput(
                "the groups do not number the queries from 0 without gaps, or there is a threshold",
                where="groups",
                why="a group without queries has no mean, and a mean has no count to be gated by",
                remedy="give one group number per query, and no teachers.threshold",
            )

        def members(part: slice) -> tuple[Records, Integers]:
            inside = (groups >= part.start) & (groups < part.stop)
            return x[inside], (groups[inside] - part.start).astype(np.int64)

        def bounded(part: slice) -> Bounded:
            return self._teachers.group_means(*members(part), GRID, self._section.temperature)

        found = self._ask(
            self._votes, size, lambda part: self._question("group means", *members(part)), bounded
        )
        chances = self._chances(found)
        answered = np.flatnonzero((groups >= 0) & (groups < len(chances)))
        return self._scores(chances[groups[answered]], answered)

    def hints(self, x: Records, centre: Reals, known: Records, values: Reals) -> Reals:
        """The centre plus the noisy mean of the teachers' clipped differences.

        It is shrunk by as much as it is noise: little noise leaves it as it is, much noise leaves
        the centre. One row per query, for as many, from the first on, as are paid for.

        Raises:
            BadInput: a part does not fit, or the teachers are gone.
        """
        passage, hints = self._hints, Hints(known, values)
        if passage is None or centre.shape != (len(x), hints.values.shape[1]):
            raise BadInput(
                "the centre is not one hint per query, or no hints were paid for",
                where="hints",
                why="answers would be read in units they were not given in",
                remedy="take the auxiliary teacher's hints, of the planned width",
            )
        labelled = self._labelled
        bound = public_bound(
            self._plan,
            PublicPictures(labelled.x, "the labelled public part"),
            labelled.y,
            x,
            centre,
            hints,
            classes=self._classes,
            steps=HINT_STEPS,
            rows=self._rows,
        )

        def question(part: slice) -> bytes:
            return self._question(
                "hints", x[part], centre[part], hints.x, hints.values, np.array(bound.units)
            )

        def bounded(part: slice) -> Bounded:
            return self._teachers.hint_residuals(
                x[part], centre[part], hints, bound.value, bound.units
            )

        found = self._ask(passage, len(x), question, bounded)
        sums = np.concatenate([np.zeros((0, centre.shape[1])), *(noisy.value for noisy in found)])
        units = bound.units * self._section.count
        return centre[: len(sums)] + shrunk(sums / units, sigma_of(passage) / units)

    def samples(self, count: int, seed: int) -> Records | None:
        """Of the sketch beside them."""
        return None if self.sketch is None else self.sketch.samples(count, seed)

    def close(self) -> None:
        """Let go of the teachers: what was answered can be read again, nothing else is asked."""
        self._ensemble = None

    @property
    def _teachers(self) -> Ensemble:
        if self._ensemble is None:
            raise BadInput(
                "a new question for teachers that are gone",
                where="ensemble",
                why="the source was closed after its last answer",
                remedy="ask all questions before `close`",
            )
        return self._ensemble

    def _ask(
        self,
        passage: Passage,
        size: int,
        question: Callable[[slice], bytes],
        bounded: Callable[[slice], Bounded],
    ) -> list[Sanitised[Integers]]:
        """Ask chunk by chunk, until one is not paid for: that one is asked in part."""
        whole = question(slice(0, size))
        if whole in self._given:
            return self._given[whole]
        found: list[Sanitised[Integers]] = []
        for first in range(0, size, self._chunk):
            wanted = min(self._chunk, size - first)
            known = passage.knows(question(slice(first, first + wanted)))
            rows = wanted if known else passage.ahead(wanted)
            part = slice(first, first + rows)
            if rows:
                found.append(passage.answer(question(part), partial(bounded, part)))
            if rows < wanted:
                break
        self._given[whole] = found
        return found

    def _chances(self, found: Sequence[Sanitised[Integers]]) -> Reals:
        if not found:
            return np.zeros((0, self._classes))
        shares = vote_shares(found, teachers=self._section.count, grid=GRID)
        return posterior(shares, self._noise)

    @property
    def _noise(self) -> float:
        """Of a vote share; 0 for classes that the gate has chosen itself."""
        return 0.0 if self._section.gated else sigma_of(self._votes) / (self._section.count * GRID)

    def _scores(self, chances: Reals, answered: Integers) -> Scores:
        return Scores(np.log(np.maximum(chances, LEAST_PROBABILITY)), answered, self._noise)

    def _question(self, kind: str, *arrays: Records) -> bytes:
        """A digest of all that an answer depends on, beside the records and the recipe."""
        numbers = {"grid": GRID, "temperature": self._section.temperature}
        head = json.dumps([kind, numbers, asdict(self._plan)], sort_keys=True)
        digest = hashlib.sha256(head.encode())
        for array in arrays:
            digest.update(f"\n{array.dtype.str}{array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()


def _kind(mechanism: Mechanism) -> tuple[type[Mechanism], int]:
    return type(mechanism), mechanism.coordinates
