"""The clipped gradient sum of a linear layer, in integers, without one per-example gradient.

The gradient of one record is an outer product: its residual times its feature row. So its norm is
the product of two norms, and a whole batch is clipped and summed by two matrix products (E1).
Feature rows are truncated to an integer grid once; the clipped residual is truncated to another;
their product is then an exact integer vector whose norm is known exactly.

One record's term must not depend on which others share its block. So the public weights are put on
a grid too, which makes every logit an exact integer in any order of summation, and what follows
works element by element, class after class.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, NumericalDoubt
from stillroom.vocabulary import (
    Bounded,
    Integers,
    Norm,
    Pair,
    Relation,
    SecretSample,
    Sensitivity,
    Unit,
)

FEATURE_BITS = 10
"""A row of norm 1 becomes one of norm 2^10: some thousand features keep a few bits each."""

RESIDUAL_BITS = 12
WEIGHT_BITS = 14
BLOCK = 256
"""Rows a block: it stays in the cache, and its sums stay below 2^24, exact in single precision."""

_HALF = 6
_SPLIT = 1 << _HALF


@dataclass(frozen=True)
class Clip:
    """The largest norm of one record's gradient, and the grid it is summed on.

    Args:
        norm: the clip, such as 0.5.
        normalise: scale every gradient to the clip instead of only the longer ones.
    """

    norm: Fraction
    normalise: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", Fraction(self.norm))
        if not 0 < self.norm <= 1:
            raise BadInput(
                f"the clip must lie in (0, 1], got {self.norm}",
                where="clip",
                why="rows have norm 1 and residuals at most 1.42, so a larger clip only adds noise",
                remedy="give a clip such as 0.5",
            )

    @property
    def steps(self) -> int:
        """The clip in grid units, rounded down."""
        return int(self.norm * (1 << (FEATURE_BITS + RESIDUAL_BITS)))

    @property
    def squared_norm(self) -> int:
        """What the gate is told: the square of the largest norm of one record's term."""
        return self.steps**2

    @property
    def unit(self) -> float:
        """One grid unit of the sum, as a gradient."""
        return 2.0 ** -(FEATURE_BITS + RESIDUAL_BITS)


