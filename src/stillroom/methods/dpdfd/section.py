"""The numbers of DPDFD's student: what it is shown, and how long it learns."""

from __future__ import annotations

from pydantic import Field

from stillroom.recipe import Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_EPOCHS, MOST_PICTURES


class DpdfdSection(Section):
    """A student that never saw a real picture; sources trained, ensemble and sketch.

    With source ensemble a round's queries are the pool that its questions are picked from.
    """

    student: str = Field("wavelet-70k", description="a name in the zoo, or package.module:callable")
    rounds: int = Field(10, ge=1, le=MOST_EPOCHS, description="of fresh queries")
    samples: int = Field(
        2500, ge=0, le=MOST_PICTURES, description="queries per round drawn from the sketch"
    )
    structured: int = Field(
        1500, ge=0, le=MOST_PICTURES, description="queries per round of random shapes and clouds"
    )
    candidates: int = Field(
        8,
        ge=1,
        le=1000,
        description="random pictures that each of these is chosen from, by likeness to a sample",
    )
    mixed: int = Field(
        4000,
        ge=0,
        le=MOST_PICTURES,
        description="queries per round that join a sample with another, or with a structured one",
    )
    generated: int = Field(
        0, ge=0, le=MOST_PICTURES, description="queries per round drawn from the generator"
    )
    refined: float = Field(
        0.2,
        ge=0,
        le=1,
        description="share of the queries that are moved to where student and teacher disagree",
    )
    refinement_length: float = Field(
        0.1, ge=0, le=1, description="the longest way of a query, per pixel, as a share of white"
    )
    refinement_steps: int = Field(1, ge=1, le=100, description="gradient steps on that way")
    frequencies: int = Field(
        150, ge=1, le=MOST_PICTURES, description="of the cosine transform that a step may move"
    )
    bank: int = Field(40_000, ge=1, le=MOST_PICTURES, description="queries kept, the latest ones")
    epochs: int = Field(2, ge=1, le=MOST_EPOCHS, description="passes over the bank per round")
    batch: int = Field(128, ge=2, le=MOST_PICTURES, description="queries per step")
    learning_rate: float = Field(3e-3, gt=0, le=LARGEST_RATE, description="the highest")
    start_seed: Seed = Field(0, description="of weights, queries and order; never of noise")

    @property
    def pool(self) -> int:
        """Queries per round, as many as there can be."""
        return self.samples + self.structured + self.mixed + self.generated
