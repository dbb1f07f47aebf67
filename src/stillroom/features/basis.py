"""Public bases: the low frequencies of a picture, and the triangle of a symmetric matrix.

Both are fixed beforehand and fitted on nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers

Reals = npt.NDArray[np.float64]

DIAGONAL = 29
OFF_DIAGONAL = 41
"""41^2 = 2 * 29^2 - 1: the best whole numbers below the ratio 1 : sqrt(2), so that a triangle is
never longer than 29 times its matrix, and nothing needs to be truncated after scaling (K4)."""

_COLOURS = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Brightness, red against blue, green against both: orthonormal."""


@dataclass(frozen=True)
class Basis:
    """The first coefficients of the orthonormal cosine transform, by rising i^2 + j^2.

    Colour pictures have three planes, by an orthonormal transform: brightness first, then red
    against blue and green against both, of which the eye and most pictures need less.

    Args:
        height: rows of a picture.
        width: columns of a picture.
        count: how many coefficients are kept.
        chroma: how many of these are of each of the two planes of colour; 0 for grey pictures.

    Raises:
        BadInput: a picture has fewer coefficients than that, or none.

    >>> basis = Basis(4, 4, 16)
    >>> picture = np.arange(16.0).reshape(1, 4, 4)
    >>> bool(np.allclose(basis.inverse(picture.reshape(1, 16) @ basis.matrix.T), picture))
    True
    """

    height: int
    width: int
    count: int
    chroma: int = 0

    def __post_init__(self) -> None:
        pixels, bright = self.height * self.width, self.count - 2 * self.chroma
        if min(self.height, self.width) < 1 or not (
            1 <= bright <= pixels and 0 <= self.chroma <= pixels
        ):
            raise BadInput(
                f"{self.count} coefficients of a {self.height}x{self.width} picture, "
                f"{self.chroma} of each colour, do not exist",
                where="basis",
                why="a plane of a picture has as many coefficients as pixels, and brightness needs "
                "at least one",
                remedy="keep at least one and at most height times width per plane",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture: (height, width), or (height, width, 3) in colour."""
        return (self.height, self.width, 3) if self.chroma else (self.height, self.width)

    @property
    def matrix(self) -> Reals:
        """One orthonormal row per coefficient, one column per number of a picture; read-only."""
        return _matrix(self.height, self.width, self.count, self.chroma)

    def inverse(self, coefficients: Reals) -> Reals:
        """The pictures that have these coefficients, and nothing in the frequencies above."""
        pictures: Reals = coefficients @ self.matrix
        return pictures.reshape(len(coefficients), *self.shape)


@lru_cache(maxsize=16)
def _matrix(height: int, width: int, count: int, chroma: int) -> Reals:
    matrix = _plane(height, width, count - 2 * chroma)
    if chroma:
        planes = [matrix, *[_plane(height, width, chroma)] * 2]
        coloured = [
            (plane[:, :, None] * colour).reshape(len(plane), -1)
            for plane, colour in zip(planes, _COLOURS, strict=True)
        ]
        matrix = np.concatenate(coloured)
    matrix.flags.writeable = False
    return matrix


def _plane(height: int, width: int, count: int) -> Reals:
    i, j = np.divmod(np.arange(height * width), width)
    first = np.argsort(i * i + j * j, kind="stable")[:count]
    rows = np.einsum("cy,cx->cyx", _waves(height)[i[first]], _waves(width)[j[first]])
    plane: Reals = rows.reshape(count, height * width)
    return plane


def _waves(size: int) -> Reals:
    """The orthonormal cosine transform (DCT-II) of one axis, one row per frequency."""
    frequency, place = np.mgrid[:size, :size]
    waves: Reals = np.cos(np.pi * frequency * (2 * place + 1) / (2 * size)) * np.sqrt(2 / size)
    waves[0] = np.sqrt(1 / size)
    return waves


def triangle(matrices: Integers) -> Integers:
    """The upper triangles of symmetric integer matrices, scaled to keep their lengths.

    Guarantee: exact, linear, and never longer than 29 times the matrix (Frobenius norm).

    >>> triangle(np.array([[1, 2], [2, 3]])).tolist()
    [29, 82, 87]
    """
    row, column = np.triu_indices(matrices.shape[-1])
    scaled: Integers = matrices[..., row, column] * _scales(row, column)
    return scaled


def matrix_of(triangles: npt.NDArray[np.int64] | Reals) -> Reals:
    """The symmetric matrices that have these triangles.

    >>> matrix_of(np.array([29, 82, 87])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    size = int(np.sqrt(2 * triangles.shape[-1]))
    row, column = np.triu_indices(size)
    matrices = np.zeros((*triangles.shape[:-1], size, size))
    matrices[..., row, column] = triangles / _scales(row, column)
    matrices[..., column, row] = matrices[..., row, column]
    return matrices


def _scales(row: Integers, column: Integers) -> Integers:
    return np.where(row == column, DIAGONAL, OFF_DIAGONAL)
