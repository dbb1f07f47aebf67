"""The clipped sum: exact, within its clip, and the same as slow arithmetic with whole gradients."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features import FEATURES, edges, pixels
from stillroom.private import Clip, LinearRecords
from stillroom.vocabulary import Norm, SecretSample

HALF = Clip(Fraction(1, 2))


CLIP = Clip(Fraction(1, 2))


def records_of(seed, size=40, features=30, classes=4):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, features)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.0001
    return (
        rows,
        rng.integers(0, classes, size),
        rng.normal(size=(classes, features)).astype(np.float32),
    )


def one_by_one(rows, labels, weights, clip):
    """Every record's own integer gradient, by whole numbers only."""
    integer_rows = np.trunc(rows * 2**10).astype(np.int64)
    gradients = []
    for row, label in zip(integer_rows, labels, strict=True):
        logits = (row / 2**10) @ weights.T.astype(np.float64)
        residual = np.exp(logits - logits.max())
        residual /= residual.sum()
        residual[label] -= 1
        gradients.append(np.outer(residual, row / 2**10))
    return integer_rows, gradients


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["1/10", "1/2", "1"]), st.booleans())
def test_every_term_is_within_the_clip_exactly(seed, norm, normalise):
    rows, labels, weights = records_of(seed, size=12)
    clip = Clip(Fraction(norm), normalise)
    for i in range(12):
        alone = LinearRecords(rows[i : i + 1], labels[i : i + 1], 4)
        term = alone.clipped_sum(3 * weights, clip, None)
        squared = int((term.open_bounded().astype(object) ** 2).sum())
        assert squared <= clip.squared_norm
        assert term.sensitivity.norm is Norm.CONTRIBUTION_SQUARED
        assert set(term.sensitivity.bounds.values()) == {Fraction(clip.squared_norm)}


def test_the_sum_is_the_sum_of_its_terms_exactly():
    rows, labels, weights = records_of(1, size=700)
    whole = LinearRecords(rows, labels, 4).clipped_sum(weights, HALF, None).open_bounded()
    terms = sum(
        LinearRecords(rows[i : i + 1], labels[i : i + 1], 4)
        .clipped_sum(weights, HALF, None)
        .open_bounded()
        for i in range(700)
    )
    assert np.array_equal(whole, terms)


@settings(max_examples=25, deadline=None)
@example(seed=0, gone=0, normalise=False)  # all others move up by one, also from block to block
@given(seed=st.integers(0, 10**6), gone=st.integers(0, 599), normalise=st.booleans())
def test_a_term_does_not_depend_on_its_neighbours(seed, gone, normalise):
    """One record less moves the sum by that record's own term, to the last unit of the grid."""
    rows, labels, weights = records_of(seed, size=600, features=80, classes=10)
    clip = Clip(Fraction(1, 2), normalise)
    weights = weights * 7
    rest = np.arange(600) != gone

    def total(which):
        return LinearRecords(rows[which], labels[which], 10).clipped_sum(weights, clip, None)

    moved = total(slice(None)).open_bounded() - total(rest).open_bounded()
    assert np.array_equal(moved, total([gone]).open_bounded())


def test_a_guess_does_not_depend_on_its_neighbours():
    rows, labels, weights = records_of(11, size=600, features=80, classes=10)
    whole = LinearRecords(rows, labels, 10).guesses(weights)
    alone = [
        LinearRecords(rows[i : i + 1], labels[i : i + 1], 10).guesses(weights)[0]
        for i in range(600)
    ]
    assert whole.tolist() == alone
    assert (whole == (rows @ weights.T).argmax(axis=1)).mean() > 0.98


def test_weights_that_are_no_numbers_are_refused():
    rows, labels, weights = records_of(2)
    weights[1, 1] = np.nan
    with pytest.raises(NumericalDoubt, match="weights"):
        LinearRecords(rows, labels, 4).clipped_sum(weights, HALF, None)


def test_it_is_the_clipped_gradient():
    rows, labels, weights = records_of(3, size=60)
    _, gradients = one_by_one(rows, labels, weights, HALF)
    expected = sum(g * min(1, 0.5 / np.linalg.norm(g)) for g in gradients)
    got = LinearRecords(rows, labels, 4).clipped_sum(weights, HALF, None).open_bounded()
    assert got.reshape(4, -1) * HALF.unit == pytest.approx(expected, abs=60 * 2**-11)


