"""Section [sketch]: what a sketch is made of, what it costs, and how it is drawn.

Four kinds of noisy sums, each its own request: class means, the pooled second moment around them,
a few steps of Lloyd's algorithm along its largest directions, and each class's covariance around
its centres. What follows them is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import prod
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from stillroom.errors import BadInput
from stillroom.features.basis import Basis
from stillroom.gate import GaussianSum, Passage
from stillroom.private import SketchClip, SketchRecords
from stillroom.public import Mixture, mixture_fit
from stillroom.recipe import Exact, Section
from stillroom.recipe.section import MOST_NUMBERS, MOST_PICTURES
from stillroom.sources.base import Reals, Request
from stillroom.sources.noise import least_sigma, sigma_of
from stillroom.vocabulary import Bounded, Integers, Sanitised, Unit

SHARES = (Fraction(2, 10), Fraction(3, 10), Fraction(3, 10), Fraction(2, 10))
"""Of mu squared: class means, second moment, all steps of Lloyd's together, covariances."""
GRID = 1024
"""Grid units in a length of one."""
FIRST_CENTRES = 0
"""Seed of the first centres."""


def _whole(shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    if min(shares) <= 0 or sum(shares) != 1:
        raise ValueError("should be four positive shares that add up to 1")
    return shares


def _rising(ends: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= ends[0] <= ends[1] <= 10:
        raise ValueError("should be two rising numbers between 0 and 10")
    return ends


Shares = Annotated[tuple[Exact, Exact, Exact, Exact], AfterValidator(_whole)]
Ends = Annotated[tuple[float, float], AfterValidator(_rising)]


class SketchSection(Section):
    """Class statistics released once, and pictures drawn from them.

    >>> sketch = SketchSection.of(mu="1/10")
    >>> [request.at(Fraction(1)).width for request in sketch.requests((28, 28), classes=10)]
    [1970, 19306, 1000, 1000, 1000, 3000]
    """

    mu: Exact | None = Field(
        None,
        gt=0,
        description="how much it may tell; 1/10 alone is epsilon 0.34. Source sketch may leave it "
        "out, and then spends privacy.epsilon",
    )
    coefficients: int = Field(
        196, ge=1, le=MOST_NUMBERS, description="of the cosine transform that are kept"
    )
    directions: int = Field(24, ge=1, le=MOST_NUMBERS, description="along which classes may spread")
    centres: int = Field(4, ge=1, le=1000, description="of each class")
    lloyd: int = Field(3, ge=1, le=100, description="steps of Lloyd's algorithm")
    radius: Exact = Field(Fraction(10), gt=0, description="the largest norm of a picture")
    residual: Exact = Field(Fraction(6), gt=0, description="the same around a centre")
    shares: Shares = Field(
        SHARES, description="of mu squared: class means, second moment, Lloyd's steps, covariances"
    )
    whitened: Exact | None = Field(
        None,
        gt=0,
        description="the largest norm around a centre once directions are scaled alike, where 1 is "
        "usual; without it they keep their lengths",
    )
    chroma: int = Field(
        32, ge=1, le=MOST_NUMBERS, description="coefficients of each plane of colour, if any"
    )
    spread: Ends = Field(
        (1.0, 1.2), description="between which factors a sample's distance from its centre is drawn"
    )
    sharpen: float = Field(0.8, ge=0, le=1, description="share of the samples with more contrast")
    warp: float = Field(0.5, ge=0, le=1, description="share of the samples that are warped")
    samples: int = Field(
        10_000, ge=100, le=MOST_PICTURES, description="pictures drawn to fit features on"
    )

    @property
    def clip(self) -> SketchClip:
        """The radii and the grid."""
        return SketchClip(self.radius, self.residual, GRID, self.whitened)

    def basis(self, shape: tuple[int, ...]) -> Basis:
        """The public basis for pictures of a shape; a small picture has fewer coefficients.

        Raises:
            BadInput: the records are no pictures, or have fewer coefficients than directions.
        """
        colour = len(shape) == 3 and shape[2] == 3
        kept = min(self.coefficients, prod(shape))
        chroma = min(self.chroma, (kept - 1) // 2, prod(shape[:2])) if colour else 0
        kept = min(kept, prod(shape[:2]) + 2 * chroma)
        flat = not colour and len(shape) != 2
        if flat or min(shape[:2]) < 2 or self.directions > kept or (colour and not chroma):
            raise BadInput(
                f"a sketch needs pictures with at least {self.directions} coefficients, got "
                f"records of shape {shape}",
                where="sketch",
                why="its basis is that of pictures, grey or in colour, and it spreads along its "
                "directions",
                remedy="leave [sketch] out, or lower sketch.directions",
            )
        return Basis(shape[0], shape[1], kept, chroma)

    def squared_mus(self, scale: Fraction = Fraction(1)) -> list[Fraction]:
        """What each request may tell, in order; together they are mu squared exactly.

        Args:
            scale: one over mu, where the section does not fix it.
        """
        whole = 1 / scale**2 if self.mu is None else self.mu**2
        means, moment, steps, spread = (share * whole for share in self.shares)
        return [means, moment, *[steps / self.lloyd] * self.lloyd, spread]

    def requests(
        self,
        shape: tuple[int, ...],
        classes: int,
        unit: Unit = Unit.RECORD,
        max_records_per_person: int = 1,
    ) -> list[Request]:
        """What a sketch must be paid for, in order, one answer each.

        Guarantee: one record, or one person with at most so many of them (a person's terms may all
        lie in one cell, so a sum is so many times as long); added, removed or changed.

        Raises:
            BadInput: the grid is too coarse for the noise.
        """
        most = max_records_per_person if unit is Unit.PERSON else 1
        clip, size, kept = self.clip, self.directions, self.basis(shape).count
        cluster = (classes * self.centres * (size + 1), clip.squared_cluster_sum)
        sums = [
            (classes * (kept + 1), clip.squared_class_sum),
            (_triangle(kept), clip.squared_moment),
            *[cluster] * self.lloyd,
            (classes * _triangle(size), clip.squared_cluster_moment),
        ]

        def request(place: int, name: str, width: int, squared: int) -> Request:
            def at(scale: Fraction) -> GaussianSum:
                sigma = least_sigma(squared / self.squared_mus(scale)[place])
                return GaussianSum(sigma, width, squared, unit=unit)

            return Request(name, at, 1, sought=self.mu is None)

        return [
            request(place, name, width, squared * most**2)
            for place, (name, (width, squared)) in enumerate(zip(self._names, sums, strict=True))
        ]

    @property
    def _names(self) -> list[str]:
        steps = [f"cluster sums {step}" for step in range(1, self.lloyd + 1)]
        return [f"sketch: {name}" for name in ("class sums", "moment", *steps, "cluster moments")]

    def draw(self, passages: Mapping[str, Passage], records: SketchRecords) -> Mixture:
        """Release the statistics through passages that were paid for, and fit the mixture.

        Guarantee: one unit of the records, at the price of the passages' block.

        Args:
            passages: those of `requests`, by name.
            records: the sensitive records, on this sketch's basis and grid.

        Raises:
            BadInput: an answer was lost.
        """
        classes, first, second, *steps, last = records.classes, *(passages[n] for n in self._names)
        radius, near = self.clip.radius_steps / GRID, self.clip.cluster_steps / GRID
        told = _answer(first, records.class_sums)
        counts, means = mixture_fit.class_means(
            told, classes, radius=radius, grid=GRID, sigma=sigma_of(first)
        )
        counts = np.maximum(counts, 0.0)
        if self.whitened is not None:
            means = mixture_fit.shrunk_means(means, counts, grid=GRID, sigma=sigma_of(first))
        told = _answer(second, partial(records.second_moment, means), means)
        about = {"records": counts.sum(), "grid": GRID}
        spread, axes = mixture_fit.principal(told, self.directions, **about)
        others = None
        if self.whitened is not None:
            others = mixture_fit.beyond(told, self.directions, **about)
        factors, length = self._scaled(spread, mixture_fit.CLUSTERS)
        wide = spread * (factors / length) ** 2
        places = mixture_fit.first_centres(FIRST_CENTRES, classes, self.centres, wide)
        weights = np.ones(places.shape[:2])
        for step in steps:
            public = means, axes * factors, places
            weights, places = mixture_fit.moved_centres(
                _answer(step, partial(records.cluster_sums, *public, length), *public, wide),
                places,
                wide,
                radius=near,
                grid=GRID,
                sigma=sigma_of(step),
            )
        places = places * (length / factors)
        factors, length = self._scaled(spread, mixture_fit.COVARIANCES)
        public = means, axes * factors, places * (factors / length)
        told = _answer(last, partial(records.cluster_moments, *public, length), *public, spread)
        sigma = sigma_of(last)
        if self.whitened is None:
            shapes = mixture_fit.covariances(told, counts, grid=GRID, sigma=sigma)
        else:
            shapes = mixture_fit.whitened_covariances(
                told, counts, weights, places, spread, grid=GRID, sigma=sigma
            )
        centres = means[:, None] + places @ axes.T
        return Mixture(weights, centres, axes, shapes, records.basis, others)

    def _scaled(self, variances: Reals, power: float) -> tuple[Reals, float]:
        """Factors of the directions and the length they leave, where directions are whitened."""
        if self.whitened is None:
            return np.ones_like(variances), 1.0
        return mixture_fit.whitening(variances, power)


def _answer(
    passage: Passage, bounded: Callable[[], Bounded], *public: Reals
) -> Sanitised[Integers]:
    """The passage's one answer; the question is what it is computed around."""
    if not passage.ahead(1):
        raise BadInput(
            "the sketch is incomplete: one of its answers was lost",
            where="sketch",
            why="a lost answer stays charged and is never drawn again",
            remedy="start a new run, which pays for a sketch of its own",
        )
    question = b"".join(np.ascontiguousarray(array).tobytes() for array in public)
    return passage.answer(passage.name.encode() + question, bounded)


def _triangle(size: int) -> int:
    return size * (size + 1) // 2
