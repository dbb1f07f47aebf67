"""The sketch: one-shot class statistics in a public basis, and pictures drawn from them.

Four kinds of noisy sums, each its own request: class means, the pooled second moment around them,
a few steps of Lloyd's algorithm along its largest directions, and each class's covariance around
its centres. What follows them is free. It stands beside other sources, for features and samples, or
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from stillroom.errors import BadInput
from stillroom.features.basis import Basis
from stillroom.gate import GaussianSum, Passage
from stillroom.private import SketchClip, SketchRecords, sketch_records
from stillroom.public import Mixture, mixture
from stillroom.recipe import Exact, Recipe, Section
from stillroom.recipe.section import MOST_NUMBERS, MOST_PICTURES
from stillroom.sources import base
from stillroom.sources.base import Facts, Reals, Request
from stillroom.sources.noise import least_sigma, sigma_of
from stillroom.vocabulary import Bounded, Integers, Sanitised, Unit

SHARES = (Fraction(2, 10), Fraction(3, 10), Fraction(3, 10), Fraction(2, 10))
"""Of mu squared: class means, second moment, all steps of Lloyd's together, covariances."""
FROM_SKETCH = "samples of the sketch, which came through the gate"
GRID = 1024
"""Grid units in a length of one."""
FIRST_CENTRES = 0
"""Seed of the first centres."""


class SketchSection(Section):
    """Class statistics released once, and pictures drawn from them.

    >>> sketch = SketchSection.of(mu="1/10")
    >>> [request.at(Fraction(1)).width for request in sketch.requests((28, 28), classes=10)]
    [1970, 19306, 1000, 1000, 1000, 3000]
    """

    mu: Exact = Field(gt=0, description="how much it may tell; 1/10 alone is epsilon 0.34")
    coefficients: int = Field(
        196, ge=1, le=MOST_NUMBERS, description="of the cosine transform that are kept"
    )
    directions: int = Field(24, ge=1, le=MOST_NUMBERS, description="along which classes may spread")
    centres: int = Field(4, ge=1, le=1000, description="of each class")
    lloyd: int = Field(3, ge=1, le=100, description="steps of Lloyd's algorithm")
    radius: Exact = Field(Fraction(10), gt=0, description="the largest norm of a picture")
    residual: Exact = Field(Fraction(6), gt=0, description="the same around a centre")
    sharpen: float = Field(0.8, ge=0, le=1, description="share of the samples with more contrast")
    warp: float = Field(0.5, ge=0, le=1, description="share of the samples that are warped")
    samples: int = Field(
        10_000, ge=100, le=MOST_PICTURES, description="pictures drawn to fit features on"
    )

    @property
    def clip(self) -> SketchClip:
        """The radii and the grid."""
        return SketchClip(self.radius, self.residual, GRID)

    def basis(self, shape: tuple[int, ...]) -> Basis:
        """The public basis for pictures of a shape; a small picture has fewer coefficients.

        Raises:
            BadInput: the records are no grey pictures, or have fewer coefficients than directions.
        """
        kept = min(self.coefficients, prod(shape))
        if len(shape) != 2 or min(shape) < 2 or self.directions > kept:
            raise BadInput(
                f"a sketch needs grey pictures with at least {self.directions} pixels, got records "
                f"of shape {shape}",
                where="sketch",
                why="its basis is that of grey pictures, and it spreads along its directions",
                remedy="leave [sketch] out, or lower sketch.directions",
            )
        return Basis(shape[0], shape[1], kept)

    def squared_mus(self) -> list[Fraction]:
        """What each request may tell, in order; together they are mu squared exactly."""
        means, moment, steps, spread = (share * self.mu**2 for share in SHARES)
        return [means, moment, *[steps / self.lloyd] * self.lloyd, spread]

    def requests(
        self, shape: tuple[int, ...], classes: int, unit: Unit = Unit.RECORD
    ) -> list[Request]:
        """What a sketch must be paid for, in order, one answer each.

        Guarantee: one record, added, removed or changed.

        Raises:
            BadInput: the unit is not the record, or the grid is too coarse for the noise.
        """
        if unit is not Unit.RECORD:
            raise BadInput(
                f"a sketch hides one record, not one {unit}",
                where="unit",
                why="its terms are clipped record by record",
                remedy='use unit = "record", or leave the sketch out',
            )
        clip, size, kept = self.clip, self.directions, self.basis(shape).count
        cluster = (classes * self.centres * (size + 1), clip.squared_cluster_sum)
        sums = [
            (classes * (kept + 1), clip.squared_class_sum),
            (_triangle(kept), clip.squared_moment),
            *[cluster] * self.lloyd,
            (classes * _triangle(size), clip.squared_moment),
        ]
        return [
            Request.fixed(name, GaussianSum(least_sigma(squared / mu), width, squared), 1)
            for name, (width, squared), mu in zip(
                self._names, sums, self.squared_mus(), strict=True
            )
        ]

    @property
    def _names(self) -> list[str]:
        steps = [f"cluster sums {step}" for step in range(1, self.lloyd + 1)]
        return [f"sketch: {name}" for name in ("class sums", "moment", *steps, "cluster moments")]

    def draw(self, passages: Mapping[str, Passage], records: SketchRecords) -> Mixture:
        """Release the statistics through passages that were paid for, and fit the mixture.

        Guarantee: one record, added, removed or changed, at the price of the passages' block.

        Args:
            passages: those of `requests`, by name.
            records: the sensitive records, on this sketch's basis and grid.

        Raises:
            BadInput: an answer was lost.
        """
        classes, first, second, *steps, last = records.classes, *(passages[n] for n in self._names)
        radius, residual = self.clip.radius_steps / GRID, self.clip.residual_steps / GRID
        told = _answer(first, records.class_sums)
        counts, means = mixture.class_means(
            told, classes, radius=radius, grid=GRID, sigma=sigma_of(first)
        )
        counts = np.maximum(counts, 0.0)
        told = _answer(second, partial(records.second_moment, means), means)
        spread, axes = mixture.principal(told, self.directions, records=counts.sum(), grid=GRID)
        places = mixture.first_centres(FIRST_CENTRES, classes, self.centres, spread)
        weights = np.ones(places.shape[:2])
        for step in steps:
            clusters = partial(records.cluster_sums, means, axes, places)
            weights, places = mixture.moved_centres(
                _answer(step, clusters, means, axes, places),
                places,
                spread,
                radius=residual,
                grid=GRID,
                sigma=sigma_of(step),
            )
        moments = partial(records.cluster_moments, means, axes, places)
        told = _answer(last, moments, means, axes, places)
        shapes = mixture.covariances(told, counts, grid=GRID, sigma=sigma_of(last))
        centres = means[:, None] + places @ axes.T
        return Mixture(weights, centres, axes, shapes, records.basis)


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


