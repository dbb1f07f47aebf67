"""Public scales: one second moment in all directions, and heads fitted on them."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.public.whitening import fit_head, whitening

RNG = np.random.default_rng(1)
ROWS = (RNG.normal(size=(500, 4)) @ np.diag([5.0, 1, 0.1, 0.001])).astype(np.float32)


def moment(rows):
    return rows.T @ rows / len(rows)


def test_directions_come_to_one_scale():
    turned = (ROWS @ np.linalg.qr(RNG.normal(size=(4, 4)))[0]).astype(np.float32)
    matrix = whitening(turned, 1e-9)
    assert moment(turned @ matrix) == pytest.approx(np.eye(4), abs=0.01)
    assert matrix == pytest.approx(matrix.T, abs=1e-2)


def test_a_ridge_leaves_thin_directions_thin():
    scaled = moment(ROWS @ whitening(ROWS, 1e-3))
    assert np.diag(scaled)[:2] == pytest.approx([1, 1], abs=0.01)
    assert scaled[3, 3] < 0.01


def test_a_diagonal_scale_mixes_no_coordinates():
    matrix = whitening(ROWS, 1e-9, diagonal=True)
    assert np.array_equal(matrix, np.diag(np.diag(matrix)))
    assert np.diag(moment(ROWS @ matrix)) == pytest.approx(np.ones(4), abs=0.01)


def test_a_head_learns_what_can_be_told_apart():
    labels = (ROWS[:, 0] > 0).astype(np.int64)
    rows = ROWS @ whitening(ROWS, 1e-6)
    weights = fit_head(rows, labels, 2, steps=40, rate=0.5)
    assert weights.dtype == np.float32
    assert ((rows @ weights.T).argmax(axis=1) == labels).mean() > 0.97
