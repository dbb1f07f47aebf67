"""Noisy votes: soft labels that are as sure as the noise allows."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from stillroom.errors import BadInput
from stillroom.public.noisy_votes import posterior, typical_lead, vote_shares
from stillroom.vocabulary import Sanitised


def noisy_rows(lead, noise, size=2000, classes=10):
    rng = np.random.default_rng(3)
    right = rng.integers(0, classes, size)
    votes = np.full((size, classes), (1 - lead) / classes)
    votes[np.arange(size), right] += lead
    return votes + noise * rng.normal(size=votes.shape), right


def log_loss(labels, right):
    return -np.log(np.maximum(labels[np.arange(len(right)), right], 1e-9)).mean()


def test_the_scale_is_that_of_the_counts():
    """In grid units, in votes and in shares the same weights: softmax(0.8 n count / sigma^2)."""
    teachers, grid, sigma = 250, 1024, 40 * 1024
    counts = np.array([[200.0, 30.0, 20.0], [90.0, 85.0, 75.0]])
    answers = [Sanitised((counts[:1] * grid).astype(np.int64), ())]
    answers.append(Sanitised((counts[1:] * grid).astype(np.int64), ()))
    shares = vote_shares(answers, teachers=teachers, grid=grid)
    found = posterior(shares, noise=sigma / (teachers * grid), lead=0.8)
    for row, count in zip(found, counts, strict=True):
        weights = [exp(0.8 * 250 * (c - count.max()) / 40**2) for c in count]
        assert row == pytest.approx(np.array(weights) / sum(weights))


@pytest.mark.parametrize("lead", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("noise", [1 / 4, 1 / 8, 1 / 16])
def test_the_labels_are_as_sure_as_they_are_right(lead, noise):
    """Calibrated: how sure the labels are, on average, is how often they are right.

    A share of 2000 rows is within 0.056 of its mean but for one in 10^6 (Hoeffding); twice that
    leaves room for the estimated lead.
    """
    rows, right = noisy_rows(lead, noise)
    found = posterior(rows, noise)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(rows)))
    assert found.max(axis=1).mean() == pytest.approx(
        (found.argmax(axis=1) == right).mean(), abs=0.11
    )
    taken_as_they_are = np.maximum(rows, 1e-3)
    taken_as_they_are /= taken_as_they_are.sum(axis=1, keepdims=True)
    assert log_loss(found, right) < log_loss(taken_as_they_are, right)


def test_a_fixed_lead_would_be_too_sure():
    """The broken twin: 0.8 for soft votes whose first class leads by 0.3."""
    rows, right = noisy_rows(0.3, 1 / 4)
    assert typical_lead(rows, 1 / 4) == pytest.approx(0.3, abs=0.06)
    sure = posterior(rows, 1 / 4, lead=0.8)
    assert sure.max(axis=1).mean() > (sure.argmax(axis=1) == right).mean() + 0.2
    assert log_loss(sure, right) > log_loss(posterior(rows, 1 / 4), right) + 0.3


def test_noise_alone_teaches_nothing():
    rows = np.random.default_rng(0).normal(size=(2000, 10))
    found = posterior(rows, noise=1.0)
    assert found.max() < 0.5
    assert np.array_equal(found.argmax(axis=1), rows.argmax(axis=1)), "yet rows stay ordered"
    assert typical_lead(np.zeros((0, 10)), 0.1) == 0


@pytest.mark.parametrize(
    "numbers", [{"noise": 0.0}, {"noise": float("nan")}, {"noise": 1.0, "lead": 1.5}]
)
def test_numbers_out_of_range(numbers):
    with pytest.raises(BadInput):
        posterior(np.zeros((2, 3)), **numbers)