class DrawnSketch:
    """The recipe's sketch of sealed records: looked at first, drawn through its passages later.

    Args:
        setting: of a recipe that may have a [sketch].

    Raises:
        BadInput, NumericalDoubt: a sketch cannot be made of the records.
    """

    def __init__(self, setting: base.Setting) -> None:
        recipe, self._setting = setting.recipe, setting
        self.section: SketchSection | None = recipe.section("sketch")
        self.mixture: Mixture | None = None
        self.full_scale = float(recipe.features.full_scale)
        if self.section is not None:
            self._records = sketch_records(
                setting.only_party().data,
                basis=self.section.basis(setting.facts.shape),
                full_scale=self.full_scale,
                clip=self.section.clip,
            )

    def draw(self, passages: base.Passages) -> None:
        """Draw it, where the recipe has one."""
        if self.section is not None:
            self._setting.progress.tell("sketch")
            own = passages[self._setting.only_party().name]
            self.mixture = self.section.draw(own, self._records)

    def samples(self, count: int, seed: int) -> npt.NDArray[np.float32] | None:
        """Pictures drawn from it, in the units of the records."""
        drawn = self.labelled_samples(count, seed)
        return None if drawn is None else drawn[0]

    def labelled_samples(
        self, count: int, seed: int
    ) -> tuple[npt.NDArray[np.float32], Integers] | None:
        """Pictures drawn from it, and the class each was drawn for."""
        if self.section is None or self.mixture is None:
            return None
        part = self.section
        pictures, classes = self.mixture.sample(seed, count, sharpen=part.sharpen, warp=part.warp)
        return pictures * np.float32(self.full_scale), classes

    def shown(self, count: int) -> npt.NDArray[np.float32] | None:
        """Some plain samples for the card, class by class."""
        if self.mixture is None:
            return None
        pictures, classes = self.mixture.sample(0, count)
        return pictures[np.argsort(classes, kind="stable")]


def sketch_requests(recipe: Recipe, facts: Facts) -> list[Request]:
    """What the recipe's sketch must be paid for; nothing without one."""
    section: SketchSection | None = recipe.section("sketch")
    if section is None:
        return []
    return section.requests(facts.shape, len(facts.classes), recipe.data.pair.unit)


class SketchSource:
    """Source sketch: the class statistics alone, the cheapest of all."""

    name: ClassVar[str] = "sketch"

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """A sketch protects records, and there must be one."""
        return {
            "sketch: source sketch needs a [sketch]": recipe.section("sketch") is None,
            "data.unit: a sketch protects records, not persons": recipe.data.unit == "person",
        }

    def requests(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Request]:
        """Those of the sketch."""
        return sketch_requests(recipe, facts)

    def terms(self, recipe: Recipe, observed: base.Observed, paid: int) -> base.SourceTerms:
        """Integer sums in a public basis."""
        return base.SourceTerms(
            about="mixture of Gaussians per class",
            assumptions={
                "integer sums": "checked: each term's norm is compared with its radius in integers"
            },
            knowledge=("the cosine basis, fitted on nothing",),
        )

    def prepare(self, setting: base.Setting, ask: base.Ask) -> base.Prepared:
        """Look at the records."""
        setting.begin()
        sketch = DrawnSketch(setting)

        def opened(passages: base.Passages) -> SketchAnswers:
            sketch.draw(passages)
            return SketchAnswers(sketch)

        return base.Prepared(1, opened)


class SketchAnswers(base.Answers):
    """A sketch that answers by the likelihood of its mixture; free once it is drawn."""

    def __init__(self, sketch: DrawnSketch) -> None:
        from stillroom.public.mixture_network import MixtureNetwork

        assert sketch.mixture is not None
        self.sketch = sketch
        self.network = MixtureNetwork(sketch.mixture, sketch.full_scale)

    def scores(self, x: base.Records, groups: Integers | None = None) -> base.Scores:
        """Log-likelihoods of the classes."""
        return base.Scores(self.network.of_records(x), np.arange(len(x)))

    def samples(self, count: int, seed: int) -> base.Records | None:
        """Pictures drawn from the mixture."""
        return self.sketch.samples(count, seed)
