"""Ridge teachers on disjoint hash shards: solved in closed form, one shard at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
        # An empty shard solves to zero weights: its vote is class 0, a fixed public default (K5).
        weights = [
            solve_ridge(inputs[own], targets[own], _RIDGE)
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


def solve_ridge(
    inputs: npt.NDArray[np.float64],
    targets: npt.NDArray[np.float64],
    penalty: float,
    dual: bool = False,
) -> npt.NDArray[np.float64]:
    """The weights of ridge regression; the dual is cheaper for fewer records than features.

    >>> solve_ridge(np.array([[1.0], [1.0]]), np.array([[3.0], [3.0]]), penalty=1.0).tolist()
    [[2.0]]
    """
    if dual:
        by_record = np.linalg.solve(inputs @ inputs.T + penalty * np.eye(len(inputs)), targets)
        return np.asarray(inputs.T @ by_record, dtype=np.float64)
    gram = penalty * np.eye(inputs.shape[1]) + inputs.T @ inputs
    return np.asarray(np.linalg.solve(gram, inputs.T @ targets), dtype=np.float64)


def train_ridge(
    features: Sequence[npt.NDArray[np.float32]],
    labels: Sequence[Integers],
    classes: int,
    penalty: float,
    dual: bool,
    start: Mapping[str, npt.NDArray[Any]] | None,
) -> dict[str, npt.NDArray[Any]]:
    """The weights of some teachers, a constant beside their features; zeros for an empty shard.

    They are solved one by one: a batched solver has nothing to add but doubt about the last bit.

    Args:
        features: one array a shard.
        labels: one array a shard.
        classes: how many classes there are.
        penalty: on the distance from the start.
        dual: whether to solve for records instead of features; public, and the same for all.
        start: public `weights` to start from; zeros when left out.

    Raises:
        BadInput: the start does not fit.
    """
    origin = np.zeros((features[0].shape[1] + 1, classes))
    if start is not None:
        if set(start) != {"weights"} or start["weights"].shape != origin.shape:
            raise BadInput(
                f"the start of ridge teachers must be `weights` of shape {origin.shape}",
                where="start",
                remedy="give one row a feature, one for the constant, and one column a class",
            )
        origin = start["weights"].astype(np.float64)
    solved = []
    for found, label in zip(features, labels, strict=True):
        inputs = _with_constant(found).astype(np.float64)
        wanted = np.eye(classes)[label] - 1 / classes - inputs @ origin
        solved.append((origin + solve_ridge(inputs, wanted, penalty, dual)).astype(np.float32))
    return {"weights": np.stack(solved)}


def ridge_scores(
    weights: npt.NDArray[np.float32], inputs: npt.NDArray[np.floating]
) -> npt.NDArray[np.float32]:
    """The scores of some teachers as (query, teacher, class): one product, columns do not mix."""
    side_by_side = weights.transpose(1, 0, 2).reshape(weights.shape[1], -1)
    with np.errstate(all="ignore"):
        scores: npt.NDArray[np.float32] = _with_constant(inputs) @ side_by_side
    return scores.reshape(len(inputs), len(weights), -1)


def _with_constant(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    return np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float32)
