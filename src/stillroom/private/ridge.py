"""Ridge regression in closed form, one shard at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers


def solve_ridge(
    inputs: npt.NDArray[np.float64],
    targets: npt.NDArray[np.floating],
    penalty: float,
    dual: bool = False,
) -> npt.NDArray[np.float64]:
    """The weights of ridge regression; the dual is cheaper for fewer records than features.

    Zeros where the equations cannot be solved in floating point.

    >>> solve_ridge(np.array([[1.0], [1.0]]), np.array([[3.0], [3.0]]), penalty=1.0).tolist()
    [[2.0]]
    """
    try:
        with np.errstate(all="ignore"):
            if dual:
                gram = inputs @ inputs.T + penalty * np.eye(len(inputs))
                return np.asarray(inputs.T @ np.linalg.solve(gram, targets), dtype=np.float64)
            gram = penalty * np.eye(inputs.shape[1]) + inputs.T @ inputs
            return np.asarray(np.linalg.solve(gram, inputs.T @ targets), dtype=np.float64)
    except np.linalg.LinAlgError:
        # Records too large for the penalty. To refuse would tell of them (K10).
        return np.zeros((inputs.shape[1], targets.shape[1]))


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
        features: one array per shard.
        labels: one array per shard.
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
                why="every teacher starts from the same public weights",
                remedy="give one row per feature, one for the constant, and one column per class",
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
