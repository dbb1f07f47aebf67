"""The samplers: exact where they are exact, within 2^-128 where they are tables.

Statistical tests here reject a right sampler with a probability of at most 1e-8 each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stillroom.gate import sampling
from stillroom.gate.entropy import Entropy, SeededEntropy, source_of
from stillroom.gate.mechanisms import discrete_gaussian, discrete_laplace
from stillroom.gate.sampling import (
    TABLE_ERROR,
    Table,
    coins,
    exp_minus,
    falls_below_exp_minus,
    uniform_below,
)

FALSE_ALARM = 1e-8


class Scripted(Entropy):
    """Words and integers from a list: to walk the paths that chance takes once in 2^64 draws."""

    def __init__(self, words=(), integers=()):
        super().__init__()
        self._words, self._integers = list(words), list(integers)

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)

    def integer(self, bits):
        return self._integers.pop(0)


def equal_in_law(observed, probabilities):
    expected = np.asarray(probabilities) * np.sum(observed)
    assert expected.min() >= 5
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(expected) - 1) > FALSE_ALARM


def has_law(drawn, values, pmf):
    """Chi-square on the values that are likely enough; the rest together are rare or a bin."""
    size = len(drawn)
    likely = pmf * size >= 10
    observed = np.array([(drawn == value).sum() for value in values[likely]])
    rest, expected_rest = size - observed.sum(), size * (1 - pmf[likely].sum())
    if expected_rest >= 10:
        equal_in_law(np.append(observed, rest), np.append(pmf[likely], expected_rest / size))
    else:
        assert rest <= 80  # a Poisson number of mean 10 exceeds this once in 1e40
        equal_in_law(observed, pmf[likely] / pmf[likely].sum())


@settings(max_examples=60, deadline=None)
@given(st.fractions(0, 200), st.sampled_from([64, 128, 300]))
def test_exp_minus_bounds_the_exponential(x, bits):
    with mpmath.workdps(200):
        true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        low, high = exp_minus(x, bits)
        assert low <= true <= high
        assert high - low <= 4


def test_a_table_has_exactly_its_thresholds():
    """Weights 1, 2, 5: the edges are where they should be, to the last bit."""
    table = Table([1, 2, 5])
    eighth = 1 << 61
    words = [0, eighth - 1, eighth + 1, 3 * eighth - 1, 3 * eighth + 1, (1 << 64) - 1]
    assert table.draw(Scripted(words), 6).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_tie_in_the_high_bits_draws_low_bits():
    table = Table([1, 2])  # the threshold is 2^160 / 3: high part 0x5555..., low part 0x5555...
    high = (1 << 64) // 3
    low = (1 << 96) // 3
    below, above = Scripted([high], [low - 1]), Scripted([high], [low + 1])
    assert table.draw(below, 1).tolist() == [0]
    assert table.draw(above, 1).tolist() == [1]


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3), Fraction(401, 10)])
def test_gaussian_table_is_within_its_error(sigma):
    """The thresholds themselves, against the law to 60 digits."""
    table, radius = discrete_gaussian._whole_table(sigma)
    edges = [0, *table._thresholds, 1 << 160]
    with mpmath.workdps(80):
        spread = 2 * (mpmath.mpf(sigma.numerator) / sigma.denominator) ** 2
        law = [mpmath.exp(-(mpmath.mpf(x) ** 2) / spread) for x in range(3 * radius + 1)]
        total = law[0] + 2 * mpmath.fsum(law[1:])
        difference = mpmath.mpf(0)
        covered = mpmath.mpf(0)
        for place in range(2 * radius + 1):
            ideal = law[abs(place - radius)] / total
            covered += ideal
            difference += abs(mpmath.mpf(edges[place + 1] - edges[place]) / 2**160 - ideal)
        difference += 1 - covered
        assert difference / 2 < mpmath.mpf(TABLE_ERROR.numerator) / TABLE_ERROR.denominator


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(13, 2), Fraction(40)])
def test_small_gaussian_has_its_law(sigma):
    reach = int(5 * sigma) + 1
    x = np.arange(-reach, reach + 1)
    drawn = discrete_gaussian.noise(Entropy(), sigma, 400_000)
    everywhere = np.arange(-1000, 1001)
    pmf = np.exp(-(x**2) / (2 * float(sigma) ** 2))
    pmf /= np.exp(-(everywhere**2) / (2 * float(sigma) ** 2)).sum()
    assert discrete_gaussian.pmf(sigma, reach) == pytest.approx(pmf, rel=1e-12)
    has_law(drawn, x, pmf)


@pytest.mark.parametrize(
    "sigma", [Fraction(9_999), Fraction(10_001), Fraction(3 * 10**4), Fraction(10**9)]
)
def test_large_gaussian_has_its_law(sigma):
    """Equiprobable bins of the normal law (which it meets to 1e-9), and uniform low digits."""
    size = 400_000
    drawn = discrete_gaussian.noise(Entropy(), sigma, size)
    place = stats.norm.cdf((drawn + 0.5) / float(sigma))
    equal_in_law(np.bincount((place * 64).astype(int), minlength=64), np.full(64, 1 / 64))
    equal_in_law(np.bincount(drawn % 16, minlength=16), np.full(16, 1 / 16))
    tail = int((np.abs(drawn) > 4 * float(sigma)).sum())
    expected = 2 * stats.norm.sf(4)
    assert stats.binomtest(tail, size, expected).pvalue > FALSE_ALARM


def test_large_gaussian_rejects_exactly():
    """Kept exactly when the uniform lies below the exponential, at the last bit too."""
    x = Fraction(1, 7)
    with mpmath.workdps(120):
        value = mpmath.exp(-mpmath.mpf(1) / 7)
        first = int(value * 2**64)
        second = int((value * 2**64 - first) * 2**64)
    assert falls_below_exp_minus(Scripted(), first - 2, x)
    assert not falls_below_exp_minus(Scripted(), first + 2, x)
    assert falls_below_exp_minus(Scripted(integers=[second - 9]), first, x)
    assert not falls_below_exp_minus(Scripted(integers=[second + 9]), first, x)


def test_words_surely_kept_are_never_wrong():
    split = discrete_gaussian._split(Fraction(123_457))
    for high in (0, 1, 17, 4000, 20_000):
        word = int(split.surely_kept[high]) - 1
        worst = split.exponent(high, split.step - 1)
        if word >= 0:
            assert falls_below_exp_minus(Scripted(), word, worst)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7), Fraction(300)])
def test_laplace_has_its_law(scale):
    size = 400_000
    drawn = discrete_laplace.noise(Entropy(), scale, size)
    a = math.exp(-1 / float(scale))
    x = np.arange(-int(6 * scale) - 2, int(6 * scale) + 3)
    pmf = (1 - a) / (1 + a) * a ** np.abs(x)
    has_law(drawn, x, pmf)


def test_large_laplace_has_its_law():
    size, scale = 400_000, 10**9
    drawn = discrete_laplace.noise(Entropy(), Fraction(scale), size)
    place = stats.laplace.cdf(drawn / scale)
    equal_in_law(np.bincount((place * 64).astype(int), minlength=64), np.full(64, 1 / 64))
    equal_in_law(np.bincount(drawn % 256, minlength=256), np.full(256, 1 / 256))


def test_gaussian_agrees_with_opendp():
    """A second, independent exact sampler as oracle."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = dp.m.make_gaussian(*space, scale=4.0)([0] * 20_000)
    ours = discrete_gaussian.noise(Entropy(), Fraction(4), 20_000)
    bins = np.arange(-10, 12) - 0.5
    table = [np.histogram(np.clip(sample, -10, 10), bins)[0] for sample in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(1, 100), Fraction(999, 1000)])
