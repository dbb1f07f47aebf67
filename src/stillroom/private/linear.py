"""The clipped gradient sum of a linear layer, in integers, without one per-example gradient.

The gradient of one record is an outer product: its residual times its feature row. So its norm is
the product of two norms, and a whole batch is clipped and summed by two matrix products (E1).
Feature rows are truncated to an integer grid once; the clipped residual is truncated to another;
their product is then an exact integer vector whose norm is known exactly.

One record's term must not depend on which others share its block. So the public weights are put on
a grid too, which makes every logit an exact integer in any order of summation, and what follows
works element by element, class after class. Arrays hold one line per class: the records, the long
axis, then lie side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, NumericalDoubt
from stillroom.private.class_weights import weight_per_class
from stillroom.private.quantise import clip_to_ball, one_term, squared_norms
from stillroom.vocabulary import Bounded, Integers, SecretSample, Unit

FEATURE_BITS = 10
"""A row of norm 1 becomes one of norm 2^10: some thousand features keep a few bits each."""

RESIDUAL_BITS = 12
WEIGHT_BITS = 14
LARGEST_RESIDUAL = (1 << RESIDUAL_BITS) - 1
"""In grid units; what the exact sum can carry."""

BLOCK = 512
"""Records at a time: their rows stay in the cache, and there is no second copy of all of them."""


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

    Guarantee: a record is its own row and label; nothing is computed over several records. A row
    that is longer than 1 is shortened and one that is not finite is blank, whose gradient is zero:
    nothing is refused or told, since that would tell of the record (K10).
    Assumes: feature rows depend on their own record only.

    Args:
        rows: feature rows, one per record.
        labels: the label of each record.
        classes: how many classes there are.
        class_weights: what a record's gradient is multiplied by before it is clipped, by its class;
            public numbers up to 1. The clip bounds what comes out, so they change no guarantee.

    Raises:
        BadInput: there is not one weight in (0, 1] for each class.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        classes: int,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        self._rows: npt.NDArray[np.int16] = np.empty(rows.shape, dtype=np.int16)
        self._squares: Integers = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            self._rows[part], self._squares[part] = _rows_on_grid(rows[part])
        self._labels = np.asarray(labels, dtype=np.int64)
        self.classes = classes
        self._weight = weight_per_class(class_weights, classes)[self._labels]

    @property
    def width(self) -> int:
        """Coordinates of a gradient: one weight per class and feature."""
        return self.classes * int(self._rows.shape[1])

    def __repr__(self) -> str:
        return f"LinearRecords(<hidden>, features={self._rows.shape[1]}, classes={self.classes})"

    def clipped_sum(
        self, weights: npt.NDArray[np.float32], clip: Clip, sample: SecretSample | None
    ) -> Bounded:
        """The sum of the sampled records' clipped gradients of the cross-entropy, in grid units.

        Args:
            weights: one row of weights per class; public.
            clip: the largest norm of one record's gradient.
            sample: which records take part; None for all.
        """
        from stillroom.private import kernels  # here: whoever trains nothing needs no compiler

        chosen = np.arange(len(self._rows))
        if sample is not None:
            chosen = chosen[sample.open_secret(len(self._rows))]
        grid, unit = _on_grid(weights)
        total = np.zeros((self.classes, self._rows.shape[1]), dtype=np.int64)
        for start in range(0, len(chosen), BLOCK):
            block = chosen[start : start + BLOCK]
            logits = kernels.products(self._rows, block, grid)
            residuals = self._residuals(logits, unit, self._labels[block])
            residuals *= self._weight[block]
            total += kernels.sums(
                self._rows, block, self._clipped(residuals, self._squares[block], clip)
            )
        return Bounded(total.reshape(1, -1), one_term(clip.squared_norm, Unit.RECORD), sample)

    def guesses(self, weights: npt.NDArray[np.float32]) -> Integers:
        """The class the weights give to each record, by exact logits: no record sways another's."""
        from stillroom.private import kernels

        grid, _ = _on_grid(weights)
        logits = kernels.products(self._rows, np.arange(len(self._rows)), grid)
        best: Integers = logits.argmax(axis=0)
        return best

    @staticmethod
    def _residuals(
        logits: npt.NDArray[np.int32], unit: float, labels: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Softmax minus the label: the gradient with respect to the logits, given in grid units."""
        residuals: npt.NDArray[np.float64] = np.exp((logits - logits.max(axis=0)) * unit)
        residuals /= _sum_of_lines(residuals)
        residuals[labels, np.arange(len(labels))] -= 1.0
        return residuals

    @staticmethod
    def _clipped(residuals: npt.NDArray[np.float64], squares: Integers, clip: Clip) -> Integers:
        """Residuals on their grid, so that residual times row stays within the clip, exactly.

        Not `clip_to_ball`: the ball is that of the outer product, which is never made; its norm is
        the product of two norms that are known in integers.
        """
        lengths = np.sqrt(_sum_of_lines(residuals * residuals) * squares)
        room = clip.steps / np.maximum(lengths * (1 << RESIDUAL_BITS), 1e-9)
        factor = room if clip.normalise else np.minimum(1.0, room)
        scaled = residuals * (factor * (1 << RESIDUAL_BITS))
        limited = np.clip(scaled, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        integers: Integers = limited.astype(np.int64)  # truncates
        norms = (integers * integers).sum(axis=0) * squares
        # Truncation only shortens, so this refuses nothing unless arithmetic went wrong.
        integers[:, norms > clip.squared_norm] = 0
        return integers


def _rows_on_grid(rows: npt.NDArray[np.float32]) -> tuple[Integers, Integers]:
    """Rows as integers of norm 2^10 at most, and the squares of their norms."""
    grid = clip_to_ball(rows.astype(np.float64) * (1 << FEATURE_BITS), 1 << FEATURE_BITS)
    return grid, squared_norms(grid)


def _on_grid(weights: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int16], float]:
    """Weights as integers, and what one unit of a logit is worth.

    A class has a norm of at most 2^14 and rows of 2^10, so no sum of their products leaves 2^24
    (Cauchy-Schwarz), and 32 bits are exact.
    """
    longest = float(np.sqrt((weights.astype(np.float64) ** 2).sum(axis=1)).max(initial=0))
    scale = (1 << WEIGHT_BITS) * (1 - 2.0**-20) / longest if longest > 0 else 1.0
    grid = np.trunc(weights.astype(np.float64) * scale)
    # Not the other way round: a NaN must be refused too.
    if not (grid * grid).sum(axis=1).max(initial=0) <= 1 << (2 * WEIGHT_BITS):
        raise NumericalDoubt(
            "the weights do not fit their grid",
            where="clipped sum",
            why="a logit would be rounded, and one record's term could depend on another's",
            remedy="lower the learning rate",
        )
    return grid.astype(np.int16, order="C"), 1 / (scale * (1 << FEATURE_BITS))


def _sum_of_lines(lines: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Column sums in one fixed order: numpy's own depends on how many columns there are."""
    total: npt.NDArray[np.float64] = lines[0].copy()
    for line in lines[1:]:
        total += line
    return total
