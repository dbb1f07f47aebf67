"""Exact sums over the integer rows of a sketch: whole numbers under 2^53, in any order."""

from __future__ import annotations

import numpy as np

from stillroom.vocabulary import Integers


def cell_sums(rows: Integers, constant: int, cells: Integers, count: int) -> Integers:
    """The sum of [row, constant] in each cell."""
    member = np.zeros((count, len(rows)))
    member[cells, np.arange(len(rows))] = 1.0
    sums = member @ rows.astype(np.float64)
    counts = member.sum(axis=1, keepdims=True) * constant
    total: Integers = np.concatenate([sums, counts], axis=1).astype(np.int64)
    return total


def moment(rows: Integers) -> Integers:
    """The sum of row times row: below 2^53 for a block of 16-bit integers, so exact."""
    real = rows.astype(np.float64)
    product: Integers = (real.T @ real).astype(np.int64)
    return product


def nearest(rows: Integers, labels: Integers, centres: Integers) -> Integers:
    """The nearest centre of the record's own class, by exact distances; the first of equal ones."""
    classes, near, width = centres.shape
    flat = centres.reshape(classes * near, width)
    squares = np.einsum("ij,ij->i", flat, flat).astype(np.float64)
    away = squares - 2.0 * (rows.astype(np.float64) @ flat.T.astype(np.float64))
    own = away.reshape(len(rows), classes, near)[np.arange(len(rows)), labels]
    found: Integers = own.argmin(axis=1)
    return found
