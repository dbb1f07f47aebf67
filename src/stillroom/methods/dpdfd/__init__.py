"""Method dpdfd (Liu et al. 2023): a student that never saw a real picture."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stillroom.methods.base import Job, Plan, Terms
from stillroom.methods.dpdfd.claims import claim_of
from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.methods.dpdfd.published_plan import PublishedPlan, published_requests
from stillroom.methods.dpdfd.published_section import PublishedSection
from stillroom.methods.dpdfd.published_terms import published_controls, published_terms
from stillroom.methods.dpdfd.section import DpdfdSection
from stillroom.sources import Facts, RecipeOfSource, Setting
from stillroom.sources.base import Observed


class DpdfdRecipe(RecipeOfSource):
    """A student that never saw a real picture."""

    method: Literal["dpdfd"] = Field("dpdfd", description="how the model learns")
    dpdfd: DpdfdSection = DpdfdSection()
    generator: GeneratorSection | None = Field(None, description="makes the pictures")
    published: PublishedSection | None = Field(None, description="for source plain")

    def misfits(self) -> dict[str, bool]:
        plain = self.source == "plain"
        own = self.published_plan.part.misfits(self.mode) if plain else {}
        return {**super().misfits(), **own}

    @property
    def sound_plain(self) -> bool:
        """Whether its answers of an ordinary teacher are bounded and noisy, all of them."""
        return self.published_plan.part.sound

    @property
    def published_plan(self) -> PublishedPlan:
        """The numbers of the paper's algorithm."""
        return PublishedPlan(
            self.published or PublishedSection(),
            self.generator or GeneratorSection(),
            sought=self.mode == "certified",
            start_seed=self.dpdfd.start_seed,
        )


class Dpdfd:
    """Data-free distillation."""

    name = "dpdfd"
    recipe = DpdfdRecipe

    def plan(self, recipe: DpdfdRecipe, facts: Facts) -> Plan:
        """The paper's own requests."""
        requests = published_requests(recipe, facts)
        return Plan(requests, claim_of(recipe, facts), published_controls(recipe))

    def terms(self, recipe: DpdfdRecipe, observed: Observed, paid: int) -> Terms:
        """What source and student say."""
        return published_terms(recipe, observed, paid)

    def prepare(self, setting: Setting) -> Job:
        """The student of an ordinary teacher."""
        from stillroom.methods.dpdfd.published_job import PublishedJob

        job = PublishedJob(setting)
        return Job(job.width, job.run)


DPDFD = Dpdfd()