def test_coins_have_their_probability(probability):
    heads = int(coins(Entropy(), probability, 200_000).sum())
    assert stats.binomtest(heads, 200_000, float(probability)).pvalue > FALSE_ALARM


def test_coins_at_the_edge_are_exact():
    third = (1 << 64) // 3
    script = Scripted([third - 1, third, third + 1, third - 5])
    # The tie is decided by another coin of probability 1/3, whose word (third - 5) says heads.
    assert coins(script, Fraction(1, 3), 3).tolist() == [True, True, False]
    assert coins(Entropy(), Fraction(1), 5).all()
    assert not coins(Entropy(), Fraction(0), 5).any()


def test_uniform_below_rejects_the_uneven_end():
    top = (1 << 64) - 1
    assert uniform_below(Scripted([top, 7]), 3, 1).tolist() == [1]  # 2^64 - 1 is a multiple of 3
    observed = np.bincount(uniform_below(Entropy(), 7, 140_000), minlength=7)
    equal_in_law(observed, np.full(7, 1 / 7))


def test_table_refuses_nonsense():
    for weights in ([], [0], [1] * (2**20 + 1)):
        with pytest.raises(ValueError, match="table"):
            Table(weights)


def test_seeded_stream_repeats_and_says_so():
    first, second = SeededEntropy(7), SeededEntropy(7)
    assert (first.words(5) == second.words(5)).all()
    assert source_of(first) == "test"
    assert source_of(Entropy()) == "os"


def test_a_subclass_cannot_pass_for_the_operating_system():
    """Whatever it overrides: it may draw its bits from anywhere."""

    class Sly(Entropy):
        source = "os"

        def _key_material(self):
            return bytes(48)

    assert source_of(Sly()) == "test"
    assert Fraction(1, 2**128) == sampling.TABLE_ERROR
