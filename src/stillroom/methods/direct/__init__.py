"""Method direct: the model of source trained itself, or a student of samples of its sketch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stillroom.methods.base import SHOWN_SAMPLES, Job, Plan, Result, Terms
from stillroom.methods.direct.section import StudentSection
from stillroom.methods.generators import sketch_generator, sketch_terms
from stillroom.recipe import Recipe
from stillroom.release.sections.published import Claim
from stillroom.sources import NO_MU, SOURCES, Ask, Facts, Setting
from stillroom.sources.base import Observed, Passages
from stillroom.sources.sketch import SketchSection
from stillroom.sources.trained import TrainedAnswers
from stillroom.sources.training import TrainingSection
from stillroom.sources.trials import Phase

OWN_THEOREM = Claim(None, "none: DP-SGD has its own theorem")
STUDENT_OF_SKETCH = "a student that saw only samples of the sketch, labelled by the teacher"


class DirectRecipe(Recipe):
    """A model trained on the sensitive records through the gate."""

    method: Literal["direct"] = Field("direct", description="how the model learns")
    source: Literal["trained"] = Field("trained", description="where the privacy comes from")
    training: TrainingSection = TrainingSection()
    sketch: SketchSection | None = Field(None, description="class statistics, released once")
    student: StudentSection | None = Field(
        None, description="hand over a network that saw samples of the sketch only"
    )

    @property
    def takes_tables(self) -> bool:
        return self.training.linear

    def misfits(self) -> dict[str, bool]:
        training, features = self.training, self.features
        return {
            **super().misfits(),
            **SOURCES[self.source].misfits(self),
            "mode: method direct has no as-published form": self.mode == "as-published",
            "features: auxiliary and fitted_on public need a method with a public part": (
                features.name == "auxiliary" or features.fitted_on == "public"
            ),
            "training.public_epochs: only for a network": training.linear
            and "public_epochs" in training.model_fields_set,
            "training.public_epochs: there is no public_source": not training.linear
            and training.public_epochs > 0
            and training.public_source is None,
            NO_MU: self.sketch is not None and self.sketch.mu is None,
            "student: it learns from a [sketch], and there is none": self.student is not None
            and self.sketch is None,
        }


class Direct:
    """DP-SGD, and nothing after it but what is free."""

    name = "direct"
    recipe = DirectRecipe

    def plan(self, recipe: DirectRecipe, facts: Facts) -> Plan:
        """What the source draws."""
        return Plan(SOURCES[recipe.source].requests(recipe, facts, Ask()), OWN_THEOREM)

    def terms(self, recipe: DirectRecipe, observed: Observed, paid: int) -> Terms:
        """What the source says, and that there is a student."""
        own = SOURCES[recipe.source].terms(recipe, observed, paid)
        about, knowledge = own.about, own.knowledge
        if recipe.student is not None:
            about = f"network `{recipe.student.model}`, a student of a {about}"
            knowledge = (*knowledge, STUDENT_OF_SKETCH)
        return Terms(
            about,
            own.assumptions,
            knowledge,
            warnings=own.warnings,
            observed=own.observed,
            samples=SHOWN_SAMPLES if recipe.sketch else 0,
            generator=sketch_terms(recipe),
        )

    def phases(self, recipe: DirectRecipe, facts: Facts, tested: float) -> list[Phase]:
        """Public work, the source, and what is learnt from it."""
        from stillroom.methods.direct.phases import phases_of

        return phases_of(recipe, facts, tested)

    def prepare(self, setting: Setting) -> Job:
        """The source, and a student that fits."""
        recipe: DirectRecipe = setting.recipe
        if recipe.student is not None:
            from stillroom.methods.direct.student import refuse_unfit_student

            refuse_unfit_student(recipe, setting.facts)
        source = SOURCES[recipe.source].prepare(setting, Ask())

        def run(passages: Passages) -> Result:
            answers = source.open(passages)
            assert isinstance(answers, TrainedAnswers)
            model = answers.model
            if recipe.student is not None:
                from stillroom.methods.direct.student import taught

                paid = next(iter(passages[setting.only_party().name].values()))
                state = setting.state_file("student", paid)
                model = taught(recipe, answers, setting.progress, state)
            return Result(
                model,
                answers.observed,
                samples=answers.sketch.shown(SHOWN_SAMPLES),
                generator=sketch_generator(answers.sketch),
            )

        return Job(source.width, run)


DIRECT = Direct()
