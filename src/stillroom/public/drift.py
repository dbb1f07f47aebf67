"""Whether noisy sums can be told from noise alone; sanitised values only, so noticing is free."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from stillroom.vocabulary import Integers


class Drift:
    """The noisy sums of a training, added up.

    Noise cancels over the steps and gradients add up, above all in the first steps: later ones may
    point back, when the weights swing past their optimum. So the sum is looked at after 1, 2, 4, 8
    steps and so on, and at the end.

    >>> drift = Drift(100)
    >>> drift.add(np.full(100, 50))
    >>> drift.chance(sigma=10.0) < 1e-9, drift.chance(sigma=50.0) > 0.1
    (True, True)
    """

    def __init__(self, size: int) -> None:
        self._total = np.zeros(size)
        self._steps = 0
        self._energies: dict[int, float] = {}

    def add(self, noisy: Integers) -> None:
        """One more noisy sum."""
        self._total += noisy.reshape(-1)
        self._steps += 1
        if self._steps.bit_count() == 1:
            self._energies[self._steps] = self._energy()

    def chance(self, sigma: float) -> float:
        """How likely noise alone is to drift as far, at most; 1 before the first sum.

        Without any signal the squared length of n sums, over n sigma^2, has the chi-square law. Of
        several looks the least likely is taken, times their number (Bonferroni).

        Args:
            sigma: the noise on each coordinate of a sum.
        """
        if not self._steps:
            return 1.0
        looks = {**self._energies, self._steps: self._energy()}
        least = min(
            chdtrc(len(self._total), energy / (steps * sigma**2)) for steps, energy in looks.items()
        )
        return min(1.0, float(least) * len(looks))

    def _energy(self) -> float:
        return float((self._total**2).sum())
