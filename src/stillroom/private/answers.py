"""What an ensemble says outside: integer sums in which every teacher has one bounded term.

Claim: a record (a person, where persons are known) is in one shard, so it changes one teacher,
which is there before and after. Its term moves from one admissible answer to another, so the
sensitivity is the diameter of the set of answers and not its radius (privacy.md 0.1). Scores
become integers inside the teacher (E1); the sum over teachers is then exact in any order.

Teachers are asked a few at a time: no array holds the scores of all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from stillroom.errors import BadInput
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit

Floats = npt.NDArray[np.floating]

MOST_STEPS = 1 << 40
"""Finer grids would bring the sum over many teachers near the end of 64-bit integers."""

MOST_HINT_STEPS, MOST_HINT_WIDTH = 1 << 24, 1 << 14
"""Together they keep the squared norm of a residual below 2^62, in any order of summation."""

_BELOW_ONE = 1 - 2.0**-40
"""Keeps a truncated softmax, whose float sum may exceed one, within its grid."""


class Answers(ABC):
    """Teachers on disjoint shards that answer public queries.

    Guarantee: one record (one person, where persons are known) or one whole teacher moves an
    answer within the sensitivity it carries, whatever that teacher says: an answer that is no
    finite number counts as a fixed public default.
    Assumes: queries, grids, temperatures, groups and graphs are public or sanitised (K5).
    """

    classes: int
    unit: Unit
    default_class: int

    @abstractmethod
    def _scores(self, queries: npt.NDArray[Any]) -> Iterator[Floats]:
        """Scores of the next few teachers, as (query, teacher, class)."""

    def votes(self, queries: npt.NDArray[Any], only: npt.ArrayLike | None = None) -> Bounded:
        """How many teachers vote for each class, one row a query; for noisy votes.

        Args:
            queries: public records.
            only: positions of the queries that are answered; all when left out.
        """
        chosen = _positions(only, len(queries))
        counts: Integers = np.zeros((len(chosen), self.classes), dtype=np.int64)
        rows = np.arange(len(chosen))
        for scores in self._scores(queries):
            scores = settled(scores[chosen])
            choice = scores.argmax(axis=2)
            # Equal scores say nothing: an empty shard votes for a public class (K5).
            choice[scores.max(axis=2) == scores.min(axis=2)] = self.default_class
            for teacher in range(choice.shape[1]):
                counts[rows, choice[:, teacher]] += 1
        return Bounded(counts, Sensitivity.uniform(Norm.STEPS, 2, self.unit))

    def soft_votes(
        self,
        queries: npt.NDArray[Any],
        grid: int,
        temperature: float = 1.0,
        only: npt.ArrayLike | None = None,
    ) -> Bounded:
        """The sum of the teachers' softmax answers in units of 1/grid, one row a query.

        Guarantee: a teacher's row has integers >= 0 that add up to at most `grid`; two such rows
        are at most sqrt 2 times `grid` apart.

        Args:
            queries: public records.
            grid: how many units a whole vote has.
            temperature: divides the scores before the softmax.
            only: positions of the queries that are answered; all when left out.

        Raises:
            BadInput: the grid or the temperature is out of range.
        """
        chosen = _positions(only, len(queries))
        check_grid(grid)
        total: Integers = np.zeros((len(chosen), self.classes), dtype=np.int64)
        for scores in self._scores(queries):
            total += _on_grid(softmax(settled(scores[chosen]), temperature), grid).sum(axis=1)
        return Bounded(total, _simplex(grid, self.unit))

    def group_means(
        self,
        queries: npt.NDArray[Any],
        groups: npt.ArrayLike,
        grid: int,
        temperature: float = 1.0,
    ) -> Bounded:
        """The sum of the teachers' mean softmax answers, one row a group of queries.

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
            total += _on_grid(means, grid).sum(axis=1)
        return Bounded(total, _simplex(grid, self.unit))

    def smoothed(self, graph: sparse.sparray, rounds: int = 3) -> Answers:
        """The same teachers, each averaging its own scores over a public graph before it answers.

        Guarantee: unchanged: a teacher's smoothed scores depend on its own shard and public data.

        Args:
            graph: a row of weights a query, such as `neighbours` of the queries' features.
            rounds: how often to average.

        Raises:
            BadInput: the graph is not square, or a number in it is not finite.
        """
        return _Smoothed(self, graph, rounds)