class LinearRecords:
    """Sensitive records as integer feature rows, ready for clipped gradient sums.

    Guarantee: a record is its own row and label; nothing is computed over several records.
    Assumes: feature rows have a norm of at most 1 and depend on their own record only.

    Args:
        rows: feature rows, one a record.
        labels: the label of each record.
        classes: how many classes there are.

    Raises:
        BadInput: a row is longer than 1, or a feature is not a number.
    """

    def __init__(
        self, rows: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], classes: int
    ) -> None:
        if not np.isfinite(rows).all():
            raise BadInput(
                "a feature is not a finite number",
                where="features",
                why="it would spoil every sum it enters, and clipping cannot bound it",
                remedy="repair the records, or use other features",
            )
        self._rows: npt.NDArray[np.int16] = np.empty(rows.shape, dtype=np.int16)
        self._squares: Integers = np.empty(len(rows), dtype=np.int64)
        self._largest: Integers = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), BLOCK):  # by blocks: no second copy of all rows
            part = slice(start, start + BLOCK)
            grid = np.trunc(rows[part] * np.float32(1 << FEATURE_BITS))
            # What is too long for any integer must stay too long, and not wrap around.
            grid = np.clip(grid, -2 << FEATURE_BITS, 2 << FEATURE_BITS).astype(np.int64)
            self._rows[part] = grid
            self._squares[part] = np.einsum("ij,ij->i", grid, grid)
            self._largest[part] = np.abs(grid).max(axis=1, initial=0)
        if self._squares.max(initial=0) > 1 << (2 * FEATURE_BITS):
            raise BadInput(
                "a feature row is longer than 1",
                where="features",
                why="the clip is computed for rows of norm 1",
                remedy="normalise each row by itself",
            )
        self._labels = np.asarray(labels, dtype=np.int64)
        self.classes = classes

    @property
    def width(self) -> int:
        """Coordinates of a gradient: one weight a class and feature."""
        return self.classes * int(self._rows.shape[1])

    def __repr__(self) -> str:
        return f"LinearRecords(<hidden>, features={self._rows.shape[1]}, classes={self.classes})"

    def clipped_sum(
        self, weights: npt.NDArray[np.float32], clip: Clip, sample: SecretSample | None
    ) -> Bounded:
        """The sum of the sampled records' clipped gradients of the cross-entropy, in grid units.

        Args:
            weights: one row of weights a class; public.
            clip: the largest norm of one record's gradient.
            sample: which records take part; None for all.
        """
        chosen = np.arange(len(self._rows))
        if sample is not None:
            chosen = chosen[sample.open_secret(len(self._rows))]
        grid, unit = _on_grid(weights)
        total = np.zeros((self.classes, self._rows.shape[1]), dtype=np.float64)
        # Two buffers for all blocks: fresh memory costs more than the copy into it.
        short = np.empty((BLOCK, self._rows.shape[1]), dtype=np.int16)
        single = np.empty(short.shape, dtype=np.float32)
        for start in range(0, len(chosen), BLOCK):
            block = chosen[start : start + BLOCK]
            rows = single[: len(block)]
            # `chosen` is in range; the mode only spares numpy a copy of `out`.
            rows[...] = self._rows.take(block, axis=0, out=short[: len(block)], mode="clip")
            residuals = self._residuals(rows @ grid, unit, self._labels[block])
            integers = self._clipped(residuals, self._squares[block], clip)
            total += self._exact_product(integers, rows, self._largest[block])
        bounds = {Pair(Unit.RECORD, relation): Fraction(clip.squared_norm) for relation in Relation}
        proven = Sensitivity(Norm.CONTRIBUTION_SQUARED, bounds)
        return Bounded(total.astype(np.int64).reshape(1, -1), proven, sample)

    def guesses(self, weights: npt.NDArray[np.float32]) -> Integers:
        """The class the weights give to each record, by exact logits: no record sways another's."""
        grid, _ = _on_grid(weights)
        parts = [
            (self._rows[start : start + BLOCK].astype(np.float32) @ grid).argmax(axis=1)
            for start in range(0, len(self._rows), BLOCK)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    @staticmethod
    def _residuals(
        logits: npt.NDArray[np.float32], unit: float, labels: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Softmax minus the label: the gradient with respect to the logits, given in grid units."""
        # Class by class in memory: what follows then runs along the long axis, the records.
        columns = np.asfortranarray(logits, dtype=np.float64)
        shifted = np.exp((columns - columns.max(axis=1, keepdims=True)) * unit)
        shifted /= _sum_of_columns(shifted)[:, None]
        shifted[np.arange(len(labels)), labels] -= 1.0
        residuals: npt.NDArray[np.float64] = shifted
        return residuals

    @staticmethod
    def _clipped(residuals: npt.NDArray[np.float64], squares: Integers, clip: Clip) -> Integers:
        """Residuals on their grid, so that residual times row stays within the clip, exactly."""
        lengths = np.sqrt(_sum_of_columns(residuals * residuals) * squares)
        room = clip.steps / np.maximum(lengths * (1 << RESIDUAL_BITS), 1e-9)
        factor = room if clip.normalise else np.minimum(1.0, room)
        scaled = residuals * (factor * (1 << RESIDUAL_BITS))[:, None]
        # Twelve bits and a sign: what the exact product below can carry.
        integers: Integers = np.trunc(np.clip(scaled, 1 - _SPLIT**2, _SPLIT**2 - 1)).astype(
            np.int64
        )
        norms = (integers * integers).sum(axis=1) * squares
        # Truncation only shortens, so this refuses nothing unless arithmetic went wrong.
        integers[norms > clip.squared_norm] = 0
        return integers

    @staticmethod
    def _exact_product(
        residuals: Integers,
        rows: npt.NDArray[np.float32],
        largest: Integers | int = 1 << FEATURE_BITS,
    ) -> npt.NDArray[np.floating]:
        """Residuals times rows, exact in single precision: every partial sum is below 2^24.

        Mostly the product fits as it is. Where it may not, it is taken in two halves of six bits.

        Args:
            residuals: one row a record, integers.
            rows: feature rows, integers.
            largest: the largest absolute feature of each row.
        """
        whole = residuals.T
        if _fits(whole, largest):
            return whole.astype(np.float32) @ rows
        high = whole >> _HALF
        halves = np.concatenate([high, whole - (high << _HALF)])
        if not _fits(halves, largest):
            raise NumericalDoubt(
                "a block of gradients exceeds exact single precision",
                where="clipped sum",
                why="its sum would be rounded, and its sensitivity no longer known",
                remedy="use a smaller block",
            )
        product = halves.astype(np.float32) @ rows
        return product[: len(whole)].astype(np.float64) * _SPLIT + product[len(whole) :]


def _on_grid(weights: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], float]:
    """Weights as integers, a column a class, and what one unit of a logit is worth.

    Columns have a norm of at most 2^14 and rows of 2^10, so no sum of their products leaves 2^24
    (Cauchy-Schwarz), and single precision is exact.
    """
    longest = float(np.sqrt((weights.astype(np.float64) ** 2).sum(axis=1)).max(initial=0))
    scale = (1 << WEIGHT_BITS) * (1 - 2.0**-20) / longest if longest > 0 else 1.0
    grid = np.trunc(weights.T.astype(np.float64) * scale)
    if (grid * grid).sum(axis=0).max(initial=0) > 1 << (2 * WEIGHT_BITS):
        raise NumericalDoubt(
            "the weights do not fit their grid",
            where="clipped sum",
            why="a logit would be rounded, and one record's term could depend on another's",
            remedy="lower the learning rate",
        )
    return np.ascontiguousarray(grid, dtype=np.float32), 1 / (scale * (1 << FEATURE_BITS))


def _sum_of_columns(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Row sums in one fixed order: numpy's own depends on how many rows there are."""
    total = columns[:, 0].copy()
    for column in range(1, columns.shape[1]):
        total += columns[:, column]
    return total


def _fits(factors: Integers, largest: Integers | int) -> bool:
    """Whether no sum of factors times features, in any order, can leave exact single precision."""
    reach = np.abs(factors.astype(np.float64)) * largest
    return bool(reach.sum(axis=1).max(initial=0) <= 1 << 24)
