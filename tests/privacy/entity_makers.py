"""Makers of what entities say: votes that are summed over all of them, and single reports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from stillroom.data import Dataset
from stillroom.data.dealing import Dealing
from stillroom.features import pixels
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.entities import dealt
from stillroom.private.entity_votes import EntityTeacher, Queries
from stillroom.vocabulary import Bounded, Pair

ADDED, CHANGED = Pair.parse("record/add-or-remove"), Pair.parse("record/change")
PERSON_ADDED = Pair.parse("person/add-or-remove")
CLASSES, ENTITIES, WEIGHT = 4, 5, 3
PLAN = EnsemblePlan(1, "a test", shard_cap=9, ridge=1e-4, default_class=1)


def records(size: int = 14, seed: int = 6, persons: bool = False) -> Dataset:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, size)
    x = rng.random((size, 4, 4)) * 0.1
    x[np.arange(size), y, y] += 5
    owners = [f"p{i // 2}" for i in range(size)] if persons else None
    return Dataset(x, y, CLASSES, ids=[f"r{i}" for i in range(size)], persons=owners)


def queries() -> Queries:
    """One public record by itself, one group of two, and one that leans on neighbours."""
    rows = pixels(records(6, seed=7).x).astype(np.float32)
    mixing = np.zeros((3, 6), dtype=np.float32)
    mixing[0, 0], mixing[1, 1:3], mixing[2, 3:] = 1, 0.5, 1 / 3
    return Queries(rows, sparse.csr_array(mixing))


def teachers(data: Dataset, uneven: bool, per_person: int = 1) -> list[EntityTeacher]:
    dealing = Dealing(ENTITIES, 9, smallest=1 if uneven else None)
    return [EntityTeacher(part, None, PLAN, per_person) for part in dealt(data, dealing, "a test")]


def neighbours(data: Dataset) -> Iterator[tuple[Pair, Dataset]]:
    """One record less, one that becomes another class, and one that has no finite features."""
    for place in range(0, len(data), 3):
        yield ADDED, data.select(np.setdiff1d(np.arange(len(data)), [place]))
        y, x = np.array(data.y), np.array(data.x)
        y[place] = (y[place] + 1) % CLASSES
        yield CHANGED, Dataset(data.x, y, CLASSES, ids=data.ids)
        x[place] = 1e300
        yield CHANGED, Dataset(x, data.y, CLASSES, ids=data.ids)


def summed(data: Dataset, uneven: bool = False, least: float | None = None) -> list[Bounded]:
    """One sum over all entities per question."""
    told = [one.votes(queries(), WEIGHT, least) for one in teachers(data, uneven)]
    total = np.sum([one.open_bounded() for one in told], axis=0)
    return [Bounded(row[None], told[0].sensitivity) for row in total]


def votes_of_entities() -> Iterator[tuple[Pair, Bounded, Bounded]]:
    """One record moves the sum by one entity's vote, which may also be withheld."""
    data = records()
    for least in (None, 0.4):
        whole = summed(data, least=least)
        for pair, other in neighbours(data):
            for before, after in zip(whole, summed(other, least=least), strict=True):
                yield pair, before, after
    # Where entities differ in classes, a record of another class belongs to another entity.
    whole = summed(data, uneven=True)
    for pair, other in neighbours(data):
        if pair is ADDED:
            for before, after in zip(whole, summed(other, uneven=True), strict=True):
                yield pair, before, after


def votes_of_a_person_at_two() -> Iterator[tuple[Pair, Bounded, Bounded]]:
    """A person known to two entities turns both, in one direction."""
    first, second = (records(6, seed, persons=True) for seed in (1, 2))

    def answer(one: Dataset, other: Dataset) -> list[Bounded]:
        told = [EntityTeacher(d, None, PLAN, 2).votes(queries(), 1, None) for d in (one, other)]
        total = np.sum([part.open_bounded() for part in told], axis=0)
        return [Bounded(row[None], told[0].sensitivity) for row in total]

    def owned(data: Dataset, label: int) -> Dataset:
        x = np.zeros((6, 4, 4))
        x[:, label, label] = 5
        return Dataset(x, [label] * 6, CLASSES, ids=data.ids, persons=data.persons)

    worlds = [answer(owned(first, label), owned(second, label)) for label in range(3)]
    for one in worlds:
        for other in worlds:
            for before, after in zip(one, other, strict=True):
                yield PERSON_ADDED, before, after


def reports_of_entities() -> Iterator[tuple[Pair, Bounded, Bounded]]:
    """One record changes the report of one entity, to any other."""
    data = records()
    for least in (None, 0.4):
        whole = [one.reports(queries(), least) for one in teachers(data, uneven=False)]
        for pair, other in neighbours(data):
            for before, after in zip(whole, teachers(other, uneven=False), strict=True):
                told = after.reports(queries(), least)
                for place in range(3):
                    yield pair, _row(before, place), _row(told, place)


def _row(told: Bounded, place: int) -> Bounded:
    return Bounded(told.open_bounded()[place : place + 1], told.sensitivity)


ENTITY_MAKERS = {
    votes_of_entities: ("entity_votes.EntityTeacher.votes",),
    votes_of_a_person_at_two: ("entity_votes.EntityTeacher.votes",),
    reports_of_entities: ("entity_votes.EntityTeacher.reports",),
}
