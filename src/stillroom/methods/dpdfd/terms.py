"""What a certified recipe of method dpdfd fixes about its certificate; pure, and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stillroom.methods.base import SHOWN_SAMPLES, Terms
from stillroom.methods.generators import network_terms, sketch_terms
from stillroom.release.sections.controls import Control
from stillroom.sources import SOURCES
from stillroom.sources.base import Observed
from stillroom.sources.sketch import FROM_SKETCH

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe

TEACHER = Control("teacher", None, "whom the student learnt from", private=False)
STRUCTURED = "random shapes, curves and clouds, made of nothing"


def controls_of(recipe: DpdfdRecipe) -> tuple[Control, ...]:
    """The sanitised teacher, where it is one model."""
    return (TEACHER,) if recipe.source == "trained" else ()


def generator_terms(recipe: DpdfdRecipe) -> Mapping[str, Any] | None:
    """What the certificate states of the generator: a network, or else the sketch."""
    part = recipe.generator
    if part is None:
        return sketch_terms(recipe)
    return network_terms(recipe, part.model, part.latent, conditional=part.conditional)


def about_student(recipe: DpdfdRecipe) -> str:
    """What is released, in one line."""
    return f"network `{recipe.dpdfd.student}`, a student that never saw a real picture"


def terms_of(recipe: DpdfdRecipe, observed: Observed, paid: int) -> Terms:
    """The terms of the certified method, by its source."""
    own, part = SOURCES[recipe.source].terms(recipe, observed, paid), recipe.dpdfd
    used = {
        STRUCTURED: part.structured > 0 or part.mixed > 0,
        FROM_SKETCH: recipe.sketch is not None and part.samples + part.mixed > 0,
        "pictures of the generator, which saw the student and what came through the gate": (
            recipe.generator is not None
        ),
    }
    drawn = recipe.sketch is not None or recipe.generator is not None
    return Terms(
        about_student(recipe),
        own.assumptions,
        (*own.knowledge, *(text for text, holds in used.items() if holds)),
        warnings=own.warnings,
        observed=own.observed,
        samples=SHOWN_SAMPLES if drawn else 0,
        generator=generator_terms(recipe),
    )
