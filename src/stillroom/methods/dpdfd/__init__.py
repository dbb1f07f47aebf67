"""Method dpdfd (Liu et al. 2023): a student that never saw a real picture."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stillroom.methods.base import Job, Plan, Terms
from stillroom.methods.dpdfd import terms as words
from stillroom.methods.dpdfd.claims import claim_of
from stillroom.methods.dpdfd.generator_section import GeneratorSection
from stillroom.methods.dpdfd.published_plan import PublishedPlan, published_requests
from stillroom.methods.dpdfd.published_section import PublishedSection
from stillroom.methods.dpdfd.published_terms import published_controls, published_terms
from stillroom.methods.dpdfd.section import DpdfdSection
from stillroom.sources import SOURCES, Ask, Facts, RecipeOfSource, Setting
from stillroom.sources.base import Observed
from stillroom.sources.trials import Phase

_OF_LESSONS = frozenset(DpdfdSection.model_fields) - {"student", "start_seed"}


class DpdfdRecipe(RecipeOfSource):
    """A student that never saw a real picture."""

    method: Literal["dpdfd"] = Field("dpdfd", description="how the model learns")
    dpdfd: DpdfdSection = DpdfdSection()
    generator: GeneratorSection | None = Field(
        None, description="a network that draws queries; source plain always has one"
    )
    published: PublishedSection | None = Field(None, description="for source plain")

    def misfits(self) -> dict[str, bool]:
        plain, part, set_ = self.source == "plain", self.dpdfd, self.dpdfd.model_fields_set
        own = self.published_plan.misfits(self.mode, self.data.unit) if plain else {}
        return {
            **super().misfits(),
            **own,
            "mode: only source plain has an as-published form": not plain
            and self.mode == "as-published",
            "published: only for source plain": self.published is not None and not plain,
            "dpdfd: with source plain only student and start_seed are used": plain
            and bool(set_ & _OF_LESSONS),
            "dpdfd.samples: there is no [sketch]": "samples" in set_
            and part.samples > 0
            and self.sketch is None
            and not plain,
            "dpdfd.generated and [generator] belong together": not plain
            and (part.generated > 0) != (self.generator is not None),
            "dpdfd: there are no queries": not plain and self._queries == 0,
            "training.model: the teacher of method dpdfd is linear": self.source == "trained"
            and not self.training.linear,
        }

    @property
    def _queries(self) -> int:
        """Per round, as far as they can be drawn."""
        part = self.dpdfd
        of_sketch = 0 if self.sketch is None else part.samples + part.mixed
        return part.structured + part.generated + of_sketch

    @property
    def sound_plain(self) -> bool:
        """Whether its answers of an ordinary teacher are bounded and noisy, all of them."""
        return self.published_plan.part.sound

    @property
    def only_labels(self) -> bool:
        """Whether it trains on records of which all but the labels is declared public."""
        return self.source == "plain" and self.published_plan.part.direct

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
        """What the source draws; the paper's algorithm has requests of its own."""
        if recipe.source == "plain":
            requests = published_requests(recipe, facts)
            return Plan(requests, claim_of(recipe, facts), published_controls(recipe))
        requests = SOURCES[recipe.source].requests(recipe, facts, Ask())
        return Plan(requests, claim_of(recipe, facts), words.controls_of(recipe))

    def terms(self, recipe: DpdfdRecipe, observed: Observed, paid: int) -> Terms:
        """What source and student say."""
        of_source = published_terms if recipe.source == "plain" else words.terms_of
        return of_source(recipe, observed, paid)

    def phases(self, recipe: DpdfdRecipe, facts: Facts, tested: float) -> list[Phase]:
        """Public work, the source, and what is learnt from it."""
        from stillroom.methods.dpdfd.phases import phases_of

        return phases_of(recipe, facts, tested)

    def prepare(self, setting: Setting) -> Job:
        """Networks that fit, then the source."""
        from stillroom.methods.dpdfd.job import DpdfdJob
        from stillroom.methods.dpdfd.published_direct_job import DirectJob
        from stillroom.methods.dpdfd.published_job import PublishedJob

        of_plain = DirectJob if setting.recipe.only_labels else PublishedJob
        job: DpdfdJob | PublishedJob | DirectJob
        job = (of_plain if setting.recipe.source == "plain" else DpdfdJob)(setting)
        return Job(job.width, job.run)


DPDFD = Dpdfd()
