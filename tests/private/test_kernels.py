"""The kernels against whole numbers, at every remainder of their fours and pairs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from stillroom.private import kernels

SHAPES = [
    (size, classes, width)
    for size in (0, 1, 2, 3, 4, 7, 66)
    for classes in (1, 2, 5, 10)
    for width in (1, 8, 45)
] + [(2 * kernels.CARRY + 3, 3, 33), (5, 1001, 20), (9, 10, 3969)]


@pytest.mark.parametrize(("size", "classes", "width"), SHAPES)
def test_kernels_are_exact(size, classes, width):
    rng = np.random.default_rng((size, classes, width))
    rows = rng.integers(-1024, 1025, size=(size + 3, width)).astype(np.int16)
    chosen = rng.permutation(size + 3)[:size]
    weights = rng.integers(-300, 301, size=(classes, width)).astype(np.int16)
    factors = rng.integers(-4095, 4096, size=(classes, size))
    whole = rows[chosen].astype(np.int64)
    assert np.array_equal(kernels.products(rows, chosen, weights), weights @ whole.T)
    assert np.array_equal(kernels.sums(rows, chosen, factors), factors @ whole)


def largest(size):
    """The sum of the largest terms there are, and what it should be."""
    rows = np.full((1, 9), -1024, dtype=np.int16)
    factors = np.full((3, size), 4095)
    return kernels.sums(rows, np.zeros(size, dtype=np.int64), factors), -1024 * 4095 * size


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_largest_sums_fit(blocks):
    got, wanted = largest(blocks * kernels.CARRY)
    assert (got == wanted).all()


def test_a_later_carry_is_caught(monkeypatch):
    """The twin that carries one four of rows too late wraps around."""
    monkeypatch.setattr(kernels, "CARRY", kernels.CARRY + 4)
    got, wanted = largest(kernels.CARRY)
    assert (got != wanted).all()


def test_the_largest_logit_fits():
    row = np.array([[1024, 0, 0]], dtype=np.int16)
    weights = np.array([[1 << 14, 0, 0], [-1 << 14, 0, 0]], dtype=np.int16)
    got = kernels.products(row, np.zeros(1, dtype=np.int64), weights)
    assert got.ravel().tolist() == [1 << 24, -1 << 24]


def test_only_sums_over_records_load_the_compiler():
    code = (
        "import sys, stillroom.cli.app, stillroom.private, stillroom.pipeline.release;"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
