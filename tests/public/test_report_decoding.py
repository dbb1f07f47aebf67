"""Likelihood against plurality, on reports whose truth is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from stillroom.gate import RandomisedResponse, TruncatedGeometric, UnaryEncoding
from stillroom.gate.entropy import SeededEntropy
from stillroom.public.report_decoding import Reports, chances, likelihoods, plurality, shares

CLASSES, ENTITIES = 10, 250
TRUTH = np.arange(200) % CLASSES


def reported(mechanism, law):
    entropy, places = SeededEntropy(3), np.arange(len(TRUTH))
    rng = np.random.default_rng(4)
    found = []
    for _ in range(ENTITIES):
        right = rng.random(len(TRUTH)) < 0.9
        own = np.where(right, TRUTH, rng.integers(0, CLASSES, len(TRUTH)))
        told = mechanism.draw(entropy, own[:, None], len(own))
        found.append(Reports(places, told, law))
    return found


def right(found):
    return float((found.argmax(axis=1) == TRUTH).mean())


def law(mechanism):
    return np.array([[float(p) for p in mechanism.law(k)] for k in range(CLASSES)])


def test_a_plurality_of_clamped_reports_fails_where_the_likelihood_does_not():
    mechanism = TruncatedGeometric(CLASSES, Fraction(3))  # epsilon 3 per report
    reports = reported(mechanism, law(mechanism))
    size = len(TRUTH)
    assert right(plurality(reports, size, CLASSES)) < 0.5
    assert right(likelihoods(reports, size, CLASSES)) > 0.9


def test_responses_and_unary_encodings_are_decoded():
    mechanism = RandomisedResponse(CLASSES, Fraction(23, 100))  # epsilon 1 per report
    assert right(likelihoods(reported(mechanism, law(mechanism)), len(TRUTH), CLASSES)) > 0.95
    unary = UnaryEncoding(CLASSES, Fraction(27, 100))
    bits = np.full((CLASSES, CLASSES), 0.27)
    np.fill_diagonal(bits, 0.5)
    assert right(likelihoods(reported(unary, bits), len(TRUTH), CLASSES)) > 0.95


def test_entities_with_less_noise_weigh_more():
    clear, noisy = np.eye(3) * 0.97 + 0.01, np.eye(3) * 0.01 + 0.33
    told = [Reports(np.array([0]), np.array([1]), clear)]
    told += [Reports(np.array([0]), np.array([2]), noisy)] * 5
    assert likelihoods(told, 1, 3).argmax() == 1


def test_who_abstains_says_nothing_of_the_class():
    law_with_abstention = np.eye(4) * 0.6 + 0.1
    told = [Reports(np.array([0]), np.array([3]), law_with_abstention)]
    found = chances(likelihoods(told, 1, 3))
    assert found[0] == pytest.approx([1 / 3] * 3)


def test_chances_add_up_to_one():
    found = chances(np.array([[0.0, -1e6, 5.0], [1e6, 1e6, 0.0]]))
    assert found.sum(axis=1) == pytest.approx([1, 1])
    assert found[1] == pytest.approx([0.5, 0.5, 0])


def test_turned_around_reports_have_no_bias_and_the_noise_they_say():
    """Two-sided, at six standard errors of the mean over 2,000 counts each: below 1e-8."""
    mechanism = RandomisedResponse(CLASSES, Fraction(23, 100))
    unary = UnaryEncoding(CLASSES, Fraction(27, 100))
    bits = np.full((CLASSES, CLASSES), 0.27)
    np.fill_diagonal(bits, 0.5)
    for reports in (reported(mechanism, law(mechanism)), reported(unary, bits)):
        found, noise = shares(reports, len(TRUTH), CLASSES)
        expected = 0.01 + 0.9 * np.eye(CLASSES)[TRUTH]
        off = found - expected
        assert abs(off.mean()) < 6 * noise / np.sqrt(off.size)
        assert 0.8 * noise < off.std() < 1.3 * noise
