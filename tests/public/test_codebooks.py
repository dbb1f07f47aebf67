"""Codes decode to the same bits, and lose no more than a step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stillroom.errors import BadInput
from stillroom.public.codebooks import coded
from stillroom.randomness import normals, uniforms

SHAPES = arrays.array_shapes(min_dims=2, max_dims=4, max_side=6)
WEIGHTS = SHAPES.flatmap(
    lambda shape: st.tuples(
        arrays.arrays(np.float32, shape, elements=st.floats(-1e3, 1e3, width=32)),
        arrays.arrays(np.bool_, shape),
    )
)


@settings(max_examples=40)
@given(WEIGHTS, st.integers(1, 8), st.integers(0, 8))
def test_a_tensor_is_zero_centroid_or_centroid_and_residual(given_, codebook_bits, residual_bits):
    weights, kept = given_
    code = coded(weights, kept, codebook_bits, residual_bits)
    whole = code.array()
    assert whole.dtype == np.float32
    assert whole.shape == weights.shape == code.shape
    assert not whole[~kept].any()
    assert len(code.codebook) <= 2**codebook_bits
    assert code.code_bits <= codebook_bits
    assert len(code.codes) == kept.sum()
    centres = code.codebook[code.codes].astype(np.float64)
    if code.residuals is None:
        assert np.array_equal(whole[kept], centres)
        return
    assert np.abs(code.residuals.astype(int)).max() < 2 ** (residual_bits - 1)
    # Truncated: never farther from the centroid than the weight, never on its other side.
    told, true = code.residuals.astype(np.float64), weights[kept] - centres
    assert (told * true >= 0).all()
    assert (np.abs(told) * code.step <= np.abs(true) * (1 + 1e-6)).all()
    room = float(code.step) * (1 + 1e-5) + np.abs(weights[kept]).max() * 2e-7
    assert (np.abs(whole[kept] - weights[kept]) <= room).all()


@settings(max_examples=40)
@given(WEIGHTS, st.integers(1, 4), st.integers(0, 4))
def test_a_transposed_code_is_that_of_the_transposed_tensor(given_, codebook_bits, residual_bits):
    code = coded(*given_, codebook_bits, residual_bits)
    assert code.transposed().array().tobytes() == np.ascontiguousarray(code.array().T).tobytes()


def test_more_bits_are_closer():
    weights = normals(4, "w", size=(40, 50)).astype(np.float32)
    kept = uniforms(4, "kept", size=weights.shape) < 0.7

    def lost(codebook_bits, residual_bits):
        code = coded(weights, kept, codebook_bits, residual_bits)
        return float(((code.array() - weights)[kept].astype(np.float64) ** 2).mean())

    by_codes = [lost(bits, 0) for bits in range(1, 9)]
    by_residuals = [lost(3, bits) for bits in range(1, 9)]
    assert sorted(by_codes, reverse=True) == by_codes
    assert sorted(by_residuals, reverse=True) == by_residuals
    assert lost(3, 0) == lost(3, 1)


def test_a_tensor_of_which_nothing_is_kept_is_zero():
    code = coded(np.ones((3, 4), np.float32), np.zeros((3, 4), bool), 4, 4)
    assert not code.array().any()
    assert (len(code.codebook), code.code_bits, code.residuals) == (0, 0, None)


@pytest.mark.parametrize(("codebook_bits", "residual_bits"), [(0, 0), (9, 0), (4, -1), (4, 9)])
def test_bits_out_of_range_are_refused(codebook_bits, residual_bits):
    with pytest.raises(BadInput, match="out of range"):
        coded(np.ones((2, 2), np.float32), np.ones((2, 2), bool), codebook_bits, residual_bits)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(odd):
    with pytest.raises(BadInput, match="finite"):
        coded(np.full((2, 2), odd), np.ones((2, 2), bool), 4, 4)
