"""Teachers on shards: one record touches one teacher, and positional shards would be caught."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.data import Dataset, digits
from stillroom.errors import BadInput
from stillroom.private import VotingTeachers, teachers
from stillroom.vocabulary import Norm, Pair, Sensitivity, Unit


def weights_changed(data, row):
    """How many teachers differ after one record is gone."""
    whole = VotingTeachers.train(data, count=30, key="a test")
    less = VotingTeachers.train(
        data.select(np.flatnonzero(np.arange(len(data.y)) != row)), count=30, key="a test"
    )
    return sum(not np.array_equal(a, b) for a, b in zip(whole._weights, less._weights, strict=True))


def test_a_removed_record_changes_one_teacher():
    data = digits()
    for row in (0, 700, len(data.y) - 1):
        assert weights_changed(data, row) == 1


def test_positional_shards_are_caught(monkeypatch):
    positional = lambda ids, count, key: np.arange(len(ids)) % count  # noqa: E731
    monkeypatch.setattr(teachers, "shards", positional)
    assert weights_changed(digits(), 0) > 1


def test_features_that_look_at_others_stay_within_one_teacher(monkeypatch):
    honest = teachers._features
    monkeypatch.setattr(
        teachers, "_features", lambda x: honest(x) - honest(x).sum(axis=0) / max(1, len(x))
    )
    assert weights_changed(digits(), 0) == 1


def test_votes_are_bounded_counts():
    data = digits()
    ensemble = VotingTeachers.train(data, count=30, key="a test")
    votes = ensemble.votes(data.x[:7])
    assert votes.shape == (7, 10)
    assert votes.sensitivity == Sensitivity.uniform(Norm.UNIT_STEPS, 2)
    counts = votes.open_bounded()
    assert (counts.sum(axis=1) == 30).all()
    assert (counts.argmax(axis=1) == data.y[:7]).mean() > 0.5


def test_persons_share_a_shard():
    data = digits()
    persons = tuple(f"person {i % 100}" for i in range(len(data.y)))
    owned = Dataset(data.x, data.y, data.classes, ids=data.ids, persons=persons)
    ensemble = VotingTeachers.train(owned, count=10, key="a test")
    assert ensemble.unit is Unit.PERSON
    assert Pair.parse("person/add-or-remove") in ensemble.votes(data.x[:1]).sensitivity.bounds
    without = owned.select(np.array([p != "person 7" for p in persons]))
    less = VotingTeachers.train(without, count=10, key="a test")
    changed = sum(
        not np.array_equal(a, b) for a, b in zip(ensemble._weights, less._weights, strict=True)
    )
    assert changed == 1


def test_an_empty_shard_answers_the_public_default():
    few = digits().select(np.arange(12))
    ensemble = VotingTeachers.train(few, count=12, key="a test")
    empty = [j for j in range(12) if not ensemble._weights[j].any()]
    assert empty, "with 12 records in 12 shards some shard is empty"
    alone = VotingTeachers(ensemble._weights[empty[:1]], Unit.RECORD)
    assert alone.votes(few.x).open_bounded()[:, 0].tolist() == [1] * 12


@pytest.mark.parametrize("count", [0, -1])
def test_too_few_teachers(count):
    with pytest.raises(BadInput, match="teacher"):
        VotingTeachers.train(digits(), count=count, key="a test")
