"""The phases of method votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stillroom.methods.votes.section import IN_SUMS
from stillroom.randomness import normals
from stillroom.sources import Facts
from stillroom.sources.feature_trials import FeatureRows
from stillroom.sources.gate_trials import Draws
from stillroom.sources.network_trials import NetworkAnswers, NetworkSteps, ViewsMade
from stillroom.sources.phases import (
    directions_of,
    ending,
    network_of,
    rows_of,
    trial_of,
    width_of,
)
from stillroom.sources.public_trials import Ridge, RidgeAnswers
from stillroom.sources.trials import Phase, Trial, Work, seconds_of, sensitive_records

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe

MOST_SUMMED = 8
"""Entities in a trial of a secure sum."""


def phases_of(recipe: VotesRecipe, facts: Facts, tested: float) -> list[Phase]:
    """Public neighbours, teachers, votes, student."""
    part, student = recipe.votes, recipe.student
    public, classes = facts.public_records, len(facts.classes)
    records, entities = sensitive_records(recipe), recipe.entities.count
    own = max(1, min(recipe.entities.largest, round(records / entities)))
    network = network_of(recipe, facts, student.model, student.batch, alone=True)
    graph = Neighbours(public, width_of(recipe, facts), student.neighbours)
    said: Trial
    if part.teacher == "ridge":
        width = width_of(recipe, facts)
        taught = Work(Ridge(own, width, classes, recipe.entities.largest), entities)
        trained = [taught, Work(FeatureRows(trial_of(recipe, facts)), own * entities)]
        said = RidgeAnswers(width, classes)
    else:
        teacher = network_of(recipe, facts, part.teacher, min(own, 32), alone=True)
        trained = [Work(NetworkSteps(teacher), part.epochs * own * entities)]
        said = NetworkAnswers(teacher)
    asked = part.questions + (part.queries if part.threshold is not None else 0)
    share = float(recipe.entities.participation)
    voted = [Work(said, public * entities), Work(Draws(asked * classes), entities * share)]
    if part.smoothing:
        voted.append(Work(graph))
    seen = student.rounds * student.epochs * public
    learnt = [Work(NetworkSteps(network), seen), Work(ViewsMade(facts.shape), seen)]
    again = student.rounds - (1 if part.smoothing else 0)
    summed = []
    if part.report in IN_SUMS:
        summed = [Phase("secure sum", [Work(Summed(entities, asked, classes))])]
    return [
        Phase("features of public records", rows_of(recipe, facts, public)),
        *directions_of(recipe, facts, public),
        Phase("teachers of the entities", trained),
        Phase("votes", voted),
        *summed,
        Phase("student", [*learnt, Work(graph, again)]),
        *ending(recipe, facts, tested, student.model),
    ]


@dataclass(frozen=True)
class Neighbours:
    """The graph of public records that are alike.

    Args:
        records: how many there are.
        width: features.
        neighbours: that each looks for.
    """

    records: int
    width: int
    neighbours: int

    def seconds(self) -> float:
        """Of fewer records: the time grows with the square."""
        from stillroom.public.neighbour_graph import neighbour_graph

        size = min(self.records, 2000)
        if size <= self.neighbours:
            return 0.0
        rows = normals(0, "made-up rows", size=(size, self.width))
        once = seconds_of(lambda: neighbour_graph(rows, self.neighbours), first=True)
        return once * (self.records / size) ** 2


@dataclass(frozen=True)
class Summed:
    """A secure sum.

    Args:
        entities: that take part.
        rows: questions.
        classes: how many there are.
    """

    entities: int
    rows: int
    classes: int

    def seconds(self) -> float:
        """Of few entities that all know each other; the masks take the time."""
        from stillroom.federation import Plan, enrol, new_session, run, suggested_neighbours

        few = min(self.entities, MOST_SUMMED)
        names = [f"entity-{number}" for number in range(few)]
        identities, roster = enrol(names)
        own = {name: np.ones((self.rows, self.classes), np.int64) for name in names}
        plan = Plan(new_session(), roster, 0, 0, (self.rows, self.classes), 1, bits=32)
        once = seconds_of(lambda: run(plan, identities, own), first=True)
        known = suggested_neighbours(self.entities, 0, 0) or self.entities - 1
        return once * (self.entities * known) / (few * max(1, few - 1))
