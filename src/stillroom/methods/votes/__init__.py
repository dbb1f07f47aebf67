"""Method votes (Zhao 2018): a student of many entities' votes, who pool neither data nor models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stillroom.methods.base import Job, Plan, Terms
from stillroom.methods.votes import terms as words
from stillroom.methods.votes.claims import claim_of
from stillroom.methods.votes.requests import Asking
from stillroom.methods.votes.section import IN_SUMS, SECURE_SUM, PublishedSection, VotesSection
from stillroom.methods.votes.student_section import StudentSection
from stillroom.recipe import RecipeWithPublicPart
from stillroom.recipe.entities import EntitiesSection
from stillroom.sources import Facts, Setting
from stillroom.sources.base import Observed
from stillroom.sources.trials import Phase


class VotesRecipe(RecipeWithPublicPart):
    """A student of the votes of many entities on public records."""

    method: Literal["votes"] = Field("votes", description="how the model learns")
    source: Literal["ensemble"] = Field("ensemble", description="where the privacy comes from")
    ledger: str = Field(
        "ledgers", description="a folder beside the recipe, with a ledger for each entity"
    )
    entities: EntitiesSection
    votes: VotesSection = VotesSection()
    student: StudentSection = StudentSection()
    published: PublishedSection | None = Field(None, description="for mode as-published")

    @property
    def published_part(self) -> PublishedSection:
        """The numbers of the paper's scheme."""
        return self.published or PublishedSection()

    def misfits(self) -> dict[str, bool]:
        data, votes, entities, features = self.data, self.votes, self.entities, self.features
        published = self.mode == "as-published"
        summed = votes.report in IN_SUMS
        return {
            **super().misfits(),
            **entities.misfits(data.declared_size, self.privacy.epsilon),
            **votes.misfits(),
            "data.test_is_public: entities pay for votes, and nobody for a charged evaluation": (
                not data.test_is_public
            ),
            "data.unit: an entity's vote protects records, persons and the entity": data.unit
            not in ("record", "person"),
            "data.labelled: no public label is used": "labelled" in data.model_fields_set,
            "data.sensitive_classes: a student needs public records of all classes": bool(
                data.sensitive_classes
            ),
            "entities.split: persons with several classes are kept together by an even split": (
                entities.split == "uneven" and data.unit == "person"
            ),
            "entities.per_person: only for unit person, and a secure sum": entities.per_person > 1
            and (data.unit != "person" or votes.report != SECURE_SUM),
            "entities.weights: budget is for votes.report secure-sum": entities.weights == "budget"
            and votes.report != SECURE_SUM,
            "entities.participation: in a sum of responses everybody answers": (
                entities.participation < 1 and votes.report == "summed-response"
            ),
            "entities.epsilons: summed responses have one noise for all": (
                entities.epsilons is not None and votes.report == "summed-response"
            ),
            "entities.dropouts, entities.colluding: reports by themselves need neither": (
                not summed and entities.dropouts + entities.colluding > 0
            ),
            "published: only for mode as-published": self.published is not None and not published,
            'mode: as published reports are "geometric", and all entities are alike': published
            and (votes.report != "geometric" or entities.epsilons is not None),
            "votes.abstain: the paper's entities always report": published
            and votes.abstain is not None,
            "features.fitted_on: there is no sketch": features.fitted_on == "sketch",
            "features.name: there is no auxiliary network": features.name == "auxiliary",
            "privacy.on_exhausted: each entity's votes are reserved as a whole": (
                self.privacy.on_exhausted == "stop"
            ),
        }


class Votes:
    """Local noise, or a secure sum; a student learns from what comes out."""

    name = "votes"
    recipe = VotesRecipe

    def plan(self, recipe: VotesRecipe, facts: Facts) -> Plan:
        """What entities pay for."""
        requests = Asking(recipe, len(facts.classes)).requests()
        return Plan(requests, claim_of(recipe))

    def terms(self, recipe: VotesRecipe, observed: Observed, paid: int) -> Terms:
        """What entities and student say."""
        return words.terms_of(recipe)

    def phases(self, recipe: VotesRecipe, facts: Facts, tested: float) -> list[Phase]:
        """Public work, the source, and what is learnt from it."""
        from stillroom.methods.votes.phases import phases_of

        return phases_of(recipe, facts, tested)

    def prepare(self, setting: Setting) -> Job:
        """Public features and neighbours, then a teacher per entity."""
        from stillroom.methods.votes.job import VotesJob

        job = VotesJob(setting)
        return Job(job.width, job.run)


VOTES = Votes()
