"""Privacy loss distributions by dp_accounting, with the traps of its arithmetic closed.

Connect-the-dots discretisation (Doroshenko et al. 2022) is pessimistic; the Fourier transforms
that compose it are not exact, and what they may hide is handed back as delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

from stillroom.gate.finite_losses import Losses, on_grid
from stillroom.gate.rounding import root_down, up
from stillroom.vocabulary import Relation

LARGEST_EPSILON = 500.0
"""Beyond, a loss distribution fills the memory and RDP is close enough."""

LARGEST_TOLD = 5000.0
"""The same for a figure that is told beside a certified one, on a grid as coarse as it takes."""

LARGEST_DISCRETE_SIGMA = 2000
"""Beyond, the exact discrete law fills the memory; the bound of E3 costs 1e-6 of epsilon there."""

MOST_COMPOSITIONS = 500_000
"""Beyond, finding one epsilon takes seconds, and a certificate has dozens."""

MOST_POINTS = 4e6
"""Of all grids together; each point is computed with some ten times, and takes some ten floats."""

_TAIL = 10.0
"""Standard deviations that dp_accounting keeps of a Gaussian: its mass beyond is below e^-50."""

LARGEST_MOVE = 10_000
"""Of a count with Laplace noise; beyond, any pure mechanism is priced instead."""

FOURIER_ERROR = 2.0**-48
"""Delta that one composition may lose to rounding in the Fourier transforms.

Raising a transform to the n-th power multiplies its phase, and the rounding of the phase, by n: a
few times n pi 2^-53 over the frequencies that matter. The largest loss measured, over 230 settings,
is 2^-53.4 per composition (tests/privacy/test_fourier_error.py). Without the allowance epsilon is
too small by 0.001 to 0.03, depending on the processor, at delta 1e-12 after 20,000 compositions.
"""


@dataclass(frozen=True)
class Composed:
    """A composed distribution and the delta its arithmetic may hide."""

    distribution: Any
    hidden_delta: float
    slack: float = 0.0
    """How far each law's logarithm may be off at any point, over all events."""

    def epsilon(self, delta: float) -> float:
        """Epsilon at `delta`, as dp_accounting finds it, with the slack of the laws.

        P' <= e^s P and Q' >= e^-s Q give P'(S) - e^(epsilon + 2s) Q'(S) <= e^s delta.
        """
        found = float(self.distribution.get_epsilon_for_delta(delta * math.exp(-self.slack)))
        return found + 2 * self.slack


class Unaffordable(Exception):
    """There is no distribution, or it would take more time or memory than a price is worth."""


