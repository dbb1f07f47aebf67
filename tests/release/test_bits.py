"""Numbers of a few bits come back from their bytes, and take no more than their bits."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.randomness import integers
from stillroom.release import bits as module
from stillroom.release.bits import pack, packed_size, unpack


@pytest.mark.parametrize("bits", range(1, 33))
def test_every_width_comes_back(bits, monkeypatch):
    monkeypatch.setattr(module, "_TOGETHER", 16)
    for count in (0, 1, 7, 8, 16, 17, 99):
        numbers = integers(1, "numbers", bits, size=count, below=2**bits)
        packed = pack(numbers, bits)
        assert packed.dtype == np.uint8
        assert len(packed) == packed_size(count, bits) == -(-count * bits // 8)
        found = unpack(packed, bits, count)
        assert found.dtype.itemsize == (1 if bits <= 8 else 4)
        assert np.array_equal(found, numbers)


def test_the_lowest_bit_comes_first():
    assert pack(np.array([1, 0, 1, 1]), 1).tolist() == [0b1101]
    assert pack(np.array([0xA, 0xB]), 4).tolist() == [0xBA]


def test_numbers_of_no_bits_are_zero():
    assert unpack(np.zeros(0, np.uint8), 0, 3).tolist() == [0, 0, 0]
