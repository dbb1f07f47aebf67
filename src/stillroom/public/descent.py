"""Gradient descent on noisy sums: momentum and averaging, all of it post-processing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stillroom.public.drift import Drift
from stillroom.vocabulary import Integers, Sanitised

Weights = npt.NDArray[np.float32]
Gradient = Callable[[Weights], npt.NDArray[np.float64]]


def softmax_gradient(
    rows: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], classes: int
) -> Gradient:
    """The exact mean gradient of the cross-entropy on public records, at given weights.

    Assumes: rows and labels are public; nothing is clipped and no noise is added.

    >>> gradient = softmax_gradient(np.ones((1, 1), np.float32), np.array([1]), classes=2)
    >>> gradient(np.zeros((2, 1), np.float32)).tolist()
    [[0.5], [-0.5]]
    """
    targets = np.eye(classes, dtype=np.float32)[labels]

    def gradient(weights: Weights) -> npt.NDArray[np.float64]:
        scores = rows @ weights.T
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        residuals = scores / scores.sum(axis=1, keepdims=True) - targets
        mean: npt.NDArray[np.float64] = (residuals.T @ rows).astype(np.float64) / len(rows)
        return mean

    return gradient


class Descent:
    """A linear layer that moves along sanitised gradient sums.

    Guarantee: sees nothing but sanitised values, public gradients and public numbers, so every
    step is free.

    Args:
        classes: rows of the layer.
        features: columns of the layer.
        unit: one grid unit of the sums, as a gradient.
        divisor: the declared size of a batch: rate times public size, never the real one (E5).
        rate: the length of a step.
        momentum: how much of the last step goes on, in [0, 1).
        average_from: from which step on the weights are averaged; None for the last weights.
        public_gradient: the exact gradient on public records, such as `softmax_gradient`.
        public_share: how much of a step is the public gradient, in [0, 1).

    >>> layer = Descent(2, 3, unit=1.0, divisor=1.0, rate=0.5, momentum=0.0)
    >>> layer.step(Sanitised(np.array([[1, 0, 0, -1, 0, 0]]), ()))
    >>> layer.weights[:, 0].tolist()
    [-0.5, 0.5]
    """

    def __init__(
        self,
        classes: int,
        features: int,
        *,
        unit: float,
        divisor: float,
        rate: float,
        momentum: float,
        average_from: int | None = None,
        public_gradient: Gradient | None = None,
        public_share: float = 0.0,
    ) -> None:
        self.weights: Weights = np.zeros((classes, features), dtype=np.float32)
        self._velocity = np.zeros((classes, features))
        self._scale = unit / divisor
        self._rate = rate
        self._momentum = momentum
        self._average_from = average_from
        self._sum = np.zeros((classes, features))
        self._steps = 0
        self.drift = Drift(classes * features)
        self._averaged = 0
        self._public_gradient = public_gradient
        self._public_share = public_share if public_gradient is not None else 0.0

    def start_publicly(self, steps: int) -> None:
        """Steps along the public gradient alone; what follows begins there, at rest."""
        assert self._public_gradient is not None
        for _ in range(steps):
            self._move(self._public_gradient(self.weights))
        self._velocity[:] = 0

    def step(self, noisy: Sanitised[Integers]) -> None:
        """One step against a noisy gradient sum."""
        gradient = noisy.value.reshape(self.weights.shape) * self._scale
        self.drift.add(noisy.value)
        if self._public_gradient is not None and self._public_share:
            public = self._public_gradient(self.weights)
            gradient = self._public_share * public + (1 - self._public_share) * gradient
        self._move(gradient)
        self._steps += 1
        if self._average_from is not None and self._steps > self._average_from:
            self._sum += self.weights
            self._averaged += 1

    def _move(self, gradient: npt.NDArray[np.floating]) -> None:
        self._velocity = self._momentum * self._velocity + gradient
        self.weights = (self.weights - self._rate * self._velocity).astype(np.float32)

    def result(self) -> Weights:
        """The final weights: the average where one was asked for, else the last."""
        if not self._averaged:
            return self.weights
        return (self._sum / self._averaged).astype(np.float32)
