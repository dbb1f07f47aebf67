"""Section [student] of method votes: who learns from few noisy votes and many public records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from stillroom.recipe import Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_EPOCHS, MOST_NUMBERS, MOST_PICTURES

if TYPE_CHECKING:
    from stillroom.public.few_labels import FewLabels


class StudentSection(Section):
    """A network that learns what votes and neighbours say of all public records."""

    model: str = Field("wavelet-70k", description="a name in the zoo, or package.module:callable")
    rounds: int = Field(
        2, ge=1, le=100, description="networks, one after the other; the last is the student"
    )
    epochs: int = Field(
        5, ge=1, le=MOST_EPOCHS, description="passes over the public records in each round"
    )
    batch: int = Field(128, ge=2, le=MOST_PICTURES, description="records per step")
    learning_rate: float = Field(3e-3, gt=0, le=LARGEST_RATE, description="the highest")
    neighbours: int = Field(
        10, ge=1, le=1000, description="that each public record looks for, by its features"
    )
    feature_rounds: int = Field(
        12, ge=0, le=1000, description="how often features are averaged over neighbours"
    )
    signal: float = Field(
        0.3, gt=0, le=LARGEST_RATE, description="how much votes may follow features"
    )
    alpha: float = Field(0.95, ge=0, lt=1, description="how far votes spread over neighbours")
    own_alpha: float = Field(
        0.8, ge=0, lt=1, description="how far the network's own answers spread"
    )
    learnt: int = Field(
        64, ge=1, le=MOST_NUMBERS, description="directions of what a network learnt, for neighbours"
    )
    given_share: float = Field(
        0.7, ge=0, le=LARGEST_RATE, description="length of the features beside them"
    )
    turn: float = Field(10.0, ge=0, le=180, description="the farthest turn of a view, in degrees")
    shift: float = Field(0.07, ge=0, lt=1, description="its farthest shift, as a share of the side")
    scale: float = Field(0.1, ge=0, lt=1, description="its largest change of size, as a share")
    mirror: bool = Field(False, description="whether half of the views are turned left to right")
    start_seed: Seed = Field(0, description="of weights, order and views; never of noise")

    @property
    def plan(self) -> FewLabels:
        """The same numbers, as the student takes them."""
        from stillroom.models.augmentation import Views
        from stillroom.public.few_labels import FewLabels

        told = self.model_dump()
        views = Views(**{name: told.pop(name) for name in ("turn", "shift", "scale", "mirror")})
        return FewLabels(views=views, **told)
