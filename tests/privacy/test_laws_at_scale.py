"""The samplers on twenty million draws: what a small test cannot see.

Each test rejects a right sampler with a probability of at most 1e-8, and a sigma that is off by
half a per cent nearly always.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stillroom.gate.entropy import Entropy
from stillroom.gate.mechanisms import discrete_gaussian, discrete_laplace

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-8
CHUNKS, CHUNK = 20, 1_000_000
EDGES = np.linspace(0, 1, 513)[1:-1]


def p_value(draw, cdf) -> float:
    """Chi-square on the bins that 511 quantiles cut, each at its exact probability."""
    first = draw(CHUNK)
    edges = np.unique(np.quantile(first, EDGES).astype(np.int64))
    law = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    observed = np.zeros(len(law))
    for _ in range(CHUNKS):
        observed += np.bincount(np.searchsorted(edges, draw(CHUNK)), minlength=len(law))
    expected = law * CHUNKS * CHUNK
    assert expected.min() > 5
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(law) - 1))


def gaussian_cdf(sigma):
    if sigma > 5000:
        return lambda x: stats.norm.cdf((x + 0.5) / sigma)
    x = np.arange(-int(40 * sigma) - 2, int(40 * sigma) + 3)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    cumulative = np.cumsum(weights) / weights.sum()
    return lambda at: cumulative[at - x[0]]


@pytest.mark.parametrize("sigma", ["1/2", "5/2", "40", "9999", "30000", "1000000000"])
def test_gaussian(sigma):
    exact, entropy = Fraction(sigma), Entropy()
    draw = lambda size: discrete_gaussian.noise(entropy, exact, size)  # noqa: E731
    assert p_value(draw, gaussian_cdf(float(exact))) > FALSE_ALARM


@pytest.mark.parametrize("sigma", ["5/2", "40", "30000"])
def test_gaussian_a_little_too_quiet_is_caught(sigma):
    exact, entropy = Fraction(sigma) * Fraction(199, 200), Entropy()
    draw = lambda size: discrete_gaussian.noise(entropy, exact, size)  # noqa: E731
    assert p_value(draw, gaussian_cdf(float(Fraction(sigma)))) < FALSE_ALARM


@pytest.mark.parametrize("scale", ["1/2", "40", "30000", "1000000000"])
def test_laplace(scale):
    exact, entropy = Fraction(scale), Entropy()
    a = np.exp(-1 / float(exact))

    def cdf(x):
        tail = np.exp(-np.abs(x) / float(exact)) / (1 + a)
        return np.where(x < 0, tail, 1 - a * tail)

    draw = lambda size: discrete_laplace.noise(entropy, exact, size)  # noqa: E731
    assert p_value(draw, cdf) > FALSE_ALARM
