"""Teachers on disjoint hash shards, whose only word outside is a bounded histogram."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset, shards
from stillroom.errors import BadInput
from stillroom.vocabulary import Bounded, Integers, Norm, Sensitivity, Unit

_RIDGE = 0.1


def _features(x: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Centred and scaled record by record: a pooled statistic would join the shards."""
    flat = x.reshape(len(x), -1).astype(np.float64)
    flat = flat - flat.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = flat / np.where(norm > 0, norm, 1.0)
    return np.hstack([flat, np.full((len(flat), 1), 0.5)])


class VotingTeachers:
    """An ensemble of ridge classifiers, one a shard of the sensitive records.

    Guarantee: one record (one person, where persons are known) touches one teacher, so it moves
    one vote: two counts by one. This is what `votes` proves to the gate.
    Assumes: ids are unique; queries are public.

    >>> from stillroom.data import digits
    >>> VotingTeachers.train(digits(), count=20, key="tour")
    VotingTeachers(count=20, classes=10, unit=record)
    """

    def __init__(self, weights: npt.NDArray[np.float64], unit: Unit) -> None:
        self._weights = weights
        self.unit = unit

    @property
    def count(self) -> int:
        return len(self._weights)

    @property
    def classes(self) -> int:
        return int(self._weights.shape[2])

    @classmethod
    def train(cls, data: Dataset, count: int, key: str) -> VotingTeachers:
        """Train `count` teachers, each on its own shard only.

        Args:
            data: the sensitive records.
            count: how many teachers.
            key: the public key that assigns ids to shards.

        Raises:
            BadInput: more teachers than records.
        """
        if not 1 <= count <= len(data.y):
            raise BadInput(
                f"{count} teachers cannot be trained on so few records",
                where="count",
                why="a teacher without records only ever gives its default answer",
                remedy="use fewer teachers than records",
            )
        shard = shards(data.units, count, key)
        inputs = _features(data.x)
        targets = np.eye(len(data.classes))[data.y] - 1 / len(data.classes)
        penalty = _RIDGE * np.eye(inputs.shape[1])
        # An empty shard solves to zero weights: its vote is class 0, a fixed public default (K5).
        weights = [
            np.linalg.solve(penalty + inputs[own].T @ inputs[own], inputs[own].T @ targets[own])
            for own in (shard == j for j in range(count))
        ]
        return cls(np.stack(weights), Unit.RECORD if data.persons is None else Unit.PERSON)

    def votes(self, queries: npt.NDArray[np.generic]) -> Bounded:
        """How many teachers vote for each class, one row a query."""
        scores = np.einsum("qf,tfc->qtc", _features(queries), self._weights)
        counts: Integers = np.zeros((len(queries), self.classes), dtype=np.int64)
        rows = np.repeat(np.arange(len(queries)), self.count)
        np.add.at(counts, (rows, scores.argmax(axis=2).ravel()), 1)
        return Bounded(counts, Sensitivity.uniform(Norm.STEPS, 2, self.unit))

    def __repr__(self) -> str:
        return f"VotingTeachers(count={self.count}, classes={self.classes}, unit={self.unit})"
