"""Public features brought to one scale in all directions, and heads fitted on them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.public.descent import softmax_gradient
from stillroom.vocabulary import Integers

Matrix = npt.NDArray[np.float32]


def whitening(rows: Matrix, ridge: float, *, diagonal: bool = False) -> Matrix:
    """A matrix that makes rows have a second moment of one in every direction, or nearly so.

    A gradient step is then as long in thin directions as in thick ones, and so is noise.

    Args:
        rows: features of public pictures, or of samples.
        ridge: added to the second moment, so that directions without signal stay small.
        diagonal: each coordinate by itself, so that weights stay with their features.

    >>> rows = np.array([[2.0, 0.0], [0.0, 0.5]], dtype=np.float32)
    >>> moved = rows @ whitening(rows, ridge=0.0)
    >>> np.allclose(moved.T @ moved / 2, np.eye(2), atol=1e-6)
    True
    """
    wide = rows.astype(np.float64)
    if diagonal:
        return np.diag(1 / np.sqrt((wide**2).mean(axis=0) + ridge)).astype(np.float32)
    moment, axes = np.linalg.eigh(wide.T @ wide / len(wide))
    scales = 1 / np.sqrt(np.maximum(moment, 0.0) + ridge)
    found: Matrix = ((axes * scales) @ axes.T).astype(np.float32)
    return found


def fit_head(
    rows: Matrix, labels: Integers, classes: int, *, steps: int, rate: float, momentum: float = 0.9
) -> Matrix:
    """A linear layer by gradient descent on public rows, one row of weights per class.

    Args:
        rows: features of public records.
        labels: their classes.
        classes: how many there are.
        steps: over all rows.
        rate: the length of a step.
        momentum: how much of the last step goes on.
    """
    gradient = softmax_gradient(rows, labels, classes)
    weights = np.zeros((classes, rows.shape[1]), dtype=np.float32)
    velocity = np.zeros(weights.shape)
    for _ in range(steps):
        velocity = momentum * velocity + gradient(weights)
        weights = (weights - rate * velocity).astype(np.float32)
    return weights
