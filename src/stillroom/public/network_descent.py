"""Gradient descent of a whole network on noisy sums: flat vectors and post-processing only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.public.drift import Drift
from stillroom.vocabulary import Integers, Sanitised

Weights = npt.NDArray[np.float32]


class NetworkDescent:
    """The weights of a network, moving along sanitised gradient sums.

    Guarantee: sees nothing but sanitised values, public gradients and public numbers, so every
    step is free.

    Args:
        start: the weights to start from, as one vector: a public initialisation or a model
            trained on public records.
        unit: one grid unit of the sums, as a gradient.
        divisor: the declared size of a batch: rate times public size, never the real one (E5).
        rate: the length of a step.
        momentum: how much of the last step goes on, in [0, 1).
        ema: how slowly the averaged weights follow, in [0, 1); None for the last weights.
        public_gradient: the exact mean gradient on public records at given weights.
        public_share: how much of a step's gradient is the public one, in [0, 1).

    Raises:
        BadInput: a number is out of range.

    >>> network = NetworkDescent(np.zeros(2, np.float32), unit=1.0, divisor=2.0, rate=1.0)
    >>> network.step(Sanitised(np.array([[1, -3]]), ()))
    >>> network.result().tolist()
    [-0.5, 1.5]
    """

    def __init__(
        self,
        start: Weights,
        *,
        unit: float,
        divisor: float,
        rate: float,
        momentum: float = 0.0,
        ema: float | None = None,
        public_gradient: Callable[[Weights], npt.NDArray[np.floating]] | None = None,
        public_share: float = 0.0,
    ) -> None:
        checks = {
            "start": start.ndim == 1 and bool(np.isfinite(start).all()),
            "unit": 0 < unit < float("inf"),
            "divisor": 0 < divisor < float("inf"),
            "rate": 0 < rate < float("inf"),
            "momentum": 0 <= momentum < 1,
            "ema": ema is None or 0 <= ema < 1,
            "public_share": 0 <= public_share < 1
            and (public_share > 0) == (public_gradient is not None),
        }
        for name, fine in checks.items():
            if not fine:
                raise BadInput(
                    f"{name} is out of range",
                    where=name,
                    why="the steps must be fixed before the first draw",
                    remedy="see the arguments of NetworkDescent",
                )
        self.weights: Weights = np.array(start, dtype=np.float32)
        self._scale = unit / divisor
        self._rate = rate
        self._momentum = momentum
        self._ema = ema
        self._public_gradient = public_gradient
        self._public_share = public_share
        self._velocity = np.zeros(start.shape)
        self._average = self.weights.astype(np.float64)
        self.drift = Drift(start.size)
        self._steps = 0

    def step(self, noisy: Sanitised[Integers]) -> None:
        """One step against a noisy gradient sum, and the public gradient where there is one."""
        noisy_sum = noisy.value.reshape(self.weights.shape)
        self.drift.add(noisy.value)
        gradient = noisy_sum * self._scale
        if self._public_gradient is not None:
            exact = self._public_gradient(self.weights).reshape(self.weights.shape)
            gradient = (1 - self._public_share) * gradient + self._public_share * exact
        self._velocity = self._momentum * self._velocity + gradient
        self.weights = (self.weights - self._rate * self._velocity).astype(np.float32)
        self._steps += 1
        if self._ema is not None:
            # De et al. 2022: a slow average would otherwise remember the start for too long.
            kept = min(self._ema, (1 + self._steps) / (10 + self._steps))
            self._average = kept * self._average + (1 - kept) * self.weights

    def result(self) -> Weights:
        """The final weights: the average where one was asked for, else the last."""
        if self._ema is None:
            return self.weights.copy()
        return self._average.astype(np.float32)
