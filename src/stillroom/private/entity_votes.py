"""One entity's teacher and its votes on public queries: what leaves it is one bounded row each.

Claim: an entity's teacher is a function of its own records and of public things. So one record (one
person) more, less or changed, or a whole other entity, changes that entity's answers alone, each
from any admissible answer to any other: the sensitivity is the diameter of the set of answers
(theory.md#diameter). Rows w e_k, or zero for one who abstains: sqrt 2 w. Nominal answers: one
choice; one who abstains has a class of its own. A person who is known to m entities changes m rows
of a sum, all in one direction at worst: m sqrt 2 w, and not sqrt m times.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from stillroom import engine as work
from stillroom.private.ensemble import Ensemble
from stillroom.private.ensemble_plan import RIDGE, EnsemblePlan
from stillroom.private.quantise import Floats, settled, softmax
from stillroom.private.sealed import Records
from stillroom.private.shard_training import Rows
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit

ABSTAINS = -1
RIDGE_TEMPERATURE = 0.1
"""Scores of ridge regression lie between 0 and 1, and are no logits."""
HERE = work.Engine("serial")


@dataclass(frozen=True, eq=False)
class Queries:
    """What entities are asked: public, and the same for all of them.

    Args:
        inputs: public records, as teachers are given them.
        mixing: one row per query: how the scores of the records are averaged for it.
        inputs_digest: of the inputs, which are long; found when left out.
    """

    inputs: npt.NDArray[Any]
    mixing: sparse.csr_array
    inputs_digest: bytes = b""

    def __post_init__(self) -> None:
        if not self.inputs_digest:
            object.__setattr__(self, "inputs_digest", _digest(self.inputs))

    def __len__(self) -> int:
        return int(self.mixing.shape[0])

    def some(self, places: Integers) -> Queries:
        """Those at some places."""
        if np.array_equal(places, np.arange(len(self))):
            return self  # hundreds of entities are asked everything, and it is long
        return Queries(self.inputs, self.mixing[places], self.inputs_digest)

    def digest(self, kind: str) -> bytes:
        """Of all that an answer depends on beside the records, as a question of some kind."""
        return _digest(np.frombuffer(self._content + kind.encode(), np.uint8))

    @cached_property
    def _content(self) -> bytes:
        mixed = (self.mixing.data, self.mixing.indices, self.mixing.indptr)
        shape = np.array(self.mixing.shape)
        return _digest(np.frombuffer(self.inputs_digest, np.uint8), shape, *mixed)


class EntityTeacher:
    """The teacher of one entity.

    Guarantee: what `votes` and `reports` say carries its sensitivity, for one record, one person
    where persons are known, and the entity as a whole. Scores that are no finite numbers count as a
    fixed public default.
    Assumes: queries, weights and thresholds are public or sanitised (K5).

    Args:
        records: those of the entity.
        rows: public features, one row per record from that record alone; pixels when left out.
        plan: what is public about the teacher: of an ensemble of one.
        per_person: how many entities may know the same person.
    """

    def __init__(
        self, records: Records, rows: Rows | None, plan: EnsemblePlan, per_person: int = 1
    ) -> None:
        trained = Ensemble.train(records, rows, plan, engine=HERE)
        self.classes, self.unit, self._per_person = trained.classes, trained.unit, per_person
        self._default = plan.default_class
        self._temperature = RIDGE_TEMPERATURE if plan.teacher == RIDGE else 1.0
        # Public features of the queries are computed once for all entities.
        self._teacher = trained.given(np.asarray) if plan.teacher == RIDGE else trained

    def __repr__(self) -> str:
        return "EntityTeacher(<hidden>)"

    def votes(self, queries: Queries, weight: int, least: float | None) -> Bounded:
        """One row per query: `weight` at a class, or zeros where the teacher abstains.

        Args:
            queries: what is asked.
            weight: of the vote.
            least: the probability below which the teacher abstains; None for never.
        """
        choices = self._choices(queries, least)
        rows = np.zeros((len(queries), self.classes), dtype=np.int64)
        said = np.flatnonzero(choices != ABSTAINS)
        rows[said, choices[said]] = weight
        return Bounded(rows, Sensitivity.of_votes(weight, self.unit, self._per_person))

    def reports(self, queries: Queries, least: float | None) -> Bounded:
        """One nominal answer per query; who abstains says the class after the last.

        Args:
            queries: what is asked.
            least: as above.
        """
        choices = self._choices(queries, least)
        choices[choices == ABSTAINS] = self.classes
        return Bounded(choices[:, None], Sensitivity.uniform(Norm.CHOICES, 1, self.unit))

    def _choices(self, queries: Queries, least: float | None) -> Integers:
        with np.errstate(all="ignore"):
            told = settled(np.asarray(queries.mixing @ self._scores(queries.inputs))[:, None])
        scores = told[:, 0]
        choices: Integers = scores.argmax(axis=1).astype(np.int64)
        # Equal scores say nothing: who has no records votes for a public class (K5).
        choices[scores.max(axis=1) == scores.min(axis=1)] = self._default
        if least is not None:
            choices[softmax(told, self._temperature)[:, 0].max(axis=1) < least] = ABSTAINS
        return choices

    def _scores(self, inputs: npt.NDArray[Any]) -> Floats:
        (scores,) = self._teacher._scores(inputs)
        own: Floats = np.nan_to_num(scores[:, 0], nan=0.0, posinf=0.0, neginf=0.0)
        return own


def _digest(*arrays: npt.NDArray[Any]) -> bytes:
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()


def silence(count: int, classes: int, unit: Unit) -> Bounded:
    """Rows of one who sits out: zeros, whatever the records are."""
    return Bounded(np.zeros((count, classes), np.int64), Sensitivity.of_votes(0, unit))
