"""An ensemble: one teacher per hash shard, each a function of its own shard and of public things.

The sharding lemma (theory.md#shards) needs exactly that. So records are assigned and put in order
by keyed hashes of their ids, features are computed shard by shard, and every length comes from a
public constant, never from the data (K2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stillroom import engine as work
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.private.ensemble_plan import RIDGE, EnsemblePlan
from stillroom.private.hints import Hints, hint_residual, hint_sensitivity, hint_steps
from stillroom.private.quantise import Floats
from stillroom.private.ridge import ridge_scores
from stillroom.private.sealed import Records, opened
from stillroom.private.shard_training import (
    EMPTY,
    Arrays,
    Rows,
    pictures,
    run_key,
    shard_members,
    shard_payload,
    train_group,
)
from stillroom.private.teacher_sums import TeacherSums
from stillroom.randomness import uniforms
from stillroom.vocabulary import Bounded, Integers, Unit

if TYPE_CHECKING:
    from stillroom.private.stacked import Asker

__all__ = ["Ensemble", "EnsemblePlan", "Rows"]


class Ensemble(TeacherSums):
    """Teachers on disjoint shards, ready to answer public queries with bounded sums.

    Guarantee: one record (one person, where persons are known), added, removed or changed under
    its id, changes one teacher and leaves all others equal to the last bit.
    Assumes: ids are unique; `rows` and `start` come from public data.

    >>> from stillroom.data import digits
    >>> plan, here = EnsemblePlan(count=20, key="tour", shard_cap=120), work.Engine("serial")
    >>> Ensemble.train(digits(), None, plan, engine=here)
    Ensemble(ridge, count=20, classes=10, unit=record)
    """

    def __init__(
        self,
        plan: EnsemblePlan,
        groups: Sequence[Arrays],
        rows: Rows,
        classes: int,
        unit: Unit,
    ) -> None:
        self.plan = plan
        self.classes, self.unit, self.default_class = classes, unit, plan.default_class
        self._groups = groups
        self._rows = rows

    @classmethod
    def train(
        cls,
        records: Records,
        rows: Rows | None,
        plan: EnsemblePlan,
        *,
        engine: work.Engine = work.CORES,
        folder: Path | None = None,
        start: Arrays | None = None,
        on_done: Callable[[int, int], None] = lambda done, total: None,
    ) -> Ensemble:
        """Train every teacher on its own shard.

        Args:
            records: the sensitive records; public ones train stand-ins.
            rows: public features, applied to one shard at a time; pixels when left out.
            plan: the public constants.
            engine: where the units of work run; the result does not depend on it.
            folder: keeps finished units, so that an interrupted run goes on; holds sensitive
                weights.
            start: weights from public data that every teacher starts from, by name.
            on_done: told how many units of work are done, and of how many.

        Raises:
            BadInput: a default class, features or a start that do not fit.
        """
        data = opened(records)
        if plan.default_class >= len(data.classes):
            raise BadInput(
                f"there is no class {plan.default_class}",
                where="default_class",
                why="the default must be an answer that a teacher could give",
                remedy="give the number of a class",
            )
        usual = pictures if plan.one_by_one else pixels
        rows = usual if rows is None else rows
        probe = rows(uniforms(0, "probe of features", size=(2, *data.shape)))
        if probe.ndim < 2 or len(probe) != 2 or (plan.teacher == RIDGE and probe.ndim != 2):
            raise BadInput(
                f"the features of two records have shape {probe.shape}",
                where="rows",
                why="each record needs its own features, and ridge teachers need them in a row",
                remedy="give a function from records to one row per record",
            )
        size = 1 if plan.one_by_one else plan.stack
        own = shard_members(data, plan)
        units = [
            work.WorkItem(f"teachers-{n:05d}", shard_payload(data, own[n : n + size], first=n))
            for n in range(0, plan.count, size)
        ]
        task = partial(train_group, plan, rows, probe.shape[1:], len(data.classes), start)
        groups = work.run_all(
            task,
            units,
            key=run_key(plan, data, probe, start),
            engine=engine,
            folder=folder,
            on_done=on_done,
        )
        unit = Unit.RECORD if data.persons is None else Unit.PERSON
        return cls(plan, groups, rows, len(data.classes), unit)

    @property
    def count(self) -> int:
        return self.plan.count

    def given(self, rows: Rows) -> Ensemble:
        """The same teachers, asked by other rows: such as features that are at hand."""
        return Ensemble(self.plan, self._groups, rows, self.classes, self.unit)

    def hint_residuals(
        self,
        queries: npt.NDArray[Any],
        centre: Floats,
        hints: Hints,
        bound: Fraction | int | str,
        grid: int,
    ) -> Bounded:
        """The sum of the teachers' clipped hints minus the public ones, one row per query.

        Hidden layers of independent teachers do not agree, so each teacher fits, on public records
        alone, a ridge map from its own to the hints of the public auxiliary teacher. The hidden
        layer is the input of the last linear layer; for ridge and linear teachers it is the scores.

        Guarantee: a teacher's row is an integer vector of norm at most floor(bound * grid); two
        such rows are at most twice that apart. A teacher without records adds zero.

        Args:
            queries: public records.
            centre: the auxiliary teacher's hints at the queries.
            hints: the public records and hints that the maps are fitted to.
            bound: the clip.
            grid: how many units one has.

        Raises:
            BadInput: the centre does not fit the queries and hints, or a number is out of range.
        """
        if centre.shape != (len(queries), hints.values.shape[1]) or not np.isfinite(centre).all():
            raise BadInput(
                "the centre is not one finite hint per query, as wide as the public hints",
                where="centre",
                why="hints are told as differences from it",
                remedy="take the auxiliary teacher's hints at the queries",
            )
        steps = hint_steps(bound, grid)
        total: Integers = np.zeros(centre.shape, dtype=np.int64)
        pairs = zip(self._hidden(queries), self._hidden(hints.x), strict=True)
        for hidden, known in pairs:
            if hidden is not None and known is not None:
                total += hint_residual(hidden, known, hints, centre, steps, grid)
        return Bounded(total, hint_sensitivity(steps, self.unit))

    def fingerprints(self) -> list[str]:
        """A SHA-256 of each teacher's weights, for stability tests; as sensitive as the weights."""
        found = []
        for group in self._groups:
            for teacher in range(len(group[EMPTY])):
                digest = hashlib.sha256()
                for name in sorted(group):
                    digest.update(name.encode() + group[name][teacher].tobytes())
                found.append(digest.hexdigest())
        return found

    def _scores(self, queries: npt.NDArray[Any]) -> Iterator[Floats]:
        inputs = self._rows(queries)
        asker = None if self.plan.teacher == RIDGE else self._asker(inputs)
        for group in self._groups:
            if asker is None:
                scores = ridge_scores(group["weights"], inputs)
            else:
                answers = [asker.scores(state, inputs) for state in _states(group)]
                scores = np.stack(answers, axis=1)
            scores[:, group[EMPTY]] = 0.0
            yield scores

    def _hidden(self, queries: npt.NDArray[Any]) -> Iterator[Floats | None]:
        """The hidden layer of one teacher after another; None where there are no records."""
        if self.plan.teacher in (RIDGE, "linear"):
            for group, scores in zip(self._groups, self._scores(queries), strict=True):
                for teacher, empty in enumerate(group[EMPTY]):
                    yield None if empty else scores[:, teacher]
            return
        inputs = self._rows(queries)
        asker = self._asker(inputs)
        for group in self._groups:
            for empty, state in zip(group[EMPTY], _states(group), strict=True):
                yield None if empty else asker.hidden(state, inputs)

    def _asker(self, inputs: Floats) -> Asker:
        from stillroom.private.stacked import Asker  # torch is heavy, and ridge needs none

        return Asker(self.plan, inputs.shape[1:], self.classes)

    def __repr__(self) -> str:
        return (
            f"Ensemble({self.plan.teacher}, count={self.count}, classes={self.classes}, "
            f"unit={self.unit})"
        )


def _states(group: Arrays) -> Iterator[dict[str, npt.NDArray[Any]]]:
    for teacher in range(len(group[EMPTY])):
        yield {name: array[teacher] for name, array in group.items() if name != EMPTY}
