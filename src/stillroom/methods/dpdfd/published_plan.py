"""What DPDFD as published asks of its teachers, and what it pays; pure, and without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from stillroom.gate import GaussianAnswers, Mechanism, Unprotected
from stillroom.gate.events import ROUNDING_VARIANCE
from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.methods.dpdfd.published_section import PAPERS_SIGMA, PublishedSection
from stillroom.sources import Facts, Request
from stillroom.sources.noise import least_sigma
from stillroom.vocabulary import Unit

if TYPE_CHECKING:
    from stillroom.methods.dpdfd import DpdfdRecipe

STEPS = 1 << 20
"""Grid units of the bound."""
GRADIENTS, DERIVATIVES = "gradients", "derivatives"


@dataclass(frozen=True)
class PublishedPlan:
    """What Algorithm 1 is told beforehand; all of it public.

    Args:
        part: its numbers.
        generator: those of its generator.
        sought: whether the noise is sought for the recipe's epsilon.
        start_seed: of weights and latent numbers.

    >>> part = PublishedSection.of(batch=64, iterations=100)
    >>> plan = PublishedPlan(part, GeneratorSection())
    >>> plan.terms, plan.answers, plan.squared_distance == 4 * 64 * STEPS**2
    (64, 100, True)
    """

    part: PublishedSection
    generator: GeneratorSection
    sought: bool = False
    start_seed: int = 0

    def misfits(self, mode: str, unit: str = "record") -> dict[str, bool]:
        """Keys that are fine by themselves and make no sense together: text -> whether they are."""
        steps = "steps" in self.generator.model_fields_set
        return {
            **self.part.misfits(mode, unit),
            "generator.conditional: the paper's generator is told no class": (
                self.generator.conditional
            ),
            "generator.steps: with source plain it steps in each of published.iterations": steps,
        }

    @property
    def sigma(self) -> Fraction:
        """The noise over the bound, where it is given."""
        return PAPERS_SIGMA if self.part.sigma is None else self.part.sigma

    @property
    def several(self) -> bool:
        """Whether the noise is averaged over teachers, picture by picture, and not over a batch."""
        return self.part.teachers > 1

    @property
    def terms(self) -> int:
        """How many gradients are summed before noise is added once."""
        return self.part.teachers if self.several else self.part.batch

    @property
    def moved(self) -> int:
        """How many of them one record may move: all that come of a teacher that saw it.

        Of labels alone, each moves its own.
        """
        on_shards = self.several and self.part.sharing == "disjoint"
        return 1 if on_shards or self.part.direct else self.terms

    @property
    def rows(self) -> int:
        """Answers of one iteration: one for the batch, or one per picture."""
        return self.part.batch if self.several else 1

    @property
    def answers(self) -> int:
        """Answers of all iterations."""
        return self.rows * self.part.iterations

    @property
    def squared_distance(self) -> int:
        """D^2 of one answer, in grid units: (2 m C)^2 one by one, 4 m C^2 by a common norm."""
        if self.part.reading == "batch":
            return 4 * self.terms * STEPS**2
        return 4 * (self.moved * STEPS) ** 2

    def requests(self, shape: tuple[int, ...], classes: int, unit: Unit) -> list[Request]:
        """Noisy gradients, and what leaves beside them where they are not detached.

        Args:
            shape: of a picture.
            classes: how many there are.
            unit: whom the block is paid for.
        """

        def noisy(scale: Fraction) -> Mechanism:
            squared, sigma = self.squared_distance, self.sigma * STEPS
            if self.sought:
                sigma = least_sigma(self.answers * squared * scale**2 + ROUNDING_VARIANCE)
            return GaussianAnswers(sigma, classes, squared, unit)

        requests = [Request(GRADIENTS, noisy, self.answers, sought=self.sought)]
        if not self.part.detached:
            why = "DPDFD, not detached: the generator's gradient has the teacher's Jacobian in it"
            width = self.part.batch * (math.prod(shape) + classes)
            open_way = Unprotected(width, why, unit)
            requests.append(Request.fixed(DERIVATIVES, open_way, self.part.iterations))
        return requests


def published_requests(recipe: DpdfdRecipe, facts: Facts) -> list[Request]:
    """What a recipe of source plain draws."""
    plan = recipe.published_plan
    return plan.requests(facts.shape, len(facts.classes), recipe.data.pair.unit)
