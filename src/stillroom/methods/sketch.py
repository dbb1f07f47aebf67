"""The sketch: one-shot class statistics in a public basis, and pictures drawn from them.

Four kinds of noisy sums, each its own release: class means, the pooled second moment around them,
a few steps of Lloyd's algorithm along its largest directions, and each class's covariance around
its centres. What follows them is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.features.basis import Basis
from stillroom.gate import GaussianSum, Mechanism
from stillroom.methods.plan_numbers import check_plan, least_sigma
from stillroom.private import SketchClip, SketchRecords
from stillroom.public import Mixture, mixture
from stillroom.vocabulary import Bounded, Integers, OpenGate, Sanitised, Unit

SHARES = (Fraction(2, 10), Fraction(3, 10), Fraction(3, 10), Fraction(2, 10))
"""Of mu squared: class means, second moment, all steps of Lloyd's together, covariances."""

"""Noise is rounded up to thousandths of a grid unit."""


@dataclass(frozen=True)
class Sketch:
    """Everything the sketch needs to know beforehand; all of it public.

    Args:
        mu: how much it may tell: that of one Gaussian release; 1/10 is about epsilon 0.34.
        shape: height and width of a picture.
        full_scale: the value of white.
        coefficients: of the cosine transform, the most that are kept; a small picture has fewer.
        directions: along which classes may spread.
        centres: of each class.
        lloyd: steps of Lloyd's algorithm.
        radius: the largest norm of a picture's coefficients.
        residual: the largest norm of what is left when a public centre is subtracted.
        grid: grid units in a length of one.
        start: seed of the first centres.

    Raises:
        BadInput: a number is out of range.

    >>> sketch = Sketch(mu="1/10", shape=(28, 28))
    >>> [mechanism.width for mechanism, _ in sketch.wishes(classes=10)]
    [1970, 19306, 1000, 1000, 1000, 3000]
    """

    mu: Fraction
    shape: tuple[int, int]
    full_scale: float = 255.0
    coefficients: int = 196
    directions: int = 24
    centres: int = 4
    lloyd: int = 3
    radius: Fraction = Fraction(10)
    residual: Fraction = Fraction(6)
    grid: int = 1024
    start: int = 0

    def __post_init__(self) -> None:
        for name in ("mu", "radius", "residual"):
            object.__setattr__(self, name, _exact(name, getattr(self, name)))
        object.__setattr__(self, "shape", tuple(self.shape))
        checks = {
            "mu": self.mu > 0,
            "shape": len(self.shape) == 2 and min(self.shape) >= 2,
            "full_scale": 0 < self.full_scale < float("inf"),
            "coefficients": self.coefficients >= 1,
            "directions": 1 <= self.directions <= self.kept,
            "centres": self.centres >= 1,
            "lloyd": self.lloyd >= 1,
            "grid": self.grid >= 1,
        }
        check_plan(self, checks)
        SketchClip(self.radius, self.residual, self.grid)

    @property
    def kept(self) -> int:
        """How many coefficients a picture of this shape keeps."""
        return min(self.coefficients, int(np.prod(self.shape)))

    @property
    def basis(self) -> Basis:
        """The public basis."""
        return Basis(*self.shape, self.kept)

    @property
    def clip(self) -> SketchClip:
        """The radii and the grid."""
        return SketchClip(self.radius, self.residual, self.grid)

    def squared_mus(self) -> list[Fraction]:
        """What each release may tell, in order; together they are mu squared exactly."""
        means, moment, steps, spread = (share * self.mu**2 for share in SHARES)
        return [means, moment, *[steps / self.lloyd] * self.lloyd, spread]

    def wishes(self, classes: int, unit: Unit = Unit.RECORD) -> list[tuple[Mechanism, int]]:
        """The ways through the gate that `draw` needs, in order, one answer each.

        Guarantee: one record, added, removed or changed.

        Args:
            classes: how many classes there are.
            unit: whose presence is hidden.

        Raises:
            BadInput: the unit is not the record, or the grid is too coarse for the noise.
        """
        if unit is not Unit.RECORD:
            raise BadInput(
                f"a sketch hides one record, not one {unit}",
                where="unit",
                why="its terms are clipped record by record",
                remedy='use unit = "record", or a method without a sketch',
            )
        if classes < 1:
            raise BadInput(
                f"a sketch of {classes} classes",
                where="classes",
                why="there is nothing to tell apart",
                remedy="give the number of classes",
            )
        return [(mechanism, 1) for mechanism in self._sums(classes)]

    def _sums(self, classes: int) -> list[GaussianSum]:
        clip, size = self.clip, self.directions
        cluster = (classes * self.centres * (size + 1), clip.squared_cluster_sum)
        sums = [
            (classes * (self.kept + 1), clip.squared_class_sum),
            (_triangle(self.kept), clip.squared_moment),
            *[cluster] * self.lloyd,
            (classes * _triangle(size), clip.squared_moment),
        ]
        return [
            GaussianSum(least_sigma(squared / mu), width, squared)
            for (width, squared), mu in zip(sums, self.squared_mus(), strict=True)
        ]

    def records(
        self, pictures: npt.NDArray[Any], labels: npt.NDArray[np.int64], classes: int
    ) -> SketchRecords:
        """The sensitive records, on this sketch's basis and grid."""
        white = float(self.full_scale)
        return SketchRecords(
            pictures, labels, classes, basis=self.basis, full_scale=white, clip=self.clip
        )

    def draw(self, ways: Sequence[OpenGate], records: SketchRecords) -> Mixture:
        """Release the statistics through gates that were paid for `wishes`, and fit the mixture.

        A sketch that was cut off goes on where it was: answers it had paid for are read again.

        Guarantee: one record, added, removed or changed, at the price of the gates' block.

        Args:
            ways: one open gate a wish, in order.
            records: the sensitive records, made by `records`.

        Raises:
            BadInput: the ways are not those of `wishes`, or an answer was lost.
        """
        classes, grid = records.classes, self.grid
        sums = self._sums(classes)
        if len(ways) != len(sums):
            raise BadInput(
                f"the sketch needs {len(sums)} ways through the gate, got {len(ways)}",
                where="sketch",
                why="each release has a price of its own",
                remedy="reserve what `wishes` lists",
            )
        noise = [float(mechanism.sigma) for mechanism in sums]
        radius = self.clip.radius_steps / grid
        residual = self.clip.residual_steps / grid

        first = _answer(ways[0], records.class_sums)
        counts, means = mixture.class_means(
            first, classes, radius=radius, grid=grid, sigma=noise[0]
        )
        counts = np.maximum(counts, 0.0)

        second = _answer(ways[1], partial(records.second_moment, means))
        spread, axes = mixture.principal(second, self.directions, records=counts.sum(), grid=grid)

        places = mixture.first_centres(self.start, classes, self.centres, spread)
        weights = np.ones(places.shape[:2])
        for way, sigma in zip(ways[2:-1], noise[2:-1], strict=True):
            noisy = _answer(way, partial(records.cluster_sums, means, axes, places))
            weights, places = mixture.moved_centres(
                noisy, places, spread, radius=residual, grid=grid, sigma=sigma
            )

        last = _answer(ways[-1], partial(records.cluster_moments, means, axes, places))
        shapes = mixture.covariances(last, counts, grid=grid, sigma=noise[-1])
        return Mixture(weights, means[:, None] + places @ axes.T, axes, shapes, self.basis)


def _answer(way: OpenGate, bounded: Callable[[], Bounded]) -> Sanitised[Integers]:
    """The answer the way has given already, or the one it still can give."""
    earlier = way.earlier()
    if earlier:
        return earlier[0]
    if not way.left:
        raise BadInput(
            "the sketch is incomplete: one of its answers was lost",
            where="sketch",
            why="a lost answer stays charged and is never drawn again",
            remedy="start a new run, which pays for a sketch of its own",
        )
    return way.release(bounded())


def _triangle(size: int) -> int:
    return size * (size + 1) // 2


def _exact(name: str, value: Fraction | float | int | str) -> Fraction:
    try:
        # A float's decimal spelling is what its writer meant; its binary value is not.
        return Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        raise BadInput(
            f"{name} is not an exact number",
            where=name,
            why="a rounded number gives a false epsilon",
            remedy="give a fraction such as 1/10",
        ) from None
