"""What an ensemble says outside: integer sums in which every teacher has one bounded term.

Claim: a record (a person, where persons are known) is in one shard, so it changes one teacher,
which is there before and after. Its term moves from one admissible answer to another, so the
sensitivity is the diameter of the set of answers and not its radius (theory.md#diameter). Scores
become integers inside the teacher (E1); the sum over teachers is then exact in any order.

Teachers are asked a few at a time: no array holds the scores of all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.private.quantise import (
    Floats,
    check_grid,
    on_grid,
    settled,
    simplex_sensitivity,
    softmax,
)
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit


class TeacherSums(ABC):
    """Teachers on disjoint shards that answer public queries.

    Guarantee: one record (one person, where persons are known) or one whole teacher moves an
    answer within the sensitivity it carries, whatever that teacher says: an answer that is no
    finite number counts as a fixed public default.
    Assumes: queries, grids, temperatures and groups are public or sanitised (K5).
    """

    classes: int
    unit: Unit
    default_class: int

    @abstractmethod
    def _scores(self, queries: npt.NDArray[Any]) -> Iterator[Floats]:
        """Scores of the next few teachers, as (query, teacher, class)."""

    def votes(self, queries: npt.NDArray[Any]) -> Bounded:
        """How many teachers vote for each class, one row per query; for noisy votes.

        Args:
            queries: public records.
        """
        counts: Integers = np.zeros((len(queries), self.classes), dtype=np.int64)
        rows = np.arange(len(queries))
        for scores in self._scores(queries):
            scores = settled(scores)
            choice = scores.argmax(axis=2)
            # Equal scores say nothing: an empty shard votes for a public class (K5).
            choice[scores.max(axis=2) == scores.min(axis=2)] = self.default_class
            for teacher in range(choice.shape[1]):
                counts[rows, choice[:, teacher]] += 1
        return Bounded(counts, Sensitivity.uniform(Norm.UNIT_STEPS, 2, self.unit))

    def soft_votes(
        self,
        queries: npt.NDArray[Any],
        grid: int,
        temperature: float = 1.0,
    ) -> Bounded:
        """The sum of the teachers' softmax answers in units of 1/grid, one row per query.

        Guarantee: a teacher's row has integers >= 0 that add up to at most `grid`; two such rows
        are at most sqrt 2 times `grid` apart.

        Args:
            queries: public records.
            grid: how many units a whole vote has.
            temperature: divides the scores before the softmax.

        Raises:
            BadInput: the grid or the temperature is out of range.
        """
        check_grid(grid)
        total: Integers = np.zeros((len(queries), self.classes), dtype=np.int64)
        for scores in self._scores(queries):
            total += on_grid(softmax(settled(scores), temperature), grid).sum(axis=1)
        return Bounded(total, simplex_sensitivity(grid, self.unit))

    def group_means(
        self,
        queries: npt.NDArray[Any],
        groups: npt.ArrayLike,
        grid: int,
        temperature: float = 1.0,
    ) -> Bounded:
        """The sum of the teachers' mean softmax answers, one row per group of queries.

        Guarantee: as `soft_votes`: a mean of softmax answers is one too, whatever the group's size.

        Args:
            queries: public records.
            groups: the group of each query, numbered from 0 without gaps; -1 for none.
            grid: how many units a whole vote has.
            temperature: divides the scores before the softmax.

        Raises:
            BadInput: the groups do not fit the queries, or the grid or temperature is out of range.
        """
        order, starts, sizes = _grouped(groups, len(queries))
        check_grid(grid)
        total: Integers = np.zeros((len(starts), self.classes), dtype=np.int64)
        for scores in self._scores(queries):
            soft = softmax(settled(scores[order]), temperature)
            means = np.add.reduceat(soft, starts, axis=0) / sizes[:, None, None]
            total += on_grid(means, grid).sum(axis=1)
        return Bounded(total, simplex_sensitivity(grid, self.unit))


def _grouped(groups: npt.ArrayLike, size: int) -> tuple[Integers, Integers, Integers]:
    """The queries in the order of their groups, where each group starts, and its size."""
    group = np.asarray(groups)
    fits = group.shape == (size,) and group.dtype.kind in "iu" and group.size > 0
    sizes = np.bincount(group[group >= 0]) if fits else np.zeros(0, dtype=np.int64)
    if not len(sizes) or not sizes.all():
        raise BadInput(
            "the groups do not number the queries from 0 without gaps",
            where="groups",
            why="a group without queries has no mean",
            remedy="give one group number per query, -1 for none",
        )
    order = np.argsort(group, kind="stable")[int((group < 0).sum()) :]
    return order, np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes
