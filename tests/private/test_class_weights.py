"""Class weights multiply a gradient before it is clipped, and nothing after it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from stillroom.errors import BadInput
from stillroom.models.flat_weights import flatten, trainable, unflatten
from stillroom.private import Clip, LinearPersons, LinearRecords
from stillroom.private.linear import FEATURE_BITS
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_persons import NetworkPersons
from stillroom.private.networks import NetworkRecords
from stillroom.public.descent import softmax_gradient

CLASSES, WEIGHTS = 4, (0.25, 1.0, 0.001, 0.5)


def records_of(seed, size=40, features=30):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, features)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.0001
    weights = rng.normal(size=(CLASSES, features)).astype(np.float32)
    return rows, rng.integers(0, CLASSES, size), weights


def weighted_gradient(row, label, weights):
    """One record's gradient in floating point, times the weight of its class, before any clip."""
    cut = np.trunc(row * 2**FEATURE_BITS) / 2**FEATURE_BITS
    scores = np.exp(cut @ weights.T.astype(np.float64))
    residual = scores / scores.sum() - np.eye(CLASSES)[label]
    return WEIGHTS[label] * np.outer(residual, cut)


def clipped(gradient, norm):
    return gradient * min(1.0, norm / np.linalg.norm(gradient))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["1/100", "1/10", "1/2", "1"]))
def test_every_weighted_term_is_within_the_clip_exactly(seed, norm):
    rows, labels, weights = records_of(seed, size=12)
    clip = Clip(Fraction(norm))
    for i in range(12):
        alone = LinearRecords(rows[i : i + 1], labels[i : i + 1], CLASSES, WEIGHTS)
        term = alone.clipped_sum(9 * weights, clip, None).open_bounded().astype(object)
        assert int((term**2).sum()) <= clip.squared_norm


def test_the_weight_comes_before_the_clip():
    rows, labels, weights = records_of(1)
    for norm in (Fraction(1, 10), Fraction(1)):
        clip = Clip(norm)
        found = LinearRecords(rows, labels, CLASSES, WEIGHTS).clipped_sum(weights, clip, None)
        got = found.open_bounded().reshape(CLASSES, -1) * clip.unit
        own = [weighted_gradient(*record, weights) for record in zip(rows, labels, strict=True)]
        expected = sum(clipped(one, float(norm)) for one in own)
        lengths = [np.linalg.norm(one) for one in own]
        assert min(lengths) < 0.1 < max(lengths)  # some are clipped, and some are not
        # A residual is cut off by less than 2^-12, along a row of length 1 at most, 40 times.
        assert np.abs(got - expected).max() < 40 * 2**-12
        # Multiplied after the clip it would be another sum.
        late = sum(
            WEIGHTS[label] * clipped(one / WEIGHTS[label], float(norm))
            for one, label in zip(own, labels, strict=True)
        )
        if norm < 1:
            assert np.abs(got - late).max() > 80 * 2**-12


def test_weights_of_one_change_nothing():
    rows, labels, weights = records_of(2)
    clip = Clip(Fraction(1, 3))
    plain = LinearRecords(rows, labels, CLASSES).clipped_sum(weights, clip, None)
    ones = LinearRecords(rows, labels, CLASSES, (1.0,) * CLASSES).clipped_sum(weights, clip, None)
    assert np.array_equal(plain.open_bounded(), ones.open_bounded())


def test_a_persons_records_are_weighted_each_by_its_class():
    rows, labels, weights = records_of(3, size=12)
    clip, persons = Clip(Fraction(1, 4)), [f"p{i // 4}" for i in range(12)]
    found = LinearPersons(rows, labels, CLASSES, persons, 4, WEIGHTS)
    got = found.clipped_sum(weights, clip, None).open_bounded().reshape(CLASSES, -1) * clip.unit
    own = [weighted_gradient(*record, weights) for record in zip(rows, labels, strict=True)]
    expected = sum(clipped(sum(own[i : i + 4]), 0.25) for i in (0, 4, 8))
    assert np.abs(got - expected).max() < 12 * 2**-11


@pytest.mark.parametrize(
    "wrong", [(1.0, 1.0), (1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 1.0, 1.1), (1.0, 1.0, 1.0, np.nan)]
)
def test_weights_that_leave_the_grid_are_refused(wrong):
    rows, labels, _ = records_of(4)
    with pytest.raises(BadInput, match=r"one number in \(0, 1\] per class"):
        LinearRecords(rows, labels, CLASSES, wrong)
    with pytest.raises(BadInput, match=r"one number in \(0, 1\] per class"):
        NetworkRecords(
            torch.from_numpy(rows), labels, CLASSES, nn.Linear(30, 4), class_weights=wrong
        )


@pytest.mark.parametrize("ghost", [False, True])
@pytest.mark.parametrize("persons", [False, True])
def test_a_networks_gradients_are_weighted_before_the_clip(ghost, persons):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, CLASSES))
    weights, clip = 2 * flatten(network), NetworkClip(Fraction(1, 4))
    rng = np.random.default_rng(5)
    x = torch.from_numpy(rng.normal(size=(12, 6)).astype(np.float32))
    y = rng.integers(0, CLASSES, 12)
    options = {"ghost": ghost, "class_weights": WEIGHTS}
    if persons:
        owners = [f"p{i // 3:02}" for i in range(12)]
        records = NetworkPersons(x, y, CLASSES, network, owners, 3, **options)
    else:
        records = NetworkRecords(x, y, CLASSES, network, **options)
    got = records.clipped_sum(weights, clip, None, step=1).open_bounded()[0] * clip.unit
    unflatten(network, weights)
    own = []
    for record, label in zip(x, y, strict=True):
        loss = WEIGHTS[label] * F.cross_entropy(network(record[None]), torch.tensor([label]))
        parts = torch.autograd.grad(loss, trainable(network))
        own.append(np.concatenate([part.reshape(-1).double().numpy() for part in parts]))
    each = 3 if persons else 1
    terms = [sum(own[i : i + each]) for i in range(0, 12, each)]
    assert min(map(np.linalg.norm, own)) < 0.25 < max(map(np.linalg.norm, own))
    assert np.abs(got - sum(clipped(term, 0.25) for term in terms)).max() < 1e-5


def test_the_public_gradient_is_weighted_alike():
    rows, labels, weights = records_of(6)
    found = softmax_gradient(rows, labels, CLASSES, WEIGHTS)(weights)
    scores = np.exp(rows @ weights.T)
    residuals = scores / scores.sum(axis=1, keepdims=True) - np.eye(CLASSES)[labels]
    residuals *= np.array(WEIGHTS)[labels][:, None]
    assert np.allclose(found, residuals.T @ rows / len(rows), atol=1e-6)
