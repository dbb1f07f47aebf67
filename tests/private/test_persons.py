"""Person level: a person's records are one term, clipped as one, whatever they look like."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.private import Clip, LinearPersons, LinearRecords, cap_records, confusion
from stillroom.vocabulary import Norm, Pair, SecretSample, Unit

CLIP = Clip(Fraction(1, 2))


def crowd(seed, size=24, alike=False):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, 20)).astype(np.float32)
    if alike:
        rows[:] = rows[0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.0001
    persons = [f"p{i % 5}" for i in range(size)]
    return rows, rng.integers(0, 3, size), persons, rng.normal(size=(3, 20)).astype(np.float32)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_every_persons_term_is_within_the_clip_exactly(seed, alike, normalise):
    rows, labels, persons, weights = crowd(seed, alike=alike)
    clip = Clip(Fraction(1, 2), normalise)
    for person in sorted(set(persons)):
        own = np.array([p == person for p in persons])
        alone = LinearPersons(rows[own], labels[own], 3, [person] * own.sum(), 9)
        term = alone.clipped_sum(4 * weights, clip, None).open_bounded()
        assert int((term.astype(object) ** 2).sum()) <= clip.squared_norm
        assert alike or term.any()  # equal rows with different labels may cancel


def test_record_by_record_clipping_would_be_caught():
    """A person with five equal records moves a record-clipped sum five times as far."""
    rows, labels, _, weights = crowd(1, size=5, alike=True)
    labels[:] = 1
    by_record = LinearRecords(rows, labels, 3).clipped_sum(0 * weights, CLIP, None)
    by_person = LinearPersons(rows, labels, 3, ["p"] * 5, 5).clipped_sum(0 * weights, CLIP, None)
    assert int((by_record.open_bounded().astype(object) ** 2).sum()) > 9 * CLIP.squared_norm
    assert int((by_person.open_bounded().astype(object) ** 2).sum()) <= CLIP.squared_norm


def test_single_record_persons_are_records():
    rows, labels, _, weights = crowd(2)
    persons = [f"p{i}" for i in range(len(rows))]
    by_record = LinearRecords(rows, labels, 3).clipped_sum(weights, CLIP, None).open_bounded()
    by_person = LinearPersons(rows, labels, 3, persons, 1).clipped_sum(weights, CLIP, None)
    assert np.abs(by_record - by_person.open_bounded()).max() <= 24 * 2**10
    bounds = by_person.sensitivity.bounds
    assert set(bounds) == {Pair.parse("person/add-or-remove"), Pair.parse("person/change")}


def test_persons_are_sampled_whole():
    rows, labels, persons, weights = crowd(3)
    sizes = []

    def draw(size):
        sizes.append(size)
        return np.arange(size) == 0

    records = LinearPersons(rows, labels, 3, persons, 9)
    sampled = records.clipped_sum(weights, CLIP, SecretSample(Fraction(1, 5), draw))
    own = np.array([p == "p0" for p in persons])
    alone = LinearPersons(rows[own], labels[own], 3, ["p0"] * own.sum(), 9)
    assert sizes == [5]
    expected = alone.clipped_sum(weights, CLIP, None).open_bounded()
    assert np.array_equal(sampled.open_bounded(), expected)


def test_the_cap_is_kept_and_does_not_depend_on_others():
    persons = ["a"] * 10 + ["b"] * 2
    ids = [f"r{i}" for i in range(12)]
    kept = cap_records(persons, ids, most=3)
    assert sum(persons[i] == "a" for i in kept) == 3
    assert sum(persons[i] == "b" for i in kept) == 2
    without_b = cap_records(persons[:10], ids[:10], most=3)
    assert [i for i in kept if i < 10] == without_b.tolist()
    rows, labels, _, _ = crowd(4, size=12)
    with pytest.raises(BadInput, match="more than 3"):
        LinearPersons(rows, labels, 3, persons, 3)


def counted_on(persons, y=None):
    size = len(persons)
    return Dataset(np.zeros((size, 1)), y if y is not None else [0] * size, 2,
                   ids=[f"r{i}" for i in range(size)], persons=persons)  # fmt: skip


def all_first(data):
    return np.zeros(len(data), int)


def test_confusion_counts_know_their_unit():
    data, guesses = counted_on(["a", "a", "b"], [0, 1, 1]), np.array([0, 0, 1])
    counts = confusion(data, lambda data: guesses, unit=Unit.PERSON, records=3)
    assert counts.open_bounded().tolist() == [[1, 0, 1, 1]]
    assert counts.sensitivity.bounds[Pair.parse("person/change")] == 18
    assert counts.sensitivity.norm is Norm.L2_SQUARED
    once = confusion(data, lambda data: guesses, unit=Unit.PERSON)
    assert once.open_bounded().sum() == 2
    assert once.sensitivity.bounds[Pair.parse("person/change")] == 2
    assert once.sensitivity.norm is Norm.UNIT_STEPS
    with pytest.raises(BadInput, match="name no persons"):
        confusion(replace(data, persons=None), lambda data: guesses, unit=Unit.PERSON)


def test_all_records_of_a_person_can_share_a_cell():
    """Ten of them move one count by ten: the squared distance is 100, where 10 was once charged."""
    crowd_of_one = counted_on(["a"] * 10 + ["b"])
    whole = confusion(crowd_of_one, all_first, unit=Unit.PERSON, records=10)
    alone = confusion(crowd_of_one.select([10]), all_first, unit=Unit.PERSON, records=10)
    moved = whole.open_bounded() - alone.open_bounded()
    assert (moved * moved).sum() == 100
    assert whole.sensitivity.bounds[Pair.parse("person/add-or-remove")] == 100


def test_an_empty_test_part_has_a_table_of_zeros():
    counts = confusion(counted_on(["a"]).select([]), all_first, unit=Unit.PERSON)
    assert counts.open_bounded().tolist() == [[0, 0, 0, 0]]
