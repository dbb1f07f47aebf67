"""Weights as codes: a codebook per tensor by k-means, and residuals truncated to a few bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.public.k_means import centroids

Values = npt.NDArray[np.float32]
MOST_CODE_BITS = 8
MOST_RESIDUAL_BITS = 8
MOST_WEIGHTS = 1 << 24
"""Of a tensor that is coded: a reader decodes it at once."""
TOGETHER = 1 << 20


@dataclass(frozen=True, eq=False)
class Coded:
    """A tensor of which some weights are zero and the others are centroid and residual.

    Guarantee: `array` is a function of these numbers with one rounding per sum and product, so
    everyone who decodes them has the same bits.

    Args:
        kept: which weights are not pruned; in the tensor's shape.
        codes: the place in the codebook, for each kept weight in order.
        codebook: the centroids.
        residuals: for each kept weight, in steps; None where there are none.
        step: the size of a step, a number of float32.
        residual_bits: of a residual, its sign included.
    """

    kept: npt.NDArray[np.bool_]
    codes: npt.NDArray[np.uint8]
    codebook: Values
    residuals: npt.NDArray[np.int8] | None = None
    step: float = 0.0
    residual_bits: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor."""
        return self.kept.shape

    @property
    def code_bits(self) -> int:
        """Of a code."""
        return max(0, len(self.codebook) - 1).bit_length()

    def array(self) -> Values:
        """The tensor: zero, centroid, or centroid plus residual times step, in float32."""
        found = np.empty(len(self.codes), dtype=np.float32)
        for start in range(0, len(found), TOGETHER):
            some = slice(start, start + TOGETHER)
            found[some] = self.codebook[self.codes[some]]
            if self.residuals is not None:
                found[some] += self.residuals[some].astype(np.float32) * np.float32(self.step)
        whole = np.zeros(self.shape, dtype=np.float32)
        whole[self.kept] = found
        return whole

    def transposed(self) -> Coded:
        """The same of the tensor with its axes reversed."""
        place = np.zeros(self.shape, dtype=np.int64)
        place[self.kept] = np.arange(len(self.codes))
        kept = np.ascontiguousarray(self.kept.T)
        order = place.T[kept]
        residuals = None if self.residuals is None else self.residuals[order]
        return Coded(
            kept, self.codes[order], self.codebook, residuals, self.step, self.residual_bits
        )


def coded(
    weights: npt.NDArray[Any],
    kept: npt.NDArray[np.bool_],
    codebook_bits: int,
    residual_bits: int,
) -> Coded:
    """A tensor's kept weights as codes of a codebook of their own, and residuals.

    A residual is what the centroid leaves of a weight. It is truncated towards zero on a grid of
    2^(residual_bits - 1) steps up to the largest one of the tensor; one bit is its sign. So no bits
    and one bit come to the same: there are no residuals.

    Args:
        weights: the tensor.
        kept: which of its weights are not pruned.
        codebook_bits: of a code, 1 to 8; the codebook has at most 2^codebook_bits centroids.
        residual_bits: of a residual, 0 to 8.

    Raises:
        BadInput: the bits are out of range, or a weight is not a finite number.

    >>> four = np.array([[1.0, 0.0], [1.5, -2.0]], dtype=np.float32)
    >>> coded(four, four != 0, codebook_bits=1, residual_bits=0).array().tolist()
    [[1.25, 0.0], [1.25, -2.0]]
    >>> coded(four, four != 0, codebook_bits=1, residual_bits=8).array().tolist()
    [[1.001953125, 0.0], [1.498046875, -2.0]]

    Reference: Mao et al. 2021, Section 4.3.
    """
    if not 1 <= codebook_bits <= MOST_CODE_BITS or not 0 <= residual_bits <= MOST_RESIDUAL_BITS:
        raise _unfit("the bits of codes or residuals are out of range", "use 1 to 8, and 0 to 8")
    values = np.asarray(weights, dtype=np.float32)[kept]
    if not np.isfinite(values).all():
        raise _unfit("a weight is not a finite number", "lower the learning rate")
    book = centroids(values, 2**codebook_bits)
    codes = _nearest(book, values.astype(np.float64)).astype(np.uint8)
    plain = Coded(kept, codes, book)
    if residual_bits < 2:
        return plain
    left = values.astype(np.float64) - book[codes]
    steps = 2 ** (residual_bits - 1)
    step = float(np.float32(np.abs(left).max(initial=0.0) / steps))
    if step == 0:
        return plain
    residuals = np.clip(np.trunc(left / step), 1 - steps, steps - 1).astype(np.int8)
    if not residuals.any():
        return plain
    return Coded(kept, codes, book, residuals, step, residual_bits)


def _nearest(book: Values, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    wide = book.astype(np.float64)
    return np.searchsorted((wide[1:] + wide[:-1]) / 2, values)


def _unfit(what: str, remedy: str) -> BadInput:
    return BadInput(
        what, where="compression", why="weights could not be decoded again", remedy=remedy
    )