def test_only_the_sample_takes_part():
    rows, labels, weights = records_of(4, size=50)
    mask = np.arange(50) % 3 == 0
    secret = SecretSample(Fraction(1, 3), lambda size: mask)
    sampled = LinearRecords(rows, labels, 4).clipped_sum(weights, HALF, secret)
    chosen = LinearRecords(rows[mask], labels[mask], 4).clipped_sum(weights, HALF, None)
    assert np.array_equal(sampled.open_bounded(), chosen.open_bounded())
    assert sampled.sample is secret


def test_an_empty_sample_is_a_zero_sum():
    rows, labels, weights = records_of(5)
    secret = SecretSample(Fraction(1, 3), lambda size: np.zeros(size, dtype=bool))
    assert (
        not LinearRecords(rows, labels, 4).clipped_sum(weights, HALF, secret).open_bounded().any()
    )


def test_a_forgotten_clip_is_caught(monkeypatch):
    """The twin without clipping breaks the bound that the real one keeps."""
    monkeypatch.setattr(
        LinearRecords,
        "_clipped",
        staticmethod(lambda residuals, squares, clip: np.trunc(residuals * 4095).astype(np.int64)),
    )
    rows, labels, weights = records_of(6, size=12)
    clip = Clip(Fraction(1, 10))
    norms = [
        int((alone.clipped_sum(30 * weights, clip, None).open_bounded().astype(object) ** 2).sum())
        for i in range(12)
        for alone in [LinearRecords(rows[i : i + 1], labels[i : i + 1], 4)]
    ]
    assert max(norms) > clip.squared_norm


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_counts_nothing_and_says_nothing(bad):
    """As if the record were not there; an error after a draw would tell that it is (K10)."""
    rows, labels, weights = records_of(7)
    without = clipped(np.delete(rows, 3, axis=0), np.delete(labels, 3), weights)
    rows[3, 3] = bad
    assert np.array_equal(clipped(rows, labels, weights), without)


@pytest.mark.parametrize("times", [1.1, 40.0, 1e30])
def test_a_long_row_is_shortened_and_says_nothing(times):
    rows, labels, weights = records_of(7)
    rows[3] *= np.float32(times / np.linalg.norm(rows[3]))
    whole = clipped(rows, labels, weights)
    moved = whole - clipped(np.delete(rows, 3, axis=0), np.delete(labels, 3), weights)
    assert 0 < (moved * moved).sum() <= CLIP.squared_norm


def clipped(rows, labels, weights):
    return LinearRecords(rows, labels, 4).clipped_sum(weights, CLIP, None).open_bounded()[0]


@pytest.mark.parametrize("norm", [0, -1, 2])
def test_a_senseless_clip_is_refused(norm):
    with pytest.raises(BadInput, match="clip"):
        Clip(Fraction(norm))


def test_records_hide_themselves():
    rows, labels, _ = records_of(8)
    assert "hidden" in repr(LinearRecords(rows, labels, 4))


@pytest.mark.parametrize("name", FEATURES)
def test_features_know_one_record_only_and_are_short(name):
    pictures = np.random.default_rng(9).integers(0, 256, size=(20, 12, 12)).astype(np.uint8)
    pictures[3] = 0  # a blank record
    rows = FEATURES[name](pictures)
    assert np.linalg.norm(rows.astype(np.float64), axis=1).max() <= 1
    assert np.isfinite(rows).all()
    alone = np.concatenate([FEATURES[name](pictures[i : i + 1]) for i in range(20)])
    assert np.array_equal(rows, alone)  # to the last bit: one record must not sway another's row
    LinearRecords(rows, np.zeros(20, dtype=np.int64), 2)


@pytest.mark.parametrize("name", FEATURES)
def test_a_blank_record_stays_blank_and_none_is_none(name):
    blank = np.full((1, 8, 8), 0.1, dtype=np.float32)
    assert np.abs(FEATURES[name](blank)[0, :-1]).max() < 1e-3
    assert len(FEATURES[name](np.zeros((0, 8, 8)))) == 0


def test_colour_pictures_have_edges_and_tables_have_none():
    assert len(edges(np.ones((2, 8, 8, 3)))) == 2
    assert pixels(np.ones((2, 8, 8, 3))).shape == (2, 193)
    with pytest.raises(BadInput, match="pictures"):
        edges(np.ones((2, 8)))
