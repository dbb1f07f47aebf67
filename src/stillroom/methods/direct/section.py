"""The numbers of a student that sees samples of the sketch only."""

from __future__ import annotations

from pydantic import Field

from stillroom.recipe import Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_EPOCHS, MOST_PICTURES


class StudentSection(Section):
    """A network that sees samples of the sketch only, labelled by the private model."""

    model: str = Field("student-50k", description="a name in the zoo, or package.module:callable")
    samples: int = Field(
        40_000, ge=100, le=MOST_PICTURES, description="pictures drawn from the sketch"
    )
    epochs: int = Field(8, ge=1, le=MOST_EPOCHS, description="passes over them")
    batch: int = Field(128, ge=2, le=MOST_PICTURES, description="pictures per step")
    learning_rate: float = Field(3e-3, gt=0, le=LARGEST_RATE, description="the highest")
    start_seed: Seed = Field(0, description="of weights, order and samples; never of noise")
