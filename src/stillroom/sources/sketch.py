"""The sketch: one-shot class statistics in a public basis, and pictures drawn from them.

It stands beside other sources, for features and samples, or alone.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from stillroom.private import sketch_records
from stillroom.public import Mixture
from stillroom.recipe import Recipe
from stillroom.sources import base
from stillroom.sources.base import Facts, Request
from stillroom.sources.sketch_section import SketchSection as SketchSection
from stillroom.sources.trials import Phase
from stillroom.vocabulary import Integers, Unit

FROM_SKETCH = "samples of the sketch, which came through the gate"


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
                unit=Unit(recipe.data.unit),
                max_records_per_person=recipe.data.max_records_per_person,
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
        pictures, classes = self.mixture.sample(
            seed, count, scale=part.spread, sharpen=part.sharpen, warp=part.warp
        )
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
    data = recipe.data
    return section.requests(
        facts.shape, len(facts.classes), data.pair.unit, data.max_records_per_person
    )


class SketchSource:
    """Source sketch: the class statistics alone, the cheapest of all."""

    name: ClassVar[str] = "sketch"

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """There must be one."""
        return {"sketch: source sketch needs a [sketch]": recipe.section("sketch") is None}

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

    def phases(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Phase]:
        """Those of the sketch."""
        from stillroom.sources.phases import sketch_phases

        return sketch_phases(recipe, facts)

    def prepare(self, setting: base.Setting, ask: base.Ask) -> base.Prepared:
        """Look at the records."""
        setting.begin(quick=True)
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

    def sample_scores(self, count: int, seed: int) -> base.Reals | None:
        """Log-likelihoods of the samples as they were drawn.

        A mixture knows nothing of sharper or bent pictures, and misjudges them.
        """
        mixture, section = self.sketch.mixture, self.sketch.section
        assert mixture is not None
        assert section is not None
        plain, _ = mixture.sample(seed, count, scale=section.spread)
        scores: base.Reals = self.network.of_records(plain * np.float32(self.sketch.full_scale))
        return scores
