"""Class statistics in a public basis, in integers: sums, second moments, clusters.

Every release is a sum over the records of one integer vector each, whose norm is bounded exactly.
One record's vector must not depend on which others share its block. So pixels, basis, means,
directions and centres are all put on integer grids: every product below is a sum of whole numbers
under 2^53, exact in any order of summation, and the rest works element by element.

After a public centre is subtracted the rest is clipped again (K4). A second moment is the exact
product of a clipped integer vector with itself, and its triangle is scaled by whole numbers.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features.basis import OFF_DIAGONAL, Basis, Reals, triangle
from stillroom.private.persons import capped
from stillroom.private.quantise import clip_to_ball, one_term
from stillroom.private.sealed import Records, opened
from stillroom.private.sketch_clip import LARGEST_STEPS, SketchClip
from stillroom.private.sketch_sums import cell_sums, moment, nearest
from stillroom.vocabulary import Bounded, Integers, Unit

PIXEL_STEPS = 4080
"""Grey levels from black to white: a multiple of 255 and of 16, so usual pictures fit exactly."""

BASIS_BITS = 24
DIRECTION_BITS = 20
BLOCK = 1024

_LARGEST_PICTURE = 2**16
_LARGEST_SUM = 2**61


class SketchRecords:
    """Sensitive pictures as clipped integer coefficients, ready for noisy class statistics.

    Guarantee: a record is its own row and label; every sum has one term per record, within its
    bound in whole numbers. For one record, or one person with at most `most` of them, whose terms
    together are at most `most` times as long, in one cell or in many. Added, removed or changed.
    Assumes: basis, full scale, clip and the number of classes were fixed without the records.

    Args:
        pictures: one picture per record, (records, height, width), or with 3 colours behind.
        labels: the class of each record.
        classes: how many classes there are.
        basis: the public basis.
        full_scale: the value of white; values beyond black and white are cut off.
        clip: the radii and the grid.
        unit: who is protected.
        most: how many records one unit has at most; public.

    Raises:
        BadInput: the records are no pictures of the basis, or a value or label cannot be used.
    """

    def __init__(
        self,
        pictures: npt.NDArray[Any],
        labels: npt.NDArray[np.int64],
        classes: int,
        *,
        basis: Basis,
        full_scale: float,
        clip: SketchClip,
        unit: Unit = Unit.RECORD,
        most: int = 1,
    ) -> None:
        _check(pictures, labels, classes, basis, full_scale)
        if len(pictures) * OFF_DIAGONAL * LARGEST_STEPS**2 > _LARGEST_SUM:
            raise NumericalDoubt(
                "there are too many records for exact sums",
                where="sketch",
                why="a sum could wrap around 64-bit integers",
                remedy="sketch a part of the records",
            )
        self.classes = classes
        self.basis = basis
        self.clip = clip
        self._unit, self._most = unit, most
        self._labels = np.asarray(labels, dtype=np.int64)
        self._rows: npt.NDArray[np.int16] = np.empty((len(pictures), basis.count), dtype=np.int16)
        waves = np.rint(basis.matrix.T * (1 << BASIS_BITS))
        steps = clip.grid / (PIXEL_STEPS * (1 << BASIS_BITS))
        for part in self._blocks():
            grey = np.clip(pictures[part].reshape(-1, len(waves)) / full_scale, 0.0, 1.0)
            exact = np.rint(grey * PIXEL_STEPS) @ waves
            self._rows[part] = clip_to_ball(np.trunc(exact * steps), clip.radius_steps)

    def __repr__(self) -> str:
        return f"SketchRecords(<hidden>, basis={self.basis.count}, classes={self.classes})"

    def class_sums(self) -> Bounded:
        """Of each class the sum of the coefficients and, in units of the radius, the count."""
        total = np.zeros((self.classes, self.basis.count + 1), dtype=np.int64)
        for part in self._blocks():
            rows = self._rows[part].astype(np.int64)
            total += cell_sums(rows, self.clip.radius_steps, self._labels[part], self.classes)
        return self._bounded(total, self.clip.squared_class_sum)

    def second_moment(self, means: Reals) -> Bounded:
        """The triangle of the second moment of all residuals around their class's public mean.

        Args:
            means: one row of coefficients per class.
        """
        total = np.zeros((self.basis.count, self.basis.count), dtype=np.int64)
        centres = self._on_grid(means)
        for part in self._blocks():
            residuals = self._rows[part].astype(np.int64) - centres[self._labels[part]]
            total += moment(clip_to_ball(residuals, self.clip.residual_steps))
        return self._bounded(triangle(total), self.clip.squared_moment)

    def cluster_sums(
        self, means: Reals, directions: Reals, centres: Reals, length: float = 1.0
    ) -> Bounded:
        """Of each class and nearest centre the sum of the projected residuals, and the count.

        Args:
            means: one row of coefficients per class.
            directions: one column of coefficients per direction, none beyond 1.
            centres: (classes, centres, directions), around the mean of the class.
            length: by which projections are divided; public.
        """
        near = centres.shape[1]
        total = np.zeros((self.classes * near, directions.shape[1] + 1), dtype=np.int64)
        grid = self._on_grid(centres)
        for part in self._blocks():
            labels = self._labels[part]
            rows = self._projected(part, means, directions, length)
            cells = labels * near + nearest(rows, labels, grid)
            total += cell_sums(rows, self.clip.cluster_steps, cells, self.classes * near)
        return self._bounded(total, self.clip.squared_cluster_sum)

    def cluster_moments(
        self, means: Reals, directions: Reals, centres: Reals, length: float = 1.0
    ) -> Bounded:
        """Of each class the triangle of the second moment around the nearest centre.

        Args:
            means: one row of coefficients per class.
            directions: one column of coefficients per direction, none beyond 1.
            centres: (classes, centres, directions), around the mean of the class.
            length: by which projections are divided; public.
        """
        size = directions.shape[1]
        total = np.zeros((self.classes, size, size), dtype=np.int64)
        grid = self._on_grid(centres)
        for part in self._blocks():
            labels = self._labels[part]
            rows = self._projected(part, means, directions, length)
            away = rows - grid[labels, nearest(rows, labels, grid)]
            away = clip_to_ball(away, self.clip.cluster_steps)
            for which in range(self.classes):
                total[which] += moment(away[labels == which])
        return self._bounded(triangle(total), self.clip.squared_cluster_moment)

    def _blocks(self) -> list[slice]:
        return [slice(start, start + BLOCK) for start in range(0, len(self._rows), BLOCK)]

    def _on_grid(self, public: Reals) -> Integers:
        """Public coefficients in grid units, none beyond what a record can have."""
        scaled = np.nan_to_num(np.rint(public * self.clip.grid))
        limited: Integers = np.clip(scaled, -LARGEST_STEPS, LARGEST_STEPS).astype(np.int64)
        return limited

    def _projected(self, part: slice, means: Reals, directions: Reals, length: float) -> Integers:
        """Residuals along public directions, clipped after the projection: it may stretch a bit."""
        residuals = self._rows[part] - self._on_grid(means)[self._labels[part]]
        axes = np.rint(np.clip(np.nan_to_num(directions), -1, 1) * (1 << DIRECTION_BITS))
        exact = residuals.astype(np.float64) @ axes
        whole = np.trunc(exact / ((1 << DIRECTION_BITS) * length))
        return clip_to_ball(whole, self.clip.cluster_steps)

    def _bounded(self, total: Integers, squared_norm: int) -> Bounded:
        return Bounded(total.reshape(1, -1), one_term(squared_norm * self._most**2, self._unit))


def sketch_records(
    records: Records,
    *,
    basis: Basis,
    full_scale: float,
    clip: SketchClip,
    unit: Unit = Unit.RECORD,
    max_records_per_person: int = 1,
) -> SketchRecords:
    """Sealed pictures on the basis and grid of a sketch; see `SketchRecords`.

    Of a person with more records than the cap, the surplus is left out by hash.

    Raises:
        BadInput: as there; or persons are to be protected, and the records name none.
    """
    most = max_records_per_person if unit is Unit.PERSON else 1
    data = opened(records if unit is Unit.RECORD else capped(records, most))
    return SketchRecords(
        data.x,
        data.y,
        len(data.classes),
        basis=basis,
        full_scale=full_scale,
        clip=clip,
        unit=unit,
        most=most,
    )


def _check(
    pictures: npt.NDArray[Any],
    labels: npt.NDArray[np.int64],
    classes: int,
    basis: Basis,
    full_scale: float,
) -> None:
    wrong = {
        "pictures": pictures.shape[1:] != basis.shape,
        "labels": len(labels) != len(pictures)
        or bool(((np.asarray(labels) < 0) | (np.asarray(labels) >= classes)).any()),
        "full_scale": not 0 < full_scale < float("inf"),
        "basis": prod(basis.shape) > _LARGEST_PICTURE,
    }
    for name, bad in wrong.items():
        if bad:
            raise BadInput(
                f"{name} cannot be used for a sketch",
                where=name,
                why="one picture of the basis's size, of at most 2^16 numbers, and one class are "
                "needed for each record, and a positive full scale",
                remedy="give arrays (records, height, width), with 3 colours behind or without, "
                "and (records,)",
            )
    if not np.isfinite(pictures).all():
        raise BadInput(
            "a pixel is not a finite number",
            where="pictures",
            why="it would spoil every sum it enters, and clipping cannot bound it",
            remedy="repair the records",
        )
