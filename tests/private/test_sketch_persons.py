"""The sketch of persons: all of one person's records move a sum by its bound at most."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from private.test_sketch import BASIS, CLASSES, EACH, TIGHT, WHITE, pictures_of, public_of
from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.private.sketch import sketch_records
from stillroom.vocabulary import Norm, Relation, Sealed, Unit

MOST = 3
SIZE = 24


def world(seed, own):
    """Persons with two records each, and one whose records are all the same, in one class."""
    pictures, labels = pictures_of(seed, SIZE)
    names = [f"person {i // 2}" for i in range(SIZE)]
    x = np.concatenate([pictures, np.full((own, 8, 8), 16)]).astype(np.float64)
    y = np.concatenate([labels, np.ones(own, dtype=np.int64)])
    ids = tuple(f"record {i}" for i in range(len(y)))
    return Dataset(x, y, CLASSES, ids=ids, persons=(*names, *["x"] * own))


def releases(data, clip, seed, most=MOST):
    own = sketch_records(
        Sealed(data),
        basis=BASIS,
        full_scale=16.0,
        clip=clip,
        unit=Unit.PERSON,
        max_records_per_person=most,
    )
    means, axes, centres = public_of(seed)
    return {
        "class_sums": own.class_sums(),
        "second_moment": own.second_moment(means),
        "cluster_sums": own.cluster_sums(means, axes, centres),
        "cluster_moments": own.cluster_moments(means, axes, centres),
    }


def moved(first, second):
    """Of each release: the squared distance of two worlds, and what is allowed."""
    for name, value in first.items():
        away = value.open_bounded() - second[name].open_bounded()
        (allowed,) = set(value.sensitivity.bounds.values())
        yield name, int((away.astype(object) ** 2).sum()), allowed


@pytest.mark.parametrize("clip", [TIGHT, WHITE], ids=["tight", "whitened"])
@pytest.mark.parametrize("own", [1, 2, MOST, 5 * MOST])
def test_a_person_moves_each_release_by_its_bound_at_most(clip, own):
    """A person with more records than the cap is capped."""
    for seed in range(8):
        with_all = releases(world(seed, own), clip, seed)
        for name, far, allowed in moved(with_all, releases(world(seed, 0), clip, seed)):
            assert far <= allowed, name


def test_the_worst_person_comes_near_the_bound_and_beyond_a_record_s():
    """A bound without the cap squared, or with the cap alone, would be found out."""
    with_all, without = releases(world(1, MOST), TIGHT, 1), releases(world(1, 0), TIGHT, 1)
    for name, far, allowed in moved(with_all, without):
        assert far > 0.9 * allowed, name
        assert far > allowed / MOST, name


def test_a_cap_that_is_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr("stillroom.private.sketch.capped", lambda records, most: records)
    with_all, without = releases(world(1, 9), TIGHT, 1), releases(world(1, 0), TIGHT, 1)
    assert {name for name, far, allowed in moved(with_all, without) if far > allowed} == set(EACH)


def test_a_changed_person_moves_by_twice_the_radius_at_most():
    one, other = world(2, MOST), world(2, MOST)
    x = other.x.copy()
    x[-MOST:] = 0
    x[-MOST:, 0, 0] = 16
    labels = other.y.copy()
    labels[-MOST:] = 0
    changed = Dataset(x, labels, CLASSES, ids=other.ids, persons=other.persons)
    for name, far, allowed in moved(releases(one, TIGHT, 2), releases(changed, TIGHT, 2)):
        assert far <= 4 * allowed, name
        assert name == "second_moment" or far > allowed, name


def test_every_pair_of_persons_has_a_bound():
    for value in releases(world(3, 2), WHITE, 3).values():
        sensitivity = value.sensitivity
        assert sensitivity.norm is Norm.CONTRIBUTION_SQUARED
        assert {(pair.unit, pair.relation) for pair in sensitivity.bounds} == {
            (Unit.PERSON, relation) for relation in Relation
        }
    (bound,) = set(releases(world(3, 2), WHITE, 3)["class_sums"].sensitivity.bounds.values())
    assert bound == Fraction(2 * 10240**2 * MOST**2)


def test_records_that_name_no_persons_are_refused():
    data = world(4, 1)
    nobody = Dataset(data.x, data.y, CLASSES, ids=data.ids)
    with pytest.raises(BadInput, match="name no persons"):
        releases(nobody, TIGHT, 4)
