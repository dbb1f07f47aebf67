"""RONA-E: hints and soft labels from teachers on disjoint shards, every answer charged.

RONA's two stages in the form of privacy.md 1d. Hints: each teacher maps its hidden layer to the
public auxiliary teacher's, and the sum of the clipped differences is released. Distillation: the
sum of the teachers' soft votes is released, for one query or for the mean of a group. What is made
of the answers is post-processing; the queries may follow from earlier answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.gate import UNANSWERED, GaussianAnswers, Mechanism, Passage
from stillroom.methods.rona.answers import EnsembleAnswers
from stillroom.private import Ensemble, Hints
from stillroom.public.bounds import PublicBound, shrunk
from stillroom.public.noisy_votes import posterior, vote_shares
from stillroom.vocabulary import Bounded, Integers, Sanitised

Reals = npt.NDArray[np.float64]
Records = npt.NDArray[Any]


class EnsembleSource:
    """Answers of an ensemble through a paid gate, as many as were paid for and in order.

    The same question again, now or in a continued run, gets the same answer free (L7). Queries that
    are no longer paid for are left out, nothing is drawn for them, and `exhausted` says so.

    Guarantee: one record (one person, where persons share a shard) or one whole teacher, at the
    price of the gates' block.
    Assumes: queries, groups, hints and centres are public or sanitised; the block's recipe names
    the features and the start of the teachers.

    Args:
        plan: what was planned.
        ensemble: its teachers.
        ways: one passage a wish of the plan, in order; they may hold fewer answers than planned.

    Raises:
        BadInput: the ensemble or the ways are not those of the plan.
    """

    def __init__(self, plan: EnsembleAnswers, ensemble: Ensemble, ways: Sequence[Passage]) -> None:
        planned = [_kind(mechanism) for mechanism, _ in plan.wishes(Fraction(1))]
        same = ensemble.plan == plan.teachers and ensemble.classes == plan.classes
        if not same or [_kind(way.mechanism) for way in ways] != planned:
            raise BadInput(
                "the teachers or the ways through the gate are not those of the plan",
                where="ensemble",
                why="answers would be read in units they were not given in",
                remedy="train `plan.teachers`, and reserve what `plan.wishes` lists",
            )
        self.plan = plan
        self.exhausted = False
        self._ensemble: Ensemble | None = ensemble
        self._votes = _Way(ways[0])
        self._hints = _Way(ways[1]) if plan.hints else None

    @property
    def asked(self) -> tuple[int, int]:
        """Votes and hints that were drawn from the block and used; gated queries count too."""
        return self._votes.asked, self._hints.asked if self._hints else 0

    @property
    def left(self) -> tuple[int, int]:
        """Votes and hints that can still be drawn."""
        return self._votes.left, self._hints.left if self._hints else 0

    def hint_targets(
        self, x: Records, centre: Reals, hints: Hints, bound: PublicBound
    ) -> Reals | None:
        """What a student's guided layer shall say at the first queries; None without hints.

        The centre plus the noisy mean of the teachers' clipped differences, shrunk by as much as
        it is noise: little noise leaves it as it is, much noise leaves the centre. One row a query,
        for as many of the queries, from the first on, as are paid for.

        Args:
            x: public queries.
            centre: the auxiliary teacher's hints at the queries.
            hints: the public records and hints that each teacher's map is fitted to.
            bound: the clip, from public records.

        Raises:
            BadInput: a part does not fit the plan, or the teachers are gone.
        """
        if self._hints is None:
            return None
        width = self.plan.hint_width
        if centre.shape != (len(x), width) or hints.values.shape[1] != width:
            raise BadInput(
                f"the centre is not one hint of {width} numbers a query, or the hints are not",
                where="centre",
                remedy="take the auxiliary teacher's hints, of the planned width",
            )
        if not isinstance(bound, PublicBound) or bound.steps != self.plan.hint_steps:
            raise BadInput(
                "the bound is no public bound of the planned number of grid units",
                where="bound",
                why="a clip that was read off the teachers would have to be paid for",
                remedy="make it with `public_bound`, or with `adaptive_bound` from public lengths",
            )

        def question(part: slice) -> bytes:
            numbers = {"ridge": hints.ridge, "steps": bound.steps, "units": bound.units}
            return self._question("hints", numbers, x[part], centre[part], hints.x, hints.values)

        def answer(part: slice) -> Bounded:
            return self._teachers.hint_residuals(
                x[part], centre[part], hints, bound.value, bound.units
            )

        found = self._ask(self._hints, len(x), question, answer)
        sums = np.concatenate([np.zeros((0, width)), *(noisy.value for noisy in found)])
        mechanism, units = self._hints.mechanism, bound.units * self.plan.teachers.count
        assert isinstance(mechanism, GaussianAnswers)
        return centre[: len(sums)] + shrunk(sums / units, float(mechanism.sigma) / units)

    def soft_labels(self, x: Records) -> tuple[Integers, Reals]:
        """Positions of the queries that were answered, and the probabilities of their classes.

        With gating an answer is one class, and its probabilities are one and zeros.

        Args:
            x: public queries.

        Raises:
            BadInput: the teachers are gone.
        """
        plan = self.plan
        kind = "soft votes" if plan.confident is None else "votes"
        numbers = {"grid": plan.grid, "temperature": plan.temperature}

        def answer(part: slice) -> Bounded:
            if plan.confident is not None:
                return self._teachers.votes(x[part])
            return self._teachers.soft_votes(x[part], plan.grid, plan.temperature)

        found = self._ask(
            self._votes, len(x), lambda part: self._question(kind, numbers, x[part]), answer
        )
        if plan.confident is None:
            labels = self._labels(found)
            return np.arange(len(labels)), labels
        none: Integers = np.zeros(0, dtype=np.int64)
        classes = np.concatenate([none, *(noisy.value for noisy in found)])
        self.exhausted |= not self._votes.answers
        answered = np.flatnonzero(classes != UNANSWERED)
        return answered, np.eye(plan.classes)[classes[answered]]

    def group_labels(self, x: Records, groups: npt.ArrayLike) -> Reals:
        """The probabilities of the classes of the first groups, one charged answer a group.

        Args:
            x: public queries.
            groups: the group of each query, numbered from 0 without gaps; -1 for none.

        Raises:
            BadInput: the plan has gating, the groups do not fit, or the teachers are gone.
        """
        group, plan = np.asarray(groups), self.plan
        fits = group.shape == (len(x),) and group.dtype.kind in "iu"
        size = len(np.unique(group[group >= 0])) if fits else 0
        if plan.confident is not None or not fits or group.max(initial=-1) != size - 1:
            raise BadInput(
                "the groups do not number the queries from 0 without gaps, or the plan is gated",
                where="groups",
                why="a group without queries has no mean, and a mean has no count to be gated by",
                remedy="give one group number a query, in a plan without `confident`",
            )
        numbers = {"grid": plan.grid, "temperature": plan.temperature}

        def members(part: slice) -> tuple[Records, Integers]:
            inside = (group >= part.start) & (group < part.stop)
            return x[inside], (group[inside] - part.start).astype(np.int64)

        def answer(part: slice) -> Bounded:
            return self._teachers.group_means(*members(part), plan.grid, plan.temperature)

        return self._labels(
            self._ask(
                self._votes,
                size,
                lambda part: self._question("group means", numbers, *members(part)),
                answer,
            )
        )

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
        way: _Way,
        size: int,
        question: Callable[[slice], bytes],
        answer: Callable[[slice], Bounded],
    ) -> list[Sanitised[Integers]]:
        """Ask chunk by chunk, until one is not paid for: that one is asked in part."""
        found: list[Sanitised[Integers]] = []
        for first in range(0, size, self.plan.chunk):
            whole = min(self.plan.chunk, size - first)
            # As far as the block goes, or as far as it went when the same was asked before.
            for rows in (whole, way.left, *sorted(way.sizes, reverse=True)):
                part = slice(first, first + rows)
                if 0 < rows <= whole:
                    noisy = way.ask(rows, question(part), partial(answer, part))
                    if noisy is not None:
                        found.append(noisy)
                        break
            if sum(len(noisy.value) for noisy in found) < first + whole:
                self.exhausted = True
                break
        return found

    def _labels(self, found: Sequence[Sanitised[Integers]]) -> Reals:
        if not found:
            return np.zeros((0, self.plan.classes))
        teachers, grid = self.plan.teachers.count, self.plan.grid
        mechanism = self._votes.mechanism
        assert isinstance(mechanism, GaussianAnswers)
        shares = vote_shares(found, teachers=teachers, grid=grid)
        return posterior(shares, float(mechanism.sigma) / (teachers * grid))

    def _question(self, kind: str, numbers: dict[str, Any], *arrays: Records) -> bytes:
        """A digest of all that an answer depends on, beside the records and the recipe."""
        head = json.dumps([kind, numbers, asdict(self.plan.teachers)], sort_keys=True)
        digest = hashlib.sha256(head.encode())
        for array in arrays:
            digest.update(f"\n{array.dtype.str}{array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()


class _Unpaid(Exception):
    """A question that is new and has more rows than are paid for."""


class _Way:
    """A passage, and how much of it was used, by this run and by the one it continues."""

    def __init__(self, passage: Passage) -> None:
        self.mechanism = passage.mechanism
        self.sizes: set[int] = set()
        self.answers = passage.mechanism.capacity(passage.count)
        self._passage = passage
        self._counted: set[int] = set()
        self._used: dict[int, int] = {}
        for noisy in passage.earlier():
            self._count(noisy)

    @property
    def asked(self) -> int:
        return sum(self._used.values())

    @property
    def left(self) -> int:
        return self._passage.left if self.answers > 0 else 0

    def ask(
        self, rows: int, question: bytes, answer: Callable[[], Bounded]
    ) -> Sanitised[Integers] | None:
        """The answer, old or new; None, and nothing drawn, where it is new and not paid for."""

        def paid() -> Bounded:
            if rows > self.left:
                raise _Unpaid
            return answer()

        try:
            noisy = self._passage.ask(question, paid)
        except _Unpaid:
            return None
        (receipt,) = noisy.receipts
        if receipt.block == self._passage.block:
            self._count(noisy)
            self._used[receipt.draw] = len(noisy.value)
        return noisy

    def _count(self, noisy: Sanitised[Integers]) -> None:
        (receipt,) = noisy.receipts
        if receipt.draw not in self._counted:
            self._counted.add(receipt.draw)
            self.sizes.add(len(noisy.value))
            self.answers -= self.mechanism.answered(noisy.value)


def _kind(mechanism: Mechanism) -> tuple[object, ...]:
    return type(mechanism), mechanism.coordinates, mechanism.sensitivity
