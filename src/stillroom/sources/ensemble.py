"""Source ensemble: hints and soft votes of teachers on disjoint shards, every answer charged."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from stillroom.engine import Engine
from stillroom.recipe import Recipe
from stillroom.sources import base
from stillroom.sources.base import Facts, Request, SourceTerms
from stillroom.sources.sketch import DrawnSketch, sketch_requests
from stillroom.sources.teachers import HINTS, VOTES, TeachersSection
from stillroom.sources.trained import feature_knowledge
from stillroom.sources.trials import Phase

NOMINAL_HINT = 256
"""Numbers of a hint assumed where the networks have not been looked at."""
HERE = Engine("serial")
"""Ridge teachers are solved faster than workers are started."""
OF_ENSEMBLES = {
    "disjoint shards": "checked: by keyed hash of the ids, features record by record",
    "integer answers": "checked: every teacher's answer lies in its set, in whole numbers",
}


class EnsembleSource:
    """Teachers on disjoint shards of the sensitive records."""

    name: ClassVar[str] = "ensemble"

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """What an ensemble does not go together with."""
        section: TeachersSection | None = recipe.section("teachers")
        return {
            "teachers: source ensemble needs a [teachers]": section is None,
            "features.name: auxiliary is for source trained": recipe.features.name == "auxiliary",
            "features.fitted_on: the teachers are trained before a sketch is drawn": (
                recipe.features.fitted_on == "sketch"
            ),
            **({} if section is None else section.misfits(recipe.data.declared_size)),
        }

    def requests(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Request]:
        """Votes and hints, and a sketch beside them."""
        width = facts.width or (NOMINAL_HINT if ask.hint_shape is None else prod(ask.hint_shape))
        section: TeachersSection = recipe.section("teachers")
        own = section.requests(len(facts.classes), width, recipe.data.pair.unit)
        return [*own, *sketch_requests(recipe, facts)]

    def terms(self, recipe: Recipe, observed: base.Observed, paid: int) -> SourceTerms:
        """What an ensemble says of itself."""
        section: TeachersSection = recipe.section("teachers")
        early = (
            f"The budget ended early: {paid} of {section.questions} planned answers were paid for "
            "and given; nothing was asked after the last of them."
        )
        return SourceTerms(
            about=f"ensemble of {section.count} linear layers over features",
            assumptions=OF_ENSEMBLES,
            knowledge=feature_knowledge(recipe),
            warnings=(early,) if paid < section.questions else (),
        )

    def phases(self, recipe: Recipe, facts: Facts, ask: base.Ask) -> list[Phase]:
        """Teachers, and a sketch beside them; a method asks them in phases of its own."""
        from stillroom.sources.phases import teacher_phases

        return teacher_phases(recipe, facts)

    def prepare(self, setting: base.Setting, ask: base.Ask) -> base.Prepared:
        """Train the teachers: what cannot be trained on is found before paying."""
        from stillroom.private import Ensemble
        from stillroom.sources.ensemble_answers import PaidEnsemble
        from stillroom.sources.trained_linear import features_of

        recipe, party, progress = setting.recipe, setting.only_party(), setting.progress
        section: TeachersSection = recipe.section("teachers")
        features = features_of(setting)
        setting.begin()
        features.fit()
        sketch = DrawnSketch(setting)
        progress.tell("teachers")
        ensemble = Ensemble.train(
            party.data,
            features.map.rows,
            section.ensemble(recipe.data.key),
            engine=HERE,
            on_done=progress.step,
        )
        waiting = [ensemble]  # handed on once: the answers let go of the teachers after the last

        def opened(passages: base.Passages) -> base.Answers:
            own = passages[party.name]
            sketch.draw(passages)
            return PaidEnsemble(
                section,
                waiting.pop(),
                own[VOTES],
                own.get(HINTS),
                setting.public.labelled,
                features.map.rows,
                sketch=sketch,
            )

        return base.Prepared(1 if ask.hint_shape is None else prod(ask.hint_shape), opened)
