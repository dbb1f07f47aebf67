"""The numbers of RONA: what its student learns when, and what the paper's algorithm is told."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from stillroom.recipe import Exact, Section, Seed
from stillroom.recipe.section import LARGEST_RATE, MOST_EPOCHS, MOST_PICTURES, MOST_VIEWS


class RonaSection(Section):
    """A small student of a teacher that saw the sensitive records."""

    student: str = Field("student-10k", description="a name in the zoo, or package.module:callable")
    auxiliary: str = Field(
        "student-50k", description="the network of the auxiliary teacher, trained on public labels"
    )
    auxiliary_epochs: int = Field(
        6, ge=1, le=MOST_EPOCHS, description="its steps, as passes over the public part"
    )
    hint_layer: int | None = Field(
        None, ge=1, le=1000, description="the teacher's layer that gives hints, counted from one"
    )
    guided_layer: int | None = Field(
        None, ge=1, le=1000, description="the student's layer that follows them, counted from one"
    )
    hint_epochs: int = Field(0, ge=0, le=MOST_EPOCHS, description="T_h, passes of hint learning")
    rounds: int = Field(2, ge=1, le=1000, description="R, of self learning and then distillation")
    self_epochs: int = Field(
        2, ge=0, le=MOST_EPOCHS, description="T_s, passes over the labelled public part"
    )
    distillation_epochs: int = Field(
        4, ge=1, le=MOST_EPOCHS, description="T_d, passes over what was asked"
    )
    batch: int = Field(
        128, ge=2, le=MOST_PICTURES, description="S, records per step of hints and distillation"
    )
    self_batch: int = Field(
        128, ge=2, le=MOST_PICTURES, description="S', records per step of self learning"
    )
    queries: Exact = Field(
        Fraction(1, 2), gt=0, le=1, description="for plain: the share of the public part asked"
    )
    selection: Literal["k-centre", "random", "margin", "diverse"] = Field(
        "k-centre", description="how queries that cost something are chosen"
    )
    loss: Literal["logits", "softened"] = Field(
        "logits", description="what is learnt of scores: centred logits too, or probabilities only"
    )
    temperature: float | None = Field(
        None,
        gt=0,
        le=LARGEST_RATE,
        description="divides scores before the softmax; their spread, or 1, when left out",
    )
    learning_rate: float = Field(4e-3, gt=0, le=LARGEST_RATE, description="the highest")
    views: int = Field(
        1, ge=1, le=MOST_VIEWS, description="of each public picture; the first is itself"
    )
    turn: float = Field(0.0, ge=0, le=180, description="the farthest turn of a view, in degrees")
    shift: float = Field(0.0, ge=0, lt=1, description="its farthest shift, as a share of the side")
    scale: float = Field(0.0, ge=0, lt=1, description="its largest change of size, as a share")
    mirror: bool = Field(False, description="whether half of the views are turned left to right")
    composites: int = Field(
        0,
        ge=0,
        le=MOST_PICTURES,
        description="pictures put together from parts of public ones, for the teacher",
    )
    samples: int = Field(
        0, ge=0, le=MOST_PICTURES, description="pictures drawn from the sketch, for the teacher"
    )
    start_seed: Seed = Field(0, description="of weights, order, views and picks; never of noise")

    @property
    def epochs(self) -> int:
        """Passes over the public part, of all stages together."""
        return self.hint_epochs + self.rounds * (self.self_epochs + self.distillation_epochs)


class PublishedSection(Section):
    """The paper's algorithm to the letter."""

    reading: Literal["literal", "residual"] = Field(
        "literal", description="noise on the loss, or on the clipped residual (sound)"
    )
    sigma: Exact = Field(Fraction(10), gt=0, description="noise, in units of the bound")
    bound: float | None = Field(
        None, gt=0, le=LARGEST_RATE, description="of a batch's loss; adaptive when left out"
    )
    detached: bool = Field(
        True, description="whether the divisor of Algorithm 2 is a constant; literal only"
    )