class Composer:
    """Collects events and composes their distributions on one grid.

    Args:
        rough_epsilon: an estimate of the result, to choose the grid.
        compositions: how many events there are.

    Its methods raise `Unaffordable` before they compute anything that is.
    """

    def __init__(self, rough_epsilon: float, compositions: int) -> None:
        # Pessimism grows like compositions x interval^2 and stays below 1e-4; the grid keeps
        # between some thousand and some million points.
        fine = min(1e-4, math.sqrt(1e-4 / max(1, compositions)), rough_epsilon / 2000)
        self._interval = max(fine, rough_epsilon / 5e5, 1e-7)
        self._rough = rough_epsilon
        self._points = 0.0
        self._parts: list[Any] = []
        self._transforms = 0
        self._folded_gaussian = Fraction(0)
        self._slack = 0.0

    def _add(
        self, part_of: Callable[..., Any], *law: Any, count: int, reach: float = 0.0, **more: Any
    ) -> None:
        """Compose `count` parts with losses up to `reach`, if that is affordable."""
        self._points += (2 * self._rough + reach) / self._interval
        if self._transforms + count > MOST_COMPOSITIONS or self._points > MOST_POINTS:
            raise Unaffordable
        part = part_of(*law, value_discretization_interval=self._interval, **more)
        self._parts.append(part.self_compose(count) if count > 1 else part)
        self._transforms += count

    def gaussian(self, variance: Fraction, distance_squared: Fraction, count: int) -> None:
        """Gaussians without sampling: all of them are folded into one."""
        self._folded_gaussian += count * distance_squared / variance

    def unit_steps(self, sigma_squared: Fraction, distance_squared: Fraction, count: int) -> None:
        """Unit moves by the exact discrete law, as far as it can be computed; else by E3."""
        if sigma_squared > LARGEST_DISCRETE_SIGMA**2:
            self.gaussian(sigma_squared - 4, distance_squared, count)
        elif distance_squared > 0:
            law, moves = pld.from_discrete_gaussian_mechanism, math.ceil(distance_squared) * count
            self._add(law, root_down(sigma_squared), 1, count=moves, use_connect_dots=True)

    def sampled(self, rate: float, multiplier: float, relation: Relation, count: int) -> None:
        """The native pairs of dp_accounting: a folded sensitivity would be wrong here (E4)."""
        if math.isinf(multiplier):
            return
        native = (
            NeighboringRelation.REPLACE_ONE
            if relation is Relation.CHANGE
            else NeighboringRelation.ADD_OR_REMOVE_ONE
        )
        # Sampling hides a large loss in the mean, and the grid must hold it all the same.
        reach = max(0.0, (0.5 / multiplier + _TAIL) / multiplier + math.log(rate))
        sampled = {"sampling_prob": rate, "neighboring_relation": native}
        self._add(pld.from_gaussian_mechanism, multiplier, count=count, reach=reach, **sampled)

    def laplace(self, scale: Fraction, coordinates: int, distance: Fraction, count: int) -> None:
        """The exact law where one coordinate moves; any pure mechanism otherwise."""
        if distance == 0:
            return
        if distance <= 1 or (coordinates == 1 and distance <= LARGEST_MOVE):
            law = (up(1 / scale), math.ceil(distance))
            self._add(pld.from_discrete_laplace_mechanism, *law, count=count, use_connect_dots=True)
        else:
            loss = common.DifferentialPrivacyParameters(up(distance / scale), 0)
            self._add(pld.from_privacy_parameters, loss, count=count)

    def response(self, noise: float, classes: int, count: int) -> None:
        """k-ary randomised response."""
        if count:
            native = NeighboringRelation.REPLACE_ONE
            law = (noise, classes)
            self._add(pld.from_randomized_response, *law, count=count, neighboring_relation=native)

    def finite(self, losses: Losses, count: int) -> None:
        """A finite pair of laws whose losses are the same both ways."""
        if count:
            reach = 2 * float(np.abs(losses.loss).max())
            self._add(finite_part, losses, count=count, reach=reach)

    def allow(self, slack: float) -> None:
        """Charge that laws are known up to a factor exp(slack) at each point only."""
        self._slack = math.nextafter(self._slack + slack, math.inf) if slack else self._slack

    def refuse(self) -> None:
        """For an event of which only Renyi losses are known."""
        raise Unaffordable

    def composed(self) -> Composed:
        """Everything so far, composed."""
        if self._folded_gaussian:
            self._add(gaussian_part, root_down(1 / self._folded_gaussian), count=1)
        whole = pld.identity(value_discretization_interval=self._interval)
        for part in self._parts:
            whole = whole.compose(part)
        hidden = (self._transforms + len(self._parts)) * FOURIER_ERROR
        return Composed(whole, hidden, self._slack)


def finite_part(
    losses: Losses, *, value_discretization_interval: float
) -> pld.PrivacyLossDistribution:
    """The distribution of a finite pair of laws whose losses are the same both ways.

    `pld.from_two_probability_mass_functions` rounds every loss up; this one connects the dots.
    """
    step = value_discretization_interval
    lowest, probabilities = on_grid(losses, step)
    pmf = pld_pmf.DensePLDPmf(step, lowest, probabilities, 0.0, pessimistic_estimate=True)
    return pld.PrivacyLossDistribution(pmf)


def gaussian_part(
    noise_multiplier: float, *, value_discretization_interval: float
) -> pld.PrivacyLossDistribution:
    """What `pld.from_gaussian_mechanism` gives without sampling, bit for bit.

    It inverts the loss of all points of its grid in one go, where the library asks for one after
    the other: a few milliseconds in place of a second for each noise that a search tries.
    """
    loss, step = GaussianPrivacyLoss(noise_multiplier), value_discretization_interval
    bounds = loss.connect_dots_bounds()
    lowest = math.floor(bounds.epsilon_lower / step)
    highest = math.ceil(bounds.epsilon_upper / step)
    losses = np.arange(lowest, highest + 1) * step
    at = loss.inverse_privacy_loss(losses)
    deltas = loss.mu_upper_cdf(at) - np.exp(losses + loss.mu_lower_log_cdf(at))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        step, lowest, highest, np.clip(deltas, 0, 1)
    )
    return pld.PrivacyLossDistribution(pmf)
