"""Exact choices: floating point decides only where it is sure to be right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stillroom.gate.choosing import choose, law_of
from stillroom.gate.entropy import Entropy, SeededEntropy

FALSE_ALARM = 1e-7
ALWAYS_EXACT = 1e9
RATES = [Fraction(1, 3), Fraction(7, 1000), Fraction(40)]


def some_scores(seed, rows=300, candidates=9, highest=60):
    return np.random.default_rng(seed).integers(0, highest, (rows, candidates)).astype(np.float64)


@pytest.mark.parametrize("rate", RATES)
def test_sums_decide_as_integers_do(rate):
    """The same bits, so the same choice, whether or not it was near a border."""
    scores = some_scores(1)
    for seed in range(3):
        quick = choose(SeededEntropy(seed), scores, rate)
        exact = choose(SeededEntropy(seed), scores, rate, sure=ALWAYS_EXACT)
        assert quick.dtype == np.int64
        assert np.array_equal(quick, exact)


@pytest.mark.parametrize("sure", [2.0**-36, ALWAYS_EXACT])
@pytest.mark.parametrize("rate", RATES[:2])
def test_the_law_is_the_stated_one(rate, sure):
    """Chi-square: rejects a right sampler with a probability of 1e-7."""
    draws = 200_000 if sure < 1 else 4000
    scores = np.array([[0.0, 3, 5, 5, 1, 2]])
    found = choose(Entropy(), np.repeat(scores, draws, axis=0), rate, sure=sure)
    seen = np.bincount(found, minlength=6)
    expected = law_of(scores.astype(np.int64), rate)[0] * draws
    p = stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 5)
    assert p > FALSE_ALARM


class Said(Entropy):
    """Bits that are told."""

    def __init__(self, word, more=0):
        super().__init__()
        self.word, self.more, self.asked = word, more, 0

    def words(self, count):
        return np.full(count, self.word, dtype=np.uint64)

    def integer(self, bits):
        self.asked += 1
        return self.more


def test_a_draw_on_a_border_takes_more_bits():
    """Two candidates alike: the border is exactly one half, and the next bits tell."""
    alike = np.zeros((1, 2))
    half = 1 << 63
    assert choose(Said(half - 1), alike, Fraction(1)).tolist() == [0]
    assert choose(Said(half, more=1), alike, Fraction(1)).tolist() == [1]
    # A candidate that begins beyond 64 bits is reached by drawing further ones.
    far = np.array([[0.0, 60.0]])
    told = Said(0, more=1)
    assert choose(told, far, Fraction(1)).tolist() == [0]
    assert told.asked > 0


@pytest.mark.parametrize("word", [0, (1 << 64) - 1])
def test_the_ends_of_the_interval(word):
    scores = np.array([[0.0, 0, 900], [900.0, 0, 0], [5.0, 5, 5]])
    wanted = [2, 0, 0] if word == 0 else [2, 0, 2]
    assert choose(Said(word, more=1 << 63), scores, Fraction(2)).tolist() == wanted


def test_no_rows_no_choices():
    assert choose(Entropy(), np.zeros((0, 4)), Fraction(1)).tolist() == []
