"""Two products of integer rows, read where they lie: no copy of a batch, nothing in floats.

A library of matrix products copies and converts the chosen rows, then packs them anew for ten
columns: more work than the product. Here four rows meet two classes in one pass, so that each
number read is used more than once, and the compiler makes vectors of it.

Sums of 32 bits wrap around without harm: only where a sum ends must it fit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.extras import needed
from stillroom.vocabulary import Integers

with needed("numba", where="training", why="it compiles the sums over sensitive records"):
    from numba import njit

Shorts = npt.NDArray[np.int16]
Words = npt.NDArray[np.int32]
_word = np.int32  # in numba, the product of two of these is longer, and would fill twice the vector

CARRY = 512
"""Rows before sums move on to 64 bits: 512 * 4095 * 1024 < 2^31, so a sum of 32 bits holds them."""


@njit(cache=True, nogil=True)
def products(rows: Shorts, chosen: Integers, weights: Shorts) -> Words:
    """Each class's weights times each chosen row: one line per class, one column per chosen row.

    Assumes: every result fits 32 bits.
    """
    classes, width = weights.shape
    last, end = len(chosen) - 1, classes - 1
    out = np.empty((classes, len(chosen)), dtype=np.int32)
    for i in range(0, len(chosen), 4):
        # Past the end the last one is computed again, and written again.
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        x0, x1, x2, x3 = rows[chosen[i]], rows[chosen[i1]], rows[chosen[i2]], rows[chosen[i3]]
        for c in range(0, classes, 2):
            d = min(c + 1, end)
            v, w = weights[c], weights[d]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = _word(0)
            for j in range(width):
                p, q = _word(v[j]), _word(w[j])
                y0, y1, y2, y3 = _word(x0[j]), _word(x1[j]), _word(x2[j]), _word(x3[j])
                a0, b0 = _word(a0 + _word(p * y0)), _word(b0 + _word(q * y0))
                a1, b1 = _word(a1 + _word(p * y1)), _word(b1 + _word(q * y1))
                a2, b2 = _word(a2 + _word(p * y2)), _word(b2 + _word(q * y2))
                a3, b3 = _word(a3 + _word(p * y3)), _word(b3 + _word(q * y3))
            out[c, i], out[c, i1], out[c, i2], out[c, i3] = a0, a1, a2, a3
            out[d, i], out[d, i1], out[d, i2], out[d, i3] = b0, b1, b2, b3
    return out


def sums(rows: Shorts, chosen: Integers, factors: Integers) -> Integers:
    """The sum of the chosen rows, each times its factor: one line per class.

    Assumes: no feature beyond 1024 and no factor beyond 4095 in size, as `CARRY` needs.

    Args:
        rows: all rows.
        chosen: the positions of those that take part.
        factors: one line per class, one column per chosen row.
    """
    classes, size = factors.shape
    # Factors of zero fill up whole pairs of classes and fours of rows.
    padded = np.zeros((size + -size % 4, classes + classes % 2), dtype=np.int32)
    padded[:size, :classes] = factors.T
    places = np.zeros(len(padded), dtype=np.int64)
    places[:size] = chosen
    part = np.empty((padded.shape[1], rows.shape[1]), dtype=np.int32)
    total = np.zeros(part.shape, dtype=np.int64)
    for start in range(0, size, CARRY):
        block = slice(start, start + CARRY)
        part[:] = 0
        _add(part, rows, places[block], padded[block])
        total += part
    return total[:classes]


@njit(cache=True, nogil=True)
def _add(part: Words, rows: Shorts, places: Integers, factors: Words) -> None:
    classes, width = part.shape
    for i in range(0, len(places), 4):
        x0, x1 = rows[places[i]], rows[places[i + 1]]
        x2, x3 = rows[places[i + 2]], rows[places[i + 3]]
        f0, f1, f2, f3 = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        for c in range(0, classes, 2):
            s, t = part[c], part[c + 1]
            p0, p1, p2, p3 = f0[c], f1[c], f2[c], f3[c]
            q0, q1, q2, q3 = f0[c + 1], f1[c + 1], f2[c + 1], f3[c + 1]
            for j in range(width):
                y0, y1, y2, y3 = _word(x0[j]), _word(x1[j]), _word(x2[j]), _word(x3[j])
                a, b = _word(p0 * y0), _word(q0 * y0)
                a, b = _word(a + _word(p1 * y1)), _word(b + _word(q1 * y1))
                a, b = _word(a + _word(p2 * y2)), _word(b + _word(q2 * y2))
                a, b = _word(a + _word(p3 * y3)), _word(b + _word(q3 * y3))
                s[j], t[j] = _word(s[j] + a), _word(t[j] + b)
