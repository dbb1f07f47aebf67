"""Gradient descent on noisy sums: momentum and averaging, all of it post-processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from stillroom.errors import check_ranges
from stillroom.public.drift import Drift
from stillroom.vocabulary import Integers, Sanitised

Weights = npt.NDArray[np.float32]
Gradient = Callable[[Weights], npt.NDArray[np.floating]]


def softmax_gradient(
    rows: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    classes: int,
    class_weights: Sequence[float] | None = None,
) -> Gradient:
    """The exact mean gradient of the cross-entropy on public records, at given weights.

    Where there are class weights, a record's is multiplied by that of its class.

    Assumes: rows and labels are public; nothing is clipped and no noise is added.

    >>> gradient = softmax_gradient(np.ones((1, 1), np.float32), np.array([1]), classes=2)
    >>> gradient(np.zeros((2, 1), np.float32)).tolist()
    [[0.5], [-0.5]]
    """
    targets = np.eye(classes, dtype=np.float32)[labels]
    given = np.ones(classes) if class_weights is None else np.array(class_weights)
    weight = given.astype(np.float32)[labels][:, None]

    def gradient(weights: Weights) -> npt.NDArray[np.float64]:
        scores = rows @ weights.T
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        residuals = (scores / scores.sum(axis=1, keepdims=True) - targets) * weight
        mean: npt.NDArray[np.float64] = (residuals.T @ rows).astype(np.float64) / len(rows)
        return mean

    return gradient


class Descent:
    """Weights that move along sanitised gradient sums: a linear layer, or a network as one vector.

    Guarantee: sees nothing but sanitised values, public gradients and public numbers, so every
    step is free.

    Args:
        start: the weights to start from, of any shape: zeros, a public initialisation, or weights
            trained on public records.
        unit: one grid unit of the sums, as a gradient.
        divisor: the declared size of a batch: rate times declared size, never the real one (E5).
        learning_rate: the length of a step.
        momentum: how much of the last step goes on, in [0, 1).
        average_from: from which step on the weights are averaged; None for no such average.
        ema: how slowly the averaged weights follow, in [0, 1); None for no such average.
        public_gradient: the exact mean gradient on public records, such as `softmax_gradient`.
        public_share: how much of a step is the public gradient, in [0, 1).

    Raises:
        BadInput: a number is out of range.

    >>> layer = Descent(np.zeros((2, 3), np.float32), unit=1.0, divisor=1.0, learning_rate=0.5)
    >>> layer.step(Sanitised(np.array([[1, 0, 0, -1, 0, 0]]), ()))
    >>> layer.result()[:, 0].tolist()
    [-0.5, 0.5]
    """

    def __init__(
        self,
        start: Weights,
        *,
        unit: float,
        divisor: float,
        learning_rate: float,
        momentum: float = 0.0,
        average_from: int | None = None,
        ema: float | None = None,
        public_gradient: Gradient | None = None,
        public_share: float = 0.0,
    ) -> None:
        checks = {
            "start": bool(np.isfinite(start).all()),
            "unit": 0 < unit < float("inf"),
            "divisor": 0 < divisor < float("inf"),
            "learning_rate": 0 < learning_rate < float("inf"),
            "momentum": 0 <= momentum < 1,
            "ema": ema is None or (0 <= ema < 1 and average_from is None),
            "public_share": 0 <= public_share < 1
            and (public_share == 0 or public_gradient is not None),
        }
        check_ranges("Descent", checks)
        self.weights: Weights = np.array(start, dtype=np.float32)
        self._average = self.weights.astype(np.float64)
        self._velocity = np.zeros(start.shape)
        self._scale, self._learning_rate, self._momentum = unit / divisor, learning_rate, momentum
        self._average_from, self._ema = average_from, ema
        self._public_gradient, self._public_share = public_gradient, public_share
        self._steps = 0
        self.drift = Drift(start.size)

    def start_publicly(self, steps: int) -> None:
        """Steps along the public gradient alone; what follows begins there, at rest."""
        assert self._public_gradient is not None
        for _ in range(steps):
            self._move(self._public_gradient(self.weights))
        self._velocity[:] = 0
        self._average = self.weights.astype(np.float64)

    def step(self, noisy: Sanitised[Integers]) -> None:
        """One step against a noisy gradient sum, and the public gradient where it has a share."""
        gradient = noisy.value.reshape(self.weights.shape) * self._scale
        self.drift.add(noisy.value)
        if self._public_gradient is not None and self._public_share:
            public = self._public_gradient(self.weights)
            gradient = self._public_share * public + (1 - self._public_share) * gradient
        self._move(gradient)
        self._steps += 1
        kept = self._kept()
        self._average = kept * self._average + (1 - kept) * self.weights

    def _move(self, gradient: npt.NDArray[np.floating]) -> None:
        self._velocity = self._momentum * self._velocity + gradient
        self.weights = (self.weights - self._learning_rate * self._velocity).astype(np.float32)

    def _kept(self) -> float:
        """How much of the average so far stays in the next one; nothing where none is wanted."""
        if self._ema is not None:
            # De et al. 2022: a slow average would otherwise remember the start for too long.
            return min(self._ema, (1 + self._steps) / (10 + self._steps))
        if self._average_from is not None and self._steps > self._average_from:
            return 1 - 1 / (self._steps - self._average_from)
        return 0.0

    def result(self) -> Weights:
        """The final weights: the average where one was asked for, else the last."""
        return self._average.astype(np.float32)
