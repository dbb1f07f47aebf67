"""Ridge teachers on disjoint hash shards: solved in closed form, one shard at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset, shards
from stillroom.errors import BadInput
from stillroom.private.answers import Answers
from stillroom.private.quantise import Floats
from stillroom.private.ridge import solve_ridge
from stillroom.vocabulary import Unit

_RIDGE = 0.1


def _features(x: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Centred and scaled record by record: a pooled statistic would join the shards."""
    flat = x.reshape(len(x), math.prod(x.shape[1:])).astype(np.float64)
    flat = flat - flat.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = flat / np.where(norm > 0, norm, 1.0)
    return np.hstack([flat, np.full((len(flat), 1), 0.5)])


class VotingTeachers(Answers):
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
        self.classes, self.unit, self.default_class = weights.shape[2], unit, 0

    @property
    def count(self) -> int:
        return len(self._weights)

    @classmethod
    def train(cls, data: Dataset, count: int, key: str) -> VotingTeachers:
        """Train `count` teachers, each on its own shard only.

        Args:
            data: the sensitive records.
            count: how many teachers.
            key: the public key that assigns ids to shards.

        Raises:
            BadInput: there is no teacher.
        """
        if count < 1:
            raise BadInput("there must be at least one teacher", where="count")
        shard = shards(data.units, count, key)
        targets = np.eye(len(data.classes))[data.y] - 1 / len(data.classes)
        # An empty shard solves to zero weights: its vote is class 0, a fixed public default (K5).
        # Features shard by shard: the last bits of a row may depend on its place (E1b).
        weights = [
            solve_ridge(_features(data.x[own]), targets[own], _RIDGE)
            for own in (shard == j for j in range(count))
        ]
        return cls(np.stack(weights), Unit.RECORD if data.persons is None else Unit.PERSON)

    def _scores(self, queries: npt.NDArray[Any]) -> Iterator[Floats]:
        inputs = _features(queries)
        for weights in self._weights:
            yield (inputs @ weights)[:, None]

    def __repr__(self) -> str:
        return f"VotingTeachers(count={self.count}, classes={self.classes}, unit={self.unit})"
