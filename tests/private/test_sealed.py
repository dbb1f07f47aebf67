"""Doors that take sealed records: the same as with the records themselves, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from stillroom.data import Dataset, digits
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.features.basis import Basis
from stillroom.models import AsPictures
from stillroom.private import (
    Clip,
    Ensemble,
    EnsemblePlan,
    LinearPersons,
    LinearRecords,
    SketchClip,
    SketchRecords,
    cap_records,
    capped,
    confusion,
    linear_records,
    look_at,
    overlaps,
    sketch_records,
)
from stillroom.private.network_clip import NetworkClip
from stillroom.private.network_persons import network_records
from stillroom.private.networks import NetworkRecords
from stillroom.vocabulary import Sealed, Unit

DATA = digits().select(np.arange(200))


def of_persons(size=60):
    return Dataset(
        np.arange(size * 4.0).reshape(size, 2, 2) % 7,
        np.arange(size) % 3,
        3,
        ids=[f"r{i}" for i in range(size)],
        persons=[f"p{i % 11}" for i in range(size)],
    )


def test_linear_sums_are_those_of_the_records():
    weights, clip = np.zeros((10, 65), np.float32), Clip("1/2")
    sums = [
        records.clipped_sum(weights, clip, None).open_bounded()
        for records in (
            linear_records(Sealed(DATA), pixels),
            LinearRecords(pixels(DATA.x), DATA.y, 10),
        )
    ]
    assert np.array_equal(*sums)


def test_persons_are_capped_and_summed_as_one():
    data = of_persons()
    sealed = capped(Sealed(data), 3)
    kept = data.select(cap_records(data.persons, data.ids, 3))
    assert sealed.open_sealed().ids == kept.ids
    weights, clip = np.zeros((3, 5), np.float32), Clip("1/2")
    own = linear_records(sealed, pixels, Unit.PERSON, 3)
    other = LinearPersons(pixels(kept.x), kept.y, 3, kept.persons, 3)
    assert isinstance(own, LinearPersons)
    sums = [r.clipped_sum(weights, clip, None).open_bounded() for r in (own, other)]
    assert np.array_equal(*sums)


def test_persons_that_are_not_named_are_refused():
    """A fall back to records would declare less than one person can move."""
    for door in (
        lambda: linear_records(Sealed(DATA), pixels, Unit.PERSON, 3),
        lambda: capped(Sealed(DATA), 3),
        lambda: confusion(Sealed(DATA), lambda data: data.y, unit=Unit.PERSON),
    ):
        with pytest.raises(BadInput, match="name no persons"):
            door()
    with pytest.raises(BadInput, match="more than 1"):
        linear_records(Sealed(of_persons()), pixels, Unit.PERSON, 1)


def test_network_sums_are_those_of_the_records():
    network, pictures = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), AsPictures((8, 8), 16)
    weights, clip = np.full(650, 0.01, np.float32), NetworkClip(1)
    given = pictures(torch.from_numpy(np.array(DATA.x)))
    sums = [
        records.clipped_sum(weights, clip, None, step=1).open_bounded()
        for records in (
            network_records(Sealed(DATA), pictures, network),
            NetworkRecords(given, DATA.y, 10, network),
        )
    ]
    assert np.array_equal(*sums)


def test_sketches_are_those_of_the_records():
    parts = {"basis": Basis(8, 8, 20), "full_scale": 16.0, "clip": SketchClip()}
    own, other = sketch_records(Sealed(DATA), **parts), SketchRecords(DATA.x, DATA.y, 10, **parts)
    assert np.array_equal(own.class_sums().open_bounded(), other.class_sums().open_bounded())


def test_teachers_are_those_of_the_records():
    plan, engine = EnsemblePlan(count=5, key="a test", shard_cap=60), Engine("serial")
    own, other = (
        Ensemble.train(records, None, plan, engine=engine) for records in (Sealed(DATA), DATA)
    )
    assert own.fingerprints() == other.fingerprints()


def test_counts_are_those_of_the_records():
    own, other = (confusion(records, lambda data: data.y) for records in (Sealed(DATA), DATA))
    assert np.array_equal(own.open_bounded(), other.open_bounded())
    assert own.open_bounded().sum() == len(DATA)


def test_a_look_gives_nothing_back():
    seen = []
    assert look_at(Sealed(DATA), seen.append) is None
    assert seen[0] is DATA.x


def test_an_overlap_is_found():
    first, second = DATA.select(np.arange(50)), DATA.select(np.arange(49, 90))
    assert overlaps(Sealed(first), second)
    assert not overlaps(Sealed(first), second.select(np.arange(1, 41)))
