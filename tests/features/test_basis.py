"""The public bases: orthonormal, in order, and a triangle that is never too long."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dctn

from stillroom.errors import BadInput
from stillroom.features import basis as module
from stillroom.features.basis import Basis, matrix_of, triangle


@pytest.mark.parametrize(("height", "width", "count"), [(8, 8, 64), (5, 7, 20), (28, 28, 196)])
def test_rows_are_orthonormal_and_the_first_by_frequency(height, width, count):
    matrix = Basis(height, width, count).matrix
    assert matrix @ matrix.T == pytest.approx(np.eye(count), abs=1e-12)
    picture = np.random.default_rng(1).normal(size=(height, width))
    every = dctn(picture, norm="ortho")
    radius = np.add.outer(np.arange(height) ** 2, np.arange(width) ** 2)
    order = np.argsort(radius.ravel(), kind="stable")[:count]
    assert matrix @ picture.ravel() == pytest.approx(every.ravel()[order])
    assert radius.ravel()[order].max() <= np.sort(radius.ravel())[count - 1]


def test_the_inverse_gives_low_pictures_back():
    basis = Basis(6, 9, 12)
    coefficients = np.random.default_rng(2).normal(size=(3, 12))
    pictures = basis.inverse(coefficients)
    assert pictures.shape == (3, 6, 9)
    assert pictures.reshape(3, -1) @ basis.matrix.T == pytest.approx(coefficients)


def test_a_basis_of_colour_is_orthonormal_and_splits_brightness_off():
    basis = Basis(5, 6, 24, chroma=7)
    assert basis.shape == (5, 6, 3)
    assert basis.matrix @ basis.matrix.T == pytest.approx(np.eye(24), abs=1e-12)
    coefficients = np.random.default_rng(3).normal(size=(4, 24))
    pictures = basis.inverse(coefficients)
    assert pictures.shape == (4, 5, 6, 3)
    assert pictures.reshape(4, -1) @ basis.matrix.T == pytest.approx(coefficients)
    grey = np.random.default_rng(4).normal(size=(5, 6, 1)).repeat(3, axis=2)
    found = basis.matrix @ grey.ravel()
    assert found[10:] == pytest.approx(0, abs=1e-12)
    assert found[:10] == pytest.approx(Basis(5, 6, 10).matrix @ grey[..., 0].ravel() * 3**0.5)


@pytest.mark.parametrize("numbers", [(4, 4, 0), (4, 4, 17), (0, 4, 1), (4, 4, 8, 4), (4, 4, 2, -1)])
def test_coefficients_that_do_not_exist(numbers):
    with pytest.raises(BadInput, match="do not exist"):
        Basis(*numbers)


def test_the_shared_matrix_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        Basis(4, 4, 4).matrix[0, 0] = 1


def excess(row):
    """How far the triangle of row times row is longer than allowed, squared, in whole numbers."""
    vector = triangle(np.outer(row, row)).astype(object)
    return int((vector**2).sum()) - (module.DIAGONAL * int((row.astype(object) ** 2).sum())) ** 2


@settings(max_examples=50)
@given(st.lists(st.integers(-30000, 30000), min_size=1, max_size=12))
def test_a_triangle_is_never_longer_than_its_matrix(numbers):
    row = np.array(numbers)
    assert excess(row) <= 0
    # ... and hardly shorter, or the noise would be wasted.
    allowed = (module.DIAGONAL * int((row.astype(object) ** 2).sum())) ** 2
    assert -excess(row) * 2 * module.DIAGONAL**2 <= allowed


def test_a_ratio_above_the_root_of_two_would_be_found(monkeypatch):
    monkeypatch.setattr(module, "DIAGONAL", 12)
    monkeypatch.setattr(module, "OFF_DIAGONAL", 17)
    assert excess(np.array([50, 50, 50])) > 0


def test_truncating_before_scaling_would_be_found():
    """K4: products on the grid first, then sqrt(2) rounded to the grid again: too long."""
    row = np.full(7, 1)
    first, second = np.triu_indices(7)
    scale = np.where(first == second, 1.0, np.sqrt(2))
    truncated = np.trunc(row[first] * row[second])
    twin = np.ceil(truncated * scale).astype(np.int64)
    assert int((twin**2).sum()) > int((row**2).sum()) ** 2
    assert excess(row) <= 0


def test_a_triangle_goes_back():
    rng = np.random.default_rng(3)
    matrices = rng.integers(-1000, 1000, size=(4, 6, 6))
    matrices = matrices + matrices.transpose(0, 2, 1)
    assert matrix_of(triangle(matrices)) == pytest.approx(matrices)
