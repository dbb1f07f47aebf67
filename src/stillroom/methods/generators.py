"""Generators beside a released model: what the recipe fixes of them, and the sketch as one.

A sketch came through the gate, so whoever has the bundle may draw from it without a price.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.recipe import Recipe
from stillroom.release.generator import (
    ABOUT_SKETCH,
    ReleasedGenerator,
    SketchGenerator,
    about_network,
    network_states,
    sketch_states,
)
from stillroom.release.sections.samples import drawable
from stillroom.sources.sketch import DrawnSketch, SketchSection

Pictures = npt.NDArray[np.float32]


def sketch_terms(recipe: Recipe) -> Mapping[str, Any] | None:
    """What the certificate states of the recipe's sketch as a generator; None without a sketch."""
    section: SketchSection | None = recipe.section("sketch")
    if section is None:
        return None
    states = sketch_states(
        recipe.features.full_scale, section.sharpen, section.warp, section.spread
    )
    return {"about": ABOUT_SKETCH, **states}


def sketch_generator(sketch: DrawnSketch) -> SketchGenerator | None:
    """The recipe's sketch as a generator, once it is drawn; None without a sketch."""
    section, mixture = sketch.section, sketch.mixture
    if section is None or mixture is None:
        return None
    return SketchGenerator(
        mixture, sketch.full_scale, section.sharpen, section.warp, section.spread
    )


def shown_samples(generator: ReleasedGenerator, count: int) -> Pictures | None:
    """Some samples for a card, in [0, 1], class by class; None where records are no pictures."""
    if not drawable(generator.shape):
        return None
    records, classes = generator.draw(0, count)
    if classes is not None:
        records = records[np.argsort(classes, kind="stable")]
    pictures: Pictures = np.clip(records / np.float32(generator.states["full_scale"]), 0, 1)
    return pictures


def network_terms(
    recipe: Recipe, model: str, latent: int, *, conditional: bool
) -> Mapping[str, Any]:
    """What the certificate states of a generator network that the recipe names."""
    states = network_states(recipe.features.full_scale, latent, conditional=conditional)
    return {"about": about_network(model, conditional=conditional), **states}
