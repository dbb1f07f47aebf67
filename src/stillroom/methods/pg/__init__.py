"""Method pg (Mao et al. 2021): publish parameters generated from many models, and not a model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stillroom.features import FIXED
from stillroom.methods.base import Job, Plan, Terms
from stillroom.methods.pg import terms as words
from stillroom.methods.pg.claims import claim_of
from stillroom.methods.pg.published_section import PublishedSection
from stillroom.methods.pg.requests import latent_requests, published_requests, weights_of
from stillroom.methods.pg.section import CollectionSection, PgSection
from stillroom.parameters.sizes import SIZES
from stillroom.recipe import Recipe
from stillroom.recipe.common import DataWithPublicPart
from stillroom.sources import NO_MU, Facts, Setting
from stillroom.sources.base import Observed
from stillroom.sources.sketch import SketchSection
from stillroom.sources.trials import Phase


class PgRecipe(Recipe):
    """Parameters generated from the models of many shards."""

    method: Literal["pg"] = Field("pg", description="how the model learns")
    source: Literal["ensemble", "plain"] = Field(
        "ensemble",
        description="where the privacy comes from: models on shards; plain is as-published only",
    )
    data: DataWithPublicPart
    collection: CollectionSection
    pg: PgSection = PgSection()
    sketch: SketchSection | None = Field(None, description="class statistics, released once")
    published: PublishedSection | None = Field(None, description="for source plain")

    @property
    def published_part(self) -> PublishedSection:
        """The numbers of the paper's algorithms."""
        return self.published or PublishedSection()

    @property
    def takes_tables(self) -> bool:
        return self.collection.is_head

    @property
    def known_size(self) -> bool:
        """Whether the number of weights is known without building a model."""
        if not self.collection.is_head:
            return self.collection.model in SIZES or self.collection.parameters is not None
        return self.features.components is not None or self.features.name in FIXED

    def misfits(self) -> dict[str, bool]:
        plain, part = self.source == "plain", self.pg
        own = {**super().misfits(), **self.collection.misfits(), NO_MU: self._unpriced_sketch}
        if plain:
            return {**own, **self._as_published()}
        sketched, public = self.sketch is not None, self.data.public > 0
        judged = public or (sketched and self.sketch is not None)
        return {
            **own,
            **part.misfits(),
            "mode: the certified method has no source plain, and the paper's has no other": (
                self.mode == "as-published"
            ),
            "published: only for source plain": self.published is not None,
            "features.name: auxiliary is for method rona": self.features.name == "auxiliary",
            "collection.start: there is no [sketch]": self.collection.start == "sketch"
            and not sketched,
            "collection.start: there is no public part": self.collection.start == "public"
            and not public,
            "pg.retries: a judge needs public labels, or samples of a [sketch]": (
                part.retries is not None and not judged
            ),
            "pg.map, pg.kept: a start that was trained on public records, or on samples, is needed "
            "to tell weights apart": self.collection.start == "common"
            and (part.map == "groups" or part.kept < 1),
            "collection.scale: whitened weights are mixed, and those that pgc leaves out would "
            "come back; use diagonal or none": part.publisher == "pgc"
            and self.collection.is_head
            and self.collection.scale == "whitened",
            "privacy.on_exhausted: only gaussian rounds can stop early": (
                self.privacy.on_exhausted == "stop"
                and (part.mechanism == "exponential" or part.retries is not None)
            ),
            "pg.map: directions are for networks, and need public labels or a [sketch]": (
                part.map == "directions" and (self.collection.is_head or not judged)
            ),
            "pg.mechanism: exponential has a price per latent; name their number by pg.latents, "
            "collection.parameters or features.components": part.mechanism == "exponential"
            and part.map == "weights"
            and not self.known_size,
        }

    def _as_published(self) -> dict[str, bool]:
        data, collection = self.data, self.collection
        only_pg = self.pg.model_fields_set - {"publisher"}
        return {
            **self.published_part.misfits(self.pg.publisher),
            "mode: source plain promises nothing and belongs to mode as-published": self.mode
            != "as-published",
            f"pg.{', pg.'.join(sorted(only_pg))}: not for source plain": bool(only_pg),
            "sketch: not for source plain": self.sketch is not None,
            "data.unit: as published, records are counted": data.unit != "record",
            "privacy.on_exhausted: a part of the weights is no model": self.privacy.on_exhausted
            == "stop",
            "collection.model: as published, every weight of a network is drawn": (
                collection.is_head
            ),
            "collection.start: as published, all models have a common start": collection.start
            != "common",
            "collection.parameters: is missing: the price depends on it": not self.known_size,
            "published.threshold: a test on sensitive records is a question of its own; make the "
            "test part public, or a part of the data": self.published_part.threshold is not None
            and not (data.test_is_public or data.public > 0),
            "pg.publisher: pgc needs public pictures to find important weights by": (
                self.pg.publisher == "pgc" and not (data.test_is_public or data.public > 0)
            ),
        }

    @property
    def _unpriced_sketch(self) -> bool:
        return self.sketch is not None and self.sketch.mu is None


class Pg:
    """Generated parameters: rounds of published latents, or every weight by itself as printed."""

    name = "pg"
    recipe = PgRecipe

    def plan(self, recipe: PgRecipe, facts: Facts) -> Plan:
        """The latents of each round and the sketch; or every weight."""
        asked = published_requests if recipe.source == "plain" else latent_requests
        claim = claim_of(recipe, weights_of(recipe, facts))
        return Plan(asked(recipe, facts), claim, words.controls_of(recipe))

    def terms(self, recipe: PgRecipe, observed: Observed, paid: int) -> Terms:
        """What the collection and the publisher say."""
        return words.terms_of(recipe, observed, paid)

    def phases(self, recipe: PgRecipe, facts: Facts, tested: float) -> list[Phase]:
        """Public work, the source, and what is learnt from it."""
        from stillroom.methods.pg.phases import phases_of

        return phases_of(recipe, facts, tested)

    def prepare(self, setting: Setting) -> Job:
        """The public start and the shards; or the whole collection."""
        from stillroom.methods.pg.job import PgJob
        from stillroom.methods.pg.published_job import PublishedJob

        job = (PublishedJob if setting.recipe.source == "plain" else PgJob)(setting)
        return Job(job.width, job.run)


PG = Pg()
