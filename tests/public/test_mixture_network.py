"""A mixture as a network: its scores are the classes' log-likelihoods, and gradients flow."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stillroom.features.basis import Basis
from stillroom.public import Mixture
from stillroom.public.mixture_network import _CHUNK, MixtureNetwork

FULL_SCALE = 16.0
BASIS = Basis(4, 4, 16)
VARIANCE = 0.04


def separated(variances=(VARIANCE, VARIANCE), weights=((30.0, 10.0), (5.0, 35.0))):
    """Two classes, dark and bright, of two centres each; all sixteen directions of the basis."""
    grey = np.array([[0.2, 0.3], [0.7, 0.8]])
    pictures = np.repeat(grey.reshape(4, 1), 16, axis=1)
    centres = (pictures @ BASIS.matrix.T).reshape(2, 2, 16)
    shapes = np.stack([variance * np.eye(16) for variance in variances])
    return Mixture(np.array(weights), centres, np.eye(16), shapes, BASIS)


def likelihoods(mixture, x):
    """Log-likelihoods of full covariances, by numpy alone."""
    z = (x.reshape(len(x), -1) / FULL_SCALE) @ BASIS.matrix.T
    scores = []
    for weights, centres, shape in zip(
        mixture.weights, mixture.centres, mixture.covariances, strict=True
    ):
        away = z[:, None] - centres
        squares = np.einsum("nki,ij,nkj->nk", away, np.linalg.inv(shape), away)
        parts = np.log(weights / weights.sum()) - 0.5 * (squares + np.linalg.slogdet(shape)[1])
        scores.append(np.logaddexp.reduce(parts, axis=1))
    return np.stack(scores, axis=1)


def pictures(count, seed=0):
    """Dark and bright ones in turn, with some noise."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    grey = 0.25 + 0.5 * labels[:, None, None] + 0.05 * rng.standard_normal((count, 4, 4))
    return (grey.clip(0, 1) * FULL_SCALE).astype(np.float32), labels


@pytest.mark.parametrize("variances", [(VARIANCE, VARIANCE), (VARIANCE, 0.16)])
def test_scores_are_log_likelihoods_up_to_a_constant(variances):
    mixture = separated(variances)
    x, labels = pictures(40)
    scores = MixtureNetwork(mixture, FULL_SCALE).of_records(x)
    assert (scores.shape, scores.dtype) == ((40, 2), np.float64)
    expected = likelihoods(mixture, x.astype(np.float64))
    expected -= expected.mean(axis=1, keepdims=True)
    assert scores == pytest.approx(expected, rel=1e-4, abs=1e-3)
    assert np.array_equal(scores.argmax(axis=1), labels)


def test_samples_are_given_to_the_class_they_are_drawn_from():
    mixture = separated()
    drawn, classes = mixture.sample(3, 400)
    scores = MixtureNetwork(mixture, FULL_SCALE).of_records(drawn * np.float32(FULL_SCALE))
    assert (scores.argmax(axis=1) == classes).mean() > 0.95


def test_classes_count_alike_however_many_records_they_had():
    """Weights are shares within a class: a rare class is not thought less likely."""
    many = separated(weights=((3000.0, 1000.0), (5.0, 35.0)))
    x, _ = pictures(20)
    few, most = (MixtureNetwork(one, FULL_SCALE).of_records(x) for one in (separated(), many))
    assert few == pytest.approx(most)


def test_gradients_flow_to_the_picture_and_not_into_the_mixture():
    network = MixtureNetwork(separated(), FULL_SCALE)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    x = torch.from_numpy(pictures(6)[0]).requires_grad_()
    loss = torch.nn.functional.cross_entropy(network(x), torch.ones(6, dtype=torch.int64))
    loss.backward()
    assert x.grad.abs().sum(dim=(1, 2))[::2].min() > 0  # the dark ones are far from class 1
    assert all(not p.requires_grad and p.grad is None for p in network.parameters())
    # A step against the gradient brings dark pictures nearer to the bright class.
    with torch.no_grad():
        moved = (x - 2.0 * x.grad.sign()).clamp(0, FULL_SCALE)
        nearer = torch.nn.functional.cross_entropy(network(moved), torch.ones(6, dtype=torch.int64))
    assert nearer < loss
    after = network.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_values_beyond_black_and_white_are_cut_off():
    network = MixtureNetwork(separated(), FULL_SCALE)
    x = np.array([[[-1e30] * 4] * 4, [[1e30] * 4] * 4], dtype=np.float32)
    assert network.of_records(x) == pytest.approx(network.of_records(x.clip(0, FULL_SCALE)))
    assert np.isfinite(network.of_records(x)).all()


def test_records_are_scored_by_chunks_as_they_are_alone():
    network = MixtureNetwork(separated(), FULL_SCALE)
    x, _ = pictures(_CHUNK + 3)
    scores = network.of_records(x)
    assert scores[-1:] == pytest.approx(network.of_records(x[-1:]))
    assert scores[:1] == pytest.approx(network.of_records(x[:1]))


def test_what_lies_outside_the_directions_counts_too():
    """Two classes that differ only outside the kept directions are still told apart."""
    far = separated()
    near = 0.01 * np.stack([np.eye(2)] * 2)
    few = Mixture(far.weights, far.centres, np.eye(16)[:, 5:7], near, BASIS)
    x, labels = pictures(20)
    scores = MixtureNetwork(few, FULL_SCALE).of_records(x)
    assert np.array_equal(scores.argmax(axis=1), labels)
