"""The reader of MATLAB arrays agrees with scipy's on sound files, in both byte orders."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.io import loadmat, savemat

from stillroom.data.matlab import mat_arrays

KINDS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
ARRAYS = st.sampled_from(KINDS).flatmap(
    lambda kind: npst.arrays(kind, npst.array_shapes(min_dims=2, max_dims=4, max_side=3))
)


def saved(compressed: bool = False, **arrays: object) -> bytes:
    kept = io.BytesIO()
    savemat(kept, arrays, do_compression=compressed)
    return kept.getvalue()


@given(x=ARRAYS, y=ARRAYS, compressed=st.booleans())
def test_sound_files_are_read_as_scipy_reads_them(
    x: np.ndarray, y: np.ndarray, compressed: bool
) -> None:
    others = {"note": "text", "cells": np.array([1, "a"], dtype=object), "struct": {"X": x}}
    content = saved(compressed, first=others["note"], X=x, **others, long_name_of_an_array=y)
    read = mat_arrays(content, ("X", "long_name_of_an_array", "absent"))
    expected = loadmat(io.BytesIO(content))
    assert set(read) == {"X", "long_name_of_an_array"}
    for name, values in read.items():
        assert values.dtype == expected[name].dtype
        assert values.dtype.isnative
        assert np.array_equal(values, expected[name], equal_nan=values.dtype.kind == "f")


def test_the_other_byte_order() -> None:
    def element(kind: int, body: bytes) -> bytes:
        return struct.pack(">II", kind, len(body)) + body.ljust(-len(body) // 8 * -8, b"\0")

    numbers = struct.pack(">4h", 1, -2, 300, 4)
    parts = element(6, struct.pack(">II", 10, 0)) + element(5, struct.pack(">ii", 2, 2))
    matrix = element(14, parts + struct.pack(">HH4s", 1, 1, b"X") + element(3, numbers))
    content = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI" + matrix
    assert np.array_equal(loadmat(io.BytesIO(content))["X"], [[1, 300], [-2, 4]])
    assert mat_arrays(content, ("X",))["X"].tolist() == [[1, 300], [-2, 4]]


@pytest.mark.parametrize("value", [np.eye(2) * 1j, "text", np.array([1, "a"], dtype=object)])
def test_what_is_no_array_of_real_numbers(value: object) -> None:
    with pytest.raises((ValueError, KeyError)):
        mat_arrays(saved(X=value), ("X",))


def test_no_changed_byte_ends_the_process_or_takes_memory() -> None:
    whole = saved(X=np.zeros((2, 2, 3, 2), dtype=np.uint8), y=[[10], [1]])
    for place in range(128, len(whole)):
        for byte in (0, 1, 7, 8, 14, 15, 0x7F, 0x80, 0xFF):
            content = whole[:place] + bytes([byte]) + whole[place + 1 :]
            try:
                read = mat_arrays(content, ("X", "y"))
            except (ValueError, KeyError, struct.error, zlib.error):
                continue
            assert sum(array.nbytes for array in read.values()) <= len(whole)
