"""Renyi losses on one fixed grid of integer orders, and their conversion to epsilon.

Curves add up, so the ledger can keep one per block without re-pricing anything (L3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from stillroom.gate.finite_losses import Losses
from stillroom.gate.rounding import up

ORDERS: tuple[int, ...] = (
    *range(2, 65),
    *(72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 768, 1024),
)

Curve = tuple[float, ...]

NOTHING: Curve = tuple(0.0 for _ in ORDERS)
INFINITE: Curve = tuple(math.inf for _ in ORDERS)


def gaussian(distance_squared: Fraction, variance: Fraction) -> Curve:
    """A Gaussian shifted by D: order a loses a D^2 / (2 variance) (Mironov 2017, Proposition 7).

    Holds for the discrete Gaussian too (Canonne, Kamath, Steinke 2020, Theorem 14).
    """
    rho = distance_squared / (2 * variance)
    return tuple(up(order * rho) for order in ORDERS)


def _sampled(rate: float, multiplier: float, order: int) -> float:
    """Poisson-sampled Gaussian, integer order (Mironov, Talwar, Zhang 2019, Theorem 5)."""
    i, choices = _choices(order)
    terms = (
        choices
        + i * math.log(rate)
        + (order - i) * math.log1p(-rate)
        + (i * i - i) / (2 * multiplier**2)
    )
    top = terms.max()
    loss = float(top + np.log(np.exp(terms - top).sum()))
    # Where the loss is smaller than the rounding of the sum, the rounding is charged.
    return (max(0.0, loss) + 1e-12) / (order - 1)


@cache
def _choices(order: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """0 to `order`, and the logarithm of how many ways there are to choose so many."""
    i = np.arange(order + 1, dtype=np.float64)
    return i, gammaln(order + 1) - gammaln(i + 1) - gammaln(order - i + 1)


def sampled_gaussian(rate: float, multiplier: float, *, change: bool) -> Curve:
    """A Gaussian sum over a Poisson sample, one unit added or removed, or changed.

    A change goes through the data set without the unit, by the weak triangle inequality
    D_a(P|Q) <= (a - 1/2)/(a - 1) D_2a(P|R) + D_(2a-1)(R|Q) (Mironov 2017, Proposition 11).
    """
    if not change:
        return tuple(_sampled(rate, multiplier, order) for order in ORDERS)
    return tuple(
        (a - 0.5) / (a - 1) * _sampled(rate, multiplier, 2 * a)
        + _sampled(rate, multiplier, 2 * a - 1)
        for a in ORDERS
    )


def response(keep: float, other: float, classes: int) -> Curve:
    """k-ary randomised response: two answers swap their probabilities, the rest stay."""
    if other <= 0:
        return INFINITE
    return _swapped(math.log(keep), math.log(other), (classes - 2) * other)


def pure(epsilon: float) -> Curve:
    """Any epsilon-DP mechanism: no worse than binary randomised response at that epsilon."""
    truth = -math.log1p(math.exp(-epsilon))
    return _swapped(truth, truth - epsilon, 0.0)


def of_losses(losses: Losses) -> Curve:
    """A finite pair of laws: order a loses log E[exp((a - 1) loss)] / (a - 1), by summing it."""
    below = np.array(ORDERS, dtype=np.float64) - 1
    largest = float(losses.loss[losses.mass > 0].max())
    means = np.exp(np.multiply.outer(below, losses.loss - largest)) @ losses.mass
    return tuple(
        min(largest, max(0.0, largest + math.log(mean) / a) + 1e-12)
        for a, mean in zip(below.tolist(), means.tolist(), strict=True)
    )


def with_slack(curve: Sequence[float], slack: float) -> Curve:
    """Both laws known up to a factor exp(slack) at each point only.

    The a-th power of one and the (1 - a)-th of the other move by at most (2a - 1) slack together.
    """
    return tuple(
        math.nextafter(loss + slack * (2 * a - 1) / (a - 1), math.inf)
        for a, loss in zip(ORDERS, curve, strict=True)
    )


def bounded_range(epsilon: Fraction) -> Curve:
    """A mechanism whose log-ratios lie in a range of length epsilon, such as the exponential one.

    Order a loses at most a epsilon^2 / 8 (Cesar, Rogers 2021, Lemma 3.4), and no more than any
    epsilon-DP mechanism.
    """
    return tuple(
        min(up(order * epsilon * epsilon / 8), loss)
        for order, loss in zip(ORDERS, pure(up(epsilon)), strict=True)
    )


def best_of(base: Sequence[float], stop: Fraction, *, logarithmic: bool) -> Curve:
    """The best of K runs, where K is geometric (P(K = 1) is `stop`) or logarithmic.

    Truncated negative binomial with gamma = stop and eta = 1 or 0 (Papernot, Steinke 2022, Theorem
    2): order a loses loss(a) + (1 + eta) ((1 - 1/b) loss(b) + log(1/gamma) / b) + log E[K] /
    (a - 1), for the best order b.
    """
    doubled = 1 if logarithmic else 2
    log_inverse = -math.log(stop)
    more = min(
        (1 - 1 / order) * loss + log_inverse / order
        for order, loss in zip(ORDERS, base, strict=True)
    )
    log_mean = math.log(mean_runs(stop, logarithmic=logarithmic))
    return tuple(
        _lifted(loss + doubled * more + log_mean / (order - 1))
        for order, loss in zip(ORDERS, base, strict=True)
    )


def mean_runs(stop: Fraction, *, logarithmic: bool) -> float:
    """E[K] of `best_of`, rounded up.

    >>> mean_runs(Fraction(1, 10), logarithmic=False)
    10.0
    >>> round(mean_runs(Fraction(1, 10), logarithmic=True), 3)
    3.909
    """
    if not logarithmic:
        return up(1 / stop)
    return _lifted(float(1 / stop - 1) / -math.log(stop))


def _lifted(figure: float) -> float:
    """Up by more than the few roundings that it was computed with."""
    return figure * (1 + 1e-12)


def _swapped(truth: float, lie: float, rest: float) -> Curve:
    """Two outcomes of log probability `truth` and `lie` swap; mass `rest` stays."""
    same = math.log(rest) if rest else -math.inf
    losses = [
        logsumexp([a * truth + (1 - a) * lie, a * lie + (1 - a) * truth, same]) / (a - 1)
        for a in ORDERS
    ]
    return tuple(min(truth - lie, max(0.0, float(loss)) + 1e-12) for loss in losses)


def total(curves: Iterable[Sequence[float]]) -> Curve:
    """Composition: losses add up, order by order, rounded up."""
    sums = [math.fsum(column) for column in zip(*curves, strict=True)]
    return tuple(math.nextafter(s, math.inf) for s in sums) if sums else NOTHING


def times(curve: Sequence[float], count: int) -> Curve:
    """`count` times the same loss."""
    return tuple(
        math.nextafter(loss * count, math.inf) if loss and count else 0.0 for loss in curve
    )


def conversion(order: int, delta: float) -> float:
    """What turning a loss of this order into epsilon adds (Canonne et al. 2020, Prop. 12)."""
    return math.log1p(-1 / order) - math.log(delta * order) / (order - 1)


def epsilon(curve: Sequence[float], delta: float) -> float:
    """The smallest epsilon at `delta` over the orders; never negative, never NaN.

    >>> round(epsilon(times(gaussian(Fraction(2), Fraction(1600)), 2000), 1e-5), 2)
    8.09
    """
    best = min(loss + conversion(order, delta) for order, loss in zip(ORDERS, curve, strict=True))
    return max(0.0, math.nextafter(best, math.inf)) if any(curve) else 0.0
