"""Which neighbours go through which pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from neighbours.worlds import PIPELINES, STRANGE, Pipeline, World, name_in, world

LONELY = 3
"""The class that has one record only."""


@dataclass(frozen=True)
class Pair:
    """A data set at each release, and its neighbour's."""

    name: str
    first: tuple[World, ...]
    second: tuple[World, ...]


def base(pipeline: Pipeline) -> World:
    """Forty digits, one of them the only one of its class, in the sensitive part."""
    whole = world(named=pipeline.named, persons=pipeline.persons)
    one = int(np.flatnonzero(whole.y == LONELY)[0])
    few = whole.without(*np.flatnonzero(whole.y == LONELY))
    name = name_in("sensitive", pipeline.public, pipeline.test, few)
    return few.plus(whole.x[one], LONELY, name, person=name, at=len(few.y) // 2)


def pairs(pipeline: Pipeline) -> Iterator[Pair]:
    """All pairs of a pipeline; those of one first data set come one after the other."""
    usual = base(pipeline)
    parts = usual.parts(pipeline.public, pipeline.test)
    inside, tested = parts["sensitive"], parts["test"]
    protected = "test_is_public = false" in pipeline.recipe
    if 'unit = "label"' in pipeline.recipe:
        yield from _of_labels(usual, inside, tested)
        return
    kinds = _of_persons if 'unit = "person"' in pipeline.recipe else _of_records
    for name, neighbour in kinds(usual, inside, pipeline):
        yield Pair(name, (usual,), (neighbour,))
    if protected:
        yield Pair("removed from the test part", (usual,), (usual.without(tested[0]),))
        name = name_in("test", pipeline.public, pipeline.test, usual)
        for kind, strange in STRANGE.items():
            more = usual.plus(strange(usual.x[0]), 1, name, person=name)
            yield Pair(f"added to the test part: {kind}", (usual,), (more,))
        nobody = usual.without(*tested)
        yield Pair("the last of the test part", (usual.without(*tested[1:]),), (nobody,))
    only = usual.without(*inside[1:])
    yield Pair("the last of the sensitive part", (only,), (usual.without(*inside),))
    grown = usual.plus(usual.x[0], 1, name_in("sensitive", pipeline.public, pipeline.test, usual))
    yield Pair("added between two releases", (usual, usual), (usual, grown))
    yield Pair("removed between two releases", (usual, usual), (usual, usual.without(inside[0])))


def _of_records(usual: World, inside: list[int], pipeline: Pipeline) -> Iterator[tuple[str, World]]:
    name = name_in("sensitive", pipeline.public, pipeline.test, usual)
    lonely = int(np.flatnonzero(usual.y == LONELY)[0])
    yield "the only one of its class", usual.without(lonely)
    yield "removed from the front", usual.without(inside[0])
    yield "removed from the end", usual.without(inside[-1])
    for kind, strange in STRANGE.items():
        # An ordinary teacher cannot be trained on it, which is said before anything is paid for.
        if "plain" not in pipeline.recipe or kind != "nearly too large for floats":
            yield f"added: {kind}", usual.plus(strange(usual.x[5]), 1, name, person=name)
    yield "added in front", usual.plus(usual.x[5] * 0.5, 2, name, person=name, at=0)
    if usual.ids is None:
        yield "added: equal to another", usual.plus(usual.x[inside[0]], int(usual.y[inside[0]]), "")
    else:
        # Under ids made from content a changed record is another record.
        other = STRANGE["1e37"](usual.x[inside[1]])
        yield "changed", usual.changed(inside[1], other, (int(usual.y[inside[1]]) + 1) % 3)


def _of_labels(usual: World, inside: list[int], tested: list[int]) -> Iterator[Pair]:
    def relabelled(place: int) -> World:
        return usual.changed(place, usual.x[place], (int(usual.y[place]) + 1) % 3)

    lonely = int(np.flatnonzero(usual.y == LONELY)[0])
    first, last = relabelled(inside[0]), relabelled(inside[-1])
    yield Pair("another label", (usual,), (first,))
    yield Pair("another label at the end", (usual,), (last,))
    yield Pair("the only label of its class", (usual,), (relabelled(lonely),))
    yield Pair("another label in the test part", (usual,), (relabelled(tested[0]),))
    yield Pair("another label between two releases", (usual, usual), (usual, first))


def _of_persons(usual: World, inside: list[int], pipeline: Pipeline) -> Iterator[tuple[str, World]]:
    assert usual.persons is not None
    name = name_in("sensitive", pipeline.public, pipeline.test, usual)
    more = usual
    for number, kind in enumerate([*STRANGE, "another digit"]):
        # All in one class, and more of them than the cap.
        more = more.plus(STRANGE[kind](usual.x[5]), 2, f"visit {number}", person=name, at=0)
    yield "a person with all records in one class", more
    owner = usual.persons[inside[0]]
    own = [i for i, person in enumerate(usual.persons) if person == owner]
    assert len(own) > 1
    yield "a person with two records removed", usual.without(*own)
    yield "a record less of a person", usual.without(own[0])
    changed = usual
    for i in own:
        changed = changed.changed(i, STRANGE["1e37"](usual.x[i]), 2)
    yield "a person changed altogether", changed
    lonely = int(np.flatnonzero(usual.y == LONELY)[0])
    yield "the only one of its class", usual.without(lonely)


QUICK: dict[str, Callable[[str], bool]] = {
    "linear": lambda name: "digit" not in name and "test part: zeros" not in name,
    "linear, all in each step": lambda name: name == "added: 1e37",
    "ids from content": lambda name: "equal" in name or "between" in name,
    "persons": lambda name: "person" in name or "record" in name or "between" in name,
    "network": lambda name: name in ("removed from the front", "added: 1e37"),
    "network, ghost": lambda name: name == "added: 1e37",
    "network of persons": lambda name: name == "a person with all records in one class",
    "rona of persons, teacher": lambda name: name == "a person changed altogether",
    "sketch": lambda name: name in ("the only one of its class", "added: 1e37"),
    "sketch of persons": lambda name: name == "a person with all records in one class",
    "student of the sketch": lambda name: name == "the last of the sensitive part",
    "scattering": lambda name: name == "added: nearly too large for floats",
    "rona, teacher": lambda name: name in ("changed", "the last of the test part"),
    "rona, votes": lambda name: name in ("added: 1e37", "the last of the sensitive part"),
    "rona, gated": lambda name: name == "the only one of its class",
    "rona, hints": lambda name: name == "added: 1e37",
    "dpdfd, teacher": lambda name: name == "added: 1e37",
    "dpdfd, votes": lambda name: name == "the last of the sensitive part",
    "dpdfd, sketch": lambda name: name == "the only one of its class",
    "pg, heads": lambda name: name in ("added: 1e37", "the only one of its class"),
    "pg, exponential choices": lambda name: name == "the last of the sensitive part",
    "pg, persons": lambda name: name == "a person with all records in one class",
    "pg, networks": lambda name: name == "added: nearly too large for floats",
    "dpdfd, certified teacher": lambda name: name == "the last of the sensitive part",
}
"""The pairs of `make test`, at most 50; `make test-slow` has all of them."""


def chosen(pipeline: str, *, quick: bool) -> list[Pair]:
    """The pairs of a pipeline, in `make test` or in `make test-slow`."""
    wanted = QUICK.get(pipeline, lambda name: False) if quick else lambda name: True
    return [pair for pair in pairs(PIPELINES[pipeline]) if wanted(pair.name)]
