"""What a method does with the recipe's sketch: draw it, and pictures from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset, PublicPictures
from stillroom.gate import Passage
from stillroom.methods.costs import sketch_of
from stillroom.methods.recipe import Recipe
from stillroom.methods.terms import FROM_SKETCH, SHOWN_SAMPLES
from stillroom.public import Mixture


class SketchToDraw:
    """The recipe's sketch of the sensitive records, looked at before anything is paid for.

    Args:
        recipe: the recipe; it may have no sketch.
        data: the sensitive records.

    Raises:
        BadInput, NumericalDoubt: a sketch cannot be made of the records.
    """

    def __init__(self, recipe: Recipe, data: Dataset) -> None:
        self._sketch = sketch_of(recipe, data.shape)
        if self._sketch is not None:
            self._records = self._sketch.records(data.x, data.y, len(data.classes))

    def draw(self, ways: Sequence[Passage]) -> Mixture | None:
        """The sketch, through its paid passages; None where the recipe has none."""
        return None if self._sketch is None else self._sketch.draw(ways, self._records)


def raw_samples(recipe: Recipe, mixture: Mixture, seed: int, count: int) -> npt.NDArray[np.float32]:
    """Pictures drawn from a sketch, in the units of the records."""
    part = recipe.sketch
    assert part is not None
    pictures, _ = mixture.sample(seed, count, sharpen=part.sharpen, warp=part.warp)
    return pictures * np.float32(recipe.features.full_scale)


def to_fit_on(recipe: Recipe, mixture: Mixture | None) -> PublicPictures | None:
    """Pictures to fit features on."""
    if mixture is None or recipe.sketch is None:
        return None
    pictures = raw_samples(recipe, mixture, 1, recipe.sketch.samples)
    return PublicPictures(pictures, FROM_SKETCH)


def shown(mixture: Mixture | None) -> npt.NDArray[np.float32] | None:
    """Some samples for the card, class by class."""
    if mixture is None:
        return None
    pictures, classes = mixture.sample(0, SHOWN_SAMPLES)
    return pictures[np.argsort(classes, kind="stable")]
