"""Weights are kept by importance, or by the law of Eq. (7)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from stillroom.errors import BadInput
from stillroom.public.pruning import chances, kept_by_chance, most_important
from stillroom.randomness import normals

IMPORTANCE = {
    "conv": np.abs(normals(1, "conv", size=(8, 3, 3, 3))),
    "bias": np.abs(normals(1, "bias", size=8)) * 100,
    "linear": np.abs(normals(1, "linear", size=(10, 30))) * 5,
}
WEIGHTS = 8 * 27 + 300
RARE = 1e-6
"""The false-alarm rate of each statistical test; the streams are fixed beside."""


def flat(parts):
    return np.concatenate([part.ravel() for part in parts.values()])


@pytest.mark.parametrize("kept", [Fraction(1, 10), Fraction(1, 2), 0.9, 1, Fraction(1, 10**9)])
def test_the_share_is_kept_of_the_whole_network(kept):
    masks = most_important(IMPORTANCE, kept)
    assert set(masks) == {"conv", "linear"}
    assert all(masks[name].shape == IMPORTANCE[name].shape for name in masks)
    mask = flat(masks)
    assert mask.sum() == -int(-WEIGHTS * Fraction(kept) // 1)
    told = flat({name: IMPORTANCE[name] for name in masks})
    assert kept == 1 or told[mask].min() >= told[~mask].max()


def test_of_equals_the_first_are_kept():
    masks = most_important({"w": np.ones((2, 3))}, 0.5)
    assert masks["w"].tolist() == [[True, True, True], [False, False, False]]


@pytest.mark.parametrize("kept", [0, -1, 1.01, float("nan")])
@pytest.mark.parametrize("prune", [most_important, chances])
def test_what_is_no_share_is_refused(prune, kept):
    with pytest.raises(BadInput, match="share"):
        prune(IMPORTANCE, kept)


@pytest.mark.parametrize("odd", [{}, {"b": np.ones(5)}, {"w": np.full((2, 2), np.nan)}])
def test_nothing_to_prune_is_refused(odd):
    for prune in (lambda: most_important(odd, 0.5), lambda: kept_by_chance(odd, 0)):
        with pytest.raises(BadInput, match="nothing to prune"):
            prune()


def test_the_chances_are_those_of_eq_7():
    told = chances(IMPORTANCE)
    weights = flat({name: IMPORTANCE[name] for name in told})
    expected = (weights - weights.min()) / (weights.max() - weights.min())
    assert np.array_equal(flat(told), expected)


@pytest.mark.parametrize("kept", [None, Fraction(13, 20)])
def test_weights_are_kept_with_their_chances(kept):
    """Each in 400 draws against its own probability, by chi-square over all weights.

    Two-sided: too even would be as wrong. Weights that are kept always or never are compared
    exactly.
    """
    draws = 400
    told = flat(chances(IMPORTANCE, kept))
    seen = sum(flat(kept_by_chance(IMPORTANCE, seed, kept)).astype(int) for seed in range(draws))
    assert np.array_equal(seen[told == 0], 0 * seen[told == 0])
    assert np.array_equal(seen[told == 1], draws + 0 * seen[told == 1])
    # Below five expected draws the count is not nearly normal.
    some = (told * draws > 5) & ((1 - told) * draws > 5)
    assert some.sum() > 100
    variance = draws * told[some] * (1 - told[some])
    found = ((seen[some] - draws * told[some]) ** 2 / variance).sum()
    assert RARE / 2 < stats.chi2.sf(found, some.sum()) < 1 - RARE / 2


def test_the_same_seed_keeps_the_same_weights():
    one, again, other = (flat(kept_by_chance(IMPORTANCE, seed)) for seed in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@settings(max_examples=40)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 12)),
        elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]),
    ),
    st.fractions(min_value=Fraction(1, 1000), max_value=1),
)
def test_any_share_is_reached(weights, kept):
    told = chances({"w": weights}, kept)["w"]
    assert ((told >= 0) & (told <= 1)).all()
    assert told.mean() == pytest.approx(float(kept), rel=1e-6)
    # More important weights are kept no less often.
    assert (np.diff(told.ravel()[np.argsort(weights, axis=None)]) >= -1e-12).all()


def test_scaled_chances_are_proportional_below_one():
    told, plain = flat(chances(IMPORTANCE, 0.3)), flat(chances(IMPORTANCE))
    below = (told < 1) & (plain > 0)
    ratios = told[below] / plain[below]
    assert ratios.min() == pytest.approx(ratios.max())
    assert ratios.max() > 1


def test_weights_that_do_not_matter_have_equal_chances():
    weights = {"w": np.array([[0.0, 0.0, 0.0, 1.0, 2.0]])}
    assert chances(weights, 0.8)["w"] == pytest.approx(np.array([[2 / 3, 2 / 3, 2 / 3, 1, 1]]))
    assert chances({"w": np.ones((2, 2))}, 0.5)["w"].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert kept_by_chance({"w": np.ones((2, 2))}, 0)["w"].all()