class _Smoothed(Answers):
    def __init__(self, teachers: Answers, graph: sparse.sparray, rounds: int) -> None:
        self._teachers = teachers
        self._graph = sparse.csr_array(graph, dtype=np.float64)
        self._rounds = rounds
        self.classes, self.unit = teachers.classes, teachers.unit
        self.default_class = teachers.default_class
        rows, columns = self._graph.shape
        if rows != columns or not np.isfinite(self._graph.data).all() or rounds < 0:
            raise BadInput(
                "the graph is not a square of finite weights, or the rounds are below 0",
                where="graph, rounds",
                remedy="make the graph with `neighbours`, from the features of the queries",
            )

    def _scores(self, queries: npt.NDArray[Any]) -> Iterator[Floats]:
        if len(queries) != self._graph.shape[0]:
            raise BadInput(
                f"the graph has {self._graph.shape[0]} nodes for {len(queries)} queries",
                where="graph",
                remedy="ask for all nodes, and name those to be answered with `only`",
            )
        for scores in self._teachers._scores(queries):
            flat = settled(scores).reshape(len(queries), -1)
            for _ in range(self._rounds):
                # Columns stay apart: no teacher sees another's scores.
                flat = self._graph @ flat
            yield flat.reshape(scores.shape)

    def __repr__(self) -> str:
        return f"{self._teachers!r}.smoothed(rounds={self._rounds})"


