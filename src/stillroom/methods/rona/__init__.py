"""Method rona (Wang et al. 2019): a small student of a teacher that saw sensitive records."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from stillroom.methods.base import Job, Plan, Terms
from stillroom.methods.rona import terms as words
from stillroom.methods.rona.published_plan import PublishedPlan
from stillroom.methods.rona.section import PublishedSection, RonaSection
from stillroom.recipe.compression import CompressionSection
from stillroom.sources import SOURCES, Ask, Facts, RecipeWithSource, Setting
from stillroom.sources.base import Observed
from stillroom.sources.trials import Phase

NOMINAL_HINT = 256
"""Numbers of a hint assumed where the networks have not been looked at."""


class RonaRecipe(RecipeWithSource):
    """A small student of a teacher that saw the sensitive records."""

    renamed: ClassVar[dict[str, str]] = {
        **RecipeWithSource.renamed,
        "rona.source": "source",
        "published.teacher": "plain.teacher",
        "published.teacher_epochs": "plain.epochs",
    }
    method: Literal["rona"] = Field("rona", description="how the model learns")
    rona: RonaSection = RonaSection()
    compression: CompressionSection | None = Field(
        None, description="prunes and codes the student; none leaves it as it is"
    )
    published: PublishedSection | None = Field(None, description="for source plain")

    def misfits(self) -> dict[str, bool]:
        data, rona, teachers = self.data, self.rona, self.teachers
        hinted, plain = rona.hint_epochs > 0, self.source == "plain"
        return {
            **super().misfits(),
            "source: method rona learns from trained, ensemble or plain": self.source == "sketch",
            "data.unit: the paper's algorithm protects records": data.unit == "person" and plain,
            "data.labelled: the paper's algorithm has the labels of all public records": plain
            and data.labelled < 1,
            "training.model: the teacher of method rona is linear": not self.training.linear,
            "mode: the certified method has no source plain, and the paper's has no other": plain
            != (self.mode == "as-published"),
            "compression: the paper's algorithm has none": self.compression is not None and plain,
            "published: only for source plain": self.published is not None and not plain,
            "plain.batch, plain.learning_rate, plain.start_seed: those of [rona] are used": (
                self.plain is not None
                and bool({"batch", "learning_rate", "start_seed"} & self.plain.model_fields_set)
            ),
            "sketch: method rona uses one with source trained alone": self.sketch is not None
            and self.source != "trained",
            "rona.composites: only for source trained": rona.composites > 0
            and self.source != "trained",
            "rona.queries: only for source plain": "queries" in rona.model_fields_set and not plain,
            "rona.samples: there is no [sketch]": rona.samples > 0 and self.sketch is None,
            "rona.hint_epochs: name hint_layer and guided_layer": hinted
            and (rona.hint_layer is None or rona.guided_layer is None),
            "teachers.hints and rona.hint_epochs belong together": teachers is not None
            and (teachers.hints > 0) != hinted,
        }

    @property
    def published_plan(self) -> PublishedPlan:
        """The numbers of the paper's algorithm."""
        return PublishedPlan(self.rona, self.published or PublishedSection())

    @property
    def teacher_network(self) -> str:
        """The ordinary teacher's make: the paper's auxiliary teacher is of the same."""
        given = None if self.plain is None else self.plain.teacher
        return given or self.rona.auxiliary


class Rona:
    """Hint learning, then rounds of self learning and distillation."""

    name = "rona"
    recipe = RonaRecipe

    def plan(self, recipe: RonaRecipe, facts: Facts) -> Plan:
        """What the source draws; the paper's algorithm has requests of its own."""
        if recipe.source == "plain":
            public, classes = facts.public_records, len(facts.classes)
            width, unit = facts.width or NOMINAL_HINT, recipe.data.pair.unit
            requests = recipe.published_plan.requests(public, width, classes, unit=unit)
        else:
            requests = SOURCES[recipe.source].requests(recipe, facts, Ask())
        return Plan(requests, words.claim_of(recipe, facts), words.controls_of(recipe))

    def terms(self, recipe: RonaRecipe, observed: Observed, paid: int) -> Terms:
        """What source and student say."""
        return words.terms_of(recipe, observed, paid)

    def phases(self, recipe: RonaRecipe, facts: Facts, tested: float) -> list[Phase]:
        """Public work, the source, and what is learnt from it."""
        from stillroom.methods.rona.phases import phases_of

        return phases_of(recipe, facts, tested)

    def prepare(self, setting: Setting) -> Job:
        """Networks on public labels, then the source."""
        from stillroom.methods.rona.job import RonaJob
        from stillroom.methods.rona.published_job import PublishedJob

        job = (PublishedJob if setting.recipe.source == "plain" else RonaJob)(setting)
        return Job(job.width, job.run)


RONA = Rona()
