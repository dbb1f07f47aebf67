"""The privacy losses of finite pairs of laws: each loss with its mass, rounded up.

A loss is the log-ratio of two laws at an outcome, its mass the outcome's probability under the
first. Each pair here is its own mirror: exchanging the laws gives the same losses and masses.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import binom

Reals = npt.NDArray[np.float64]

MOST_COUNTED = 1000
"""Honest entities that a summed response is priced with; more of them only hide better."""

_LIFT = 1e-12
"""Added to each loss, above the roundings that it was computed with."""

_MASS_LIFT = 1e-10
"""Share added to each mass: log-factorials up to 1000 are right to 1e-11."""

_FAR = 5.0
"""A binomial number is this many times sqrt n off its mean with probability 2 e^-50 (Hoeffding)."""

_CUT = 2.0**-60
"""Above that probability; charged as if it had the largest loss."""

_HALF_GRID = 2**11
"""Points on either side of 0 that the losses of a summed response are brought to."""


class Losses(NamedTuple):
    """Losses and their masses under the first of two laws."""

    loss: Reals
    mass: Reals


def on_grid(losses: Losses, step: float) -> tuple[int, Reals]:
    """The masses on multiples of `step`, from the first that is needed on.

    Each loss is split between the two points beside it so that both laws keep their mass: the
    hockey-stick divergence stays what it is at the points and grows between them (connect-the-dots,
    Doroshenko et al. 2022).

    >>> on_grid(Losses(np.array([0.0]), np.array([1.0])), 0.5)
    (0, array([1., 0.]))
    """
    below = np.floor(losses.loss / step).astype(np.int64)
    share = np.expm1(below * step - losses.loss) / math.expm1(-step)
    upper = losses.mass * np.clip(share, 0.0, 1.0)
    lowest, size = int(below.min()), int(np.ptp(below)) + 2
    places = below - lowest
    found = np.zeros(size)
    found += np.bincount(places, weights=losses.mass - upper, minlength=size)
    found += np.bincount(places + 1, weights=upper, minlength=size)
    return lowest, found


def truncated_geometric(classes: int, scale: float) -> Losses:
    """The first class against the last, with discrete Laplace noise, clamped.

    >>> truncated_geometric(3, 2.0).loss.round(9)
    array([ 1.,  0., -1.])
    """
    report = np.arange(classes, dtype=np.float64)
    loss = (classes - 1 - 2 * report) / scale
    mass = np.exp(-report / scale) / (1 + math.exp(-1 / scale))
    mass[1:-1] *= -math.expm1(-1 / scale)
    return _lifted(loss, mass)


def swapped(truth: float, lie: float, rest: float) -> Losses:
    """Two outcomes of probability `truth` and `lie` swap; mass `rest` stays."""
    loss = math.log(truth / lie)
    return _lifted(np.array([loss, 0.0, -loss]), np.array([truth, rest, lie]))


@lru_cache(maxsize=16)
def summed_response(honest: int, keep: float, other: float, rest: float) -> Losses:
    """Randomised response of two classes of which only the sum over `honest` entities is seen.

    Of the N reports in one of the two classes a are in the first. N - 1 is binomial with
    probability 2 `other`: those entities answer at random between the two. One report more is
    that of the entity in question, in the first class with weight `keep` and in the second with
    `other`, or the other way round. With mass `rest` it is in neither, and nothing is lost.
    """
    others = min(honest, MOST_COUNTED) - 1
    few, many = binom.ppf(1e-20, others, 2 * other), binom.isf(1e-20, others, 2 * other)
    beyond = float(binom.cdf(few - 1, others, 2 * other) + binom.sf(many, others, 2 * other))
    numbers = np.arange(int(few), int(many) + 1)
    total = numbers[:, None] + 1
    reach = int(_FAR * math.sqrt(total[-1, 0])) + 3
    first = total // 2 + np.arange(-reach, reach + 1)
    possible = (first >= 0) & (first <= total)
    total, a = np.broadcast_to(total, first.shape)[possible], first[possible]
    b = total - a
    factorials = gammaln(np.arange(1.0, others + 3))
    log_ways = factorials[total] - factorials[a] - factorials[b] - (total - 1) * math.log(2)
    alike = binom.pmf(numbers, others, 2 * other)[total - 1 - numbers[0]]
    here, there = keep * a + other * b, other * a + keep * b
    seen = alike * np.exp(log_ways) * here / total
    largest = math.log(keep / other)
    loss = np.append(np.log(here / there), (0.0, largest))
    mass = np.append(seen, (rest, 2 * beyond + _CUT))
    lifted = _lifted(loss, mass * (1 + _MASS_LIFT))
    step = max(largest, 1e-9) / _HALF_GRID
    lowest, masses = on_grid(lifted, step)
    points = np.arange(lowest, lowest + len(masses), dtype=np.float64)
    return Losses(points * step, masses)


def _lifted(loss: Reals, mass: Reals) -> Losses:
    return Losses(loss + _LIFT, mass)