def neighbours(rows: Floats, count: int = 10) -> sparse.csr_array:
    """A public graph: each row and its nearest neighbours, with equal weights.

    Assumes: `rows` are features of public records.

    >>> neighbours(np.array([[0.0], [1.0], [5.0]]), count=1).toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    from sklearn.neighbors import kneighbors_graph

    if not 1 <= count < len(rows):
        raise BadInput(
            f"{count} neighbours cannot be found among {len(rows)} rows",
            where="count",
            remedy="ask for at least one, and fewer than there are rows",
        )
    near = sparse.csr_array(kneighbors_graph(rows, count, include_self=False))
    return sparse.csr_array((near + sparse.eye_array(len(rows))) / (count + 1))


@dataclass(frozen=True)
class Hints:
    """What a teacher's hidden layer is mapped to: the hints of a public auxiliary teacher.

    Args:
        x: public records.
        values: the auxiliary teacher's hint of each, one row a record.
        ridge: penalty of the map, which each teacher fits by itself.
    """

    x: npt.NDArray[Any]
    values: Floats
    ridge: float = 1e-3

    def __post_init__(self) -> None:
        fits = self.values.ndim == 2 and len(self.values) == len(self.x) > 0
        fits = fits and 1 <= self.values.shape[1] <= MOST_HINT_WIDTH
        if not fits or not np.isfinite(self.values).all() or not self.ridge > 0:
            raise BadInput(
                "the public hints do not fit their records, or the penalty is not above 0",
                where="hints",
                remedy="give one finite row a public record, and a penalty such as 0.001",
            )


def hint_residual(
    hidden: Floats, known: Floats, hints: Hints, centre: Floats, steps: int, grid: int
) -> Integers:
    """One teacher's hints minus the public ones, clipped to `steps` units of 1/grid.

    Guarantee: every row is an integer vector with a norm of at most `steps`, checked in integers.

    Args:
        hidden: the teacher's hidden layer at the queries.
        known: its hidden layer at `hints.x`.
        hints: what the map is fitted to.
        centre: the public hints at the queries.
        steps: the clip in grid units.
        grid: how many units one has.
    """
    none: Integers = np.zeros(centre.shape, dtype=np.int64)
    if not (np.isfinite(hidden).all() and np.isfinite(known).all()):
        return none
    with np.errstate(all="ignore"):
        inputs = np.hstack([known, np.ones((len(known), 1))]).astype(np.float64)
        penalty = hints.ridge * len(inputs) * np.eye(inputs.shape[1])
        try:
            own_map = np.linalg.solve(penalty + inputs.T @ inputs, inputs.T @ hints.values)
        except np.linalg.LinAlgError:
            return none
        away = (hidden @ own_map[:-1] + own_map[-1] - centre) * grid
        lengths = np.sqrt((away * away).sum(axis=1, keepdims=True))
        away = away * np.minimum(1.0, steps * _BELOW_ONE / np.maximum(lengths, 1e-300))
        away[~np.isfinite(away).all(axis=1)] = 0.0
    # A number beyond the clip can only come from arithmetic gone wrong; it must not wrap around.
    integers: Integers = np.trunc(np.clip(away, -steps, steps)).astype(np.int64)
    integers[(integers * integers).sum(axis=1) > steps**2] = 0
    return integers


def hint_sensitivity(steps: int, unit: Unit) -> Sensitivity:
    """A teacher that changes swings from one end of its ball to the other: D = 2 * steps."""
    return Sensitivity.uniform(Norm.L2_SQUARED, 4 * steps**2, unit)


def hint_steps(bound: Fraction | int | str, grid: int) -> int:
    """The clip in whole grid units, rounded down.

    >>> hint_steps("1/3", 100)
    33
    """
    check_grid(grid)
    steps = int(Fraction(bound) * grid)
    if not 1 <= steps <= MOST_HINT_STEPS:
        raise BadInput(
            "the bound is below one grid unit, or above 2^24 of them",
            where="bound, grid",
            why="the squared norm of a term is checked in exact integers",
            remedy="give a bound such as 1/2 with a grid such as 1024",
        )
    return steps


def settled(scores: Floats) -> Floats:
    """Scores with every row that is not finite replaced by equal scores, the public default.

    >>> settled(np.array([[[1.0, 2.0], [np.nan, 3.0]]])).tolist()
    [[[1.0, 2.0], [0.0, 0.0]]]
    """
    usable: Floats = np.where(np.isfinite(scores).all(axis=2, keepdims=True), scores, 0.0)
    return usable


def softmax(scores: Floats, temperature: float) -> npt.NDArray[np.float64]:
    """Each teacher's probabilities; finite scores give finite probabilities.

    Raises:
        BadInput: the temperature is not a positive number.
    """
    if not 1e-6 <= temperature <= 1e6:
        raise BadInput(
            "the temperature must lie in [1e-6, 1e6]",
            where="temperature",
            remedy="give a temperature such as 1",
        )
    with np.errstate(over="ignore"):
        wide = scores.astype(np.float64)
        below = (wide - wide.max(axis=2, keepdims=True)) / temperature
    raised = np.exp(np.maximum(below, -700.0))
    probabilities: npt.NDArray[np.float64] = raised / raised.sum(axis=2, keepdims=True)
    return probabilities


def check_grid(grid: int) -> int:
    """A whole number of units from 1 to 2^40, or a clear refusal."""
    if not isinstance(grid, int) or isinstance(grid, bool) or not 1 <= grid <= MOST_STEPS:
        raise BadInput(
            "the grid must be a whole number from 1 to 2^40",
            where="grid",
            why="answers are integers in units of 1/grid",
            remedy="give a grid such as 1024",
        )
    return grid


def _on_grid(probabilities: npt.NDArray[np.float64], grid: int) -> Integers:
    """Truncated integers whose sum, checked, is at most the grid."""
    integers: Integers = np.floor(probabilities * (grid * _BELOW_ONE)).astype(np.int64)
    beyond = (integers.sum(axis=2) > grid) | (integers.min(axis=2) < 0)
    integers[beyond] = grid // integers.shape[2]
    return integers


def _simplex(grid: int, unit: Unit) -> Sensitivity:
    return Sensitivity.uniform(Norm.L2_SQUARED, 2 * grid**2, unit)


def _positions(only: npt.ArrayLike | None, size: int) -> Integers:
    if only is None:
        return np.arange(size)
    chosen = np.asarray(only)
    known = chosen.ndim == 1 and chosen.dtype.kind in "iu"
    if not known or (chosen.size and not 0 <= chosen.min() <= chosen.max() < size):
        raise BadInput(
            "the queries to be answered are not positions among the queries",
            where="only",
            remedy="give whole numbers from 0 up to the number of queries",
        )
    return chosen.astype(np.int64)


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
            remedy="give one group number a query, -1 for none",
        )
    order = np.argsort(group, kind="stable")[int((group < 0).sum()) :]
    return order, np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes
