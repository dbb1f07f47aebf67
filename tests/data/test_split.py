"""A split follows each unit's own hash: nobody moves because somebody else came or went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from stillroom.data import Dataset, Split, shards
from stillroom.data.dataset import class_names
from stillroom.errors import BadInput

Assign = Callable[[Sequence[str]], Mapping[str, object]]
NAME = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=5).filter(str.strip)
NAMES = st.lists(NAME, unique=True, min_size=2)
KEYS = st.text(min_size=1, max_size=80)
FALSE_ALARM = 1e-6


def people(ids: Sequence[str], persons: Sequence[str] | None = None, y: object = None) -> Dataset:
    labels = np.zeros(len(ids), dtype=int) if y is None else y
    x = np.arange(len(ids))[:, None]
    return Dataset(x, labels, ("well", "ill", "rare"), tuple(ids), persons)


def part_of(split: Split) -> dict[str, str]:
    parts = {"public": split.public, "sensitive": split.sensitive, "test": split.test}
    return {name: part for part, dataset in parts.items() for name in dataset.ids}


def by_fraction(ids: Sequence[str]) -> Mapping[str, object]:
    return part_of(Split.by_fraction(people(ids), "key"))


def by_class(ids: Sequence[str]) -> Mapping[str, object]:
    y = [len(name) % 3 for name in ids]
    return part_of(Split.by_class(people(ids, y=y), "key", sensitive_classes=["rare"]))


def as_given(ids: Sequence[str]) -> Mapping[str, object]:
    test = Dataset([[0]], [0], ("well", "ill", "rare"))
    return part_of(Split.as_given(people(ids), test, public="2/5", key="key"))


def by_shard(ids: Sequence[str]) -> Mapping[str, object]:
    return dict(zip(ids, shards(ids, 3, "key").tolist(), strict=True))


def positional_split(ids: Sequence[str]) -> Mapping[str, object]:
    """The broken twin: the first two fifths of the file are public."""
    return {name: row < 0.4 * len(ids) for row, name in enumerate(ids)}


def positional_shards(ids: Sequence[str]) -> Mapping[str, object]:
    """The broken twin: deal the rows out like cards."""
    return {name: row % 3 for row, name in enumerate(ids)}


def ranked_split(ids: Sequence[str]) -> Mapping[str, object]:
    """The broken twin that looks hashed: exact shares, by the rank of the shard hash."""
    ranked = sorted(ids, key=lambda name: shards([name], 1 << 60, "key")[0])
    return {name: rank < 0.4 * len(ids) for rank, name in enumerate(ranked)}


def moved(assign: Assign, ids: Sequence[str], leaver: int) -> list[str]:
    """Who changes place when one leaves (or, read the other way round, when one comes)."""
    fewer = [name for row, name in enumerate(ids) if row != leaver]
    before, after = assign(ids), assign(fewer)
    return [name for name in fewer if before[name] != after[name]]


REAL = [by_fraction, by_class, as_given, by_shard]
TWINS = [positional_split, positional_shards, ranked_split]


@pytest.mark.parametrize("assign", REAL)
@settings(deadline=None)
@given(ids=NAMES, data=st.data())
def test_one_more_or_less_moves_no_other(
    assign: Assign, ids: list[str], data: st.DataObject
) -> None:
    assert moved(assign, ids, data.draw(st.integers(0, len(ids) - 1))) == []
    shuffled = data.draw(st.permutations(ids))
    assert assign(shuffled) == assign(ids)


@pytest.mark.parametrize("assign", REAL + TWINS)
def test_the_same_check_catches_positional_twins(assign: Assign) -> None:
    ids = [f"record {i}" for i in range(40)]
    somebody_moves = any(moved(assign, ids, leaver) for leaver in range(len(ids)))
    assert somebody_moves == (assign in TWINS)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 2)), min_size=1),
    key=KEYS,
)
def test_a_person_stays_together_and_withheld_classes_stay_in(
    rows: list[tuple[str, int]], key: str
) -> None:
    persons, y = zip(*rows, strict=True)
    data = people([str(i) for i in range(len(rows))], persons, y)
    for split in (
        Split.by_fraction(data, key),
        Split.by_class(data, key, ["rare"], public="9/10", test="1/10"),
    ):
        homes = [set(part.persons or ()) for part in (split.public, split.sensitive, split.test)]
        assert sum(map(len, homes)) == len(set(persons))
        assert len(split.public) + len(split.sensitive) + len(split.test) == len(rows)
    owners = {person for person, label in rows if label == 2}
    assert owners.isdisjoint(split.public.persons or ())
    others = Split.by_fraction(data, key, public="89/100", test="1/10")
    assert set(others.test.persons or ()) == set(split.test.persons or ())


def test_withheld_classes_without_persons() -> None:
    y = [i % 3 for i in range(300)]
    data = people([str(i) for i in range(300)], y=y)
    split = Split.by_class(data, "key", ["rare", "ill"], public="9/10", test="1/10")
    assert set(split.public.y.tolist()) == {0}
    assert set(split.sensitive.y.tolist()) == {1, 2}
    assert set(split.test.y.tolist()) == {0, 1, 2}


@settings(deadline=None)
@given(key=KEYS)
def test_another_key_is_another_split(key: str) -> None:
    ids = [str(i) for i in range(400)]
    same = part_of(Split.by_fraction(people(ids), key))
    assert same == part_of(Split.by_fraction(people(ids), key))
    # Chance that two independent splits agree everywhere: (0.4^2 + 0.5^2 + 0.1^2)^400 < 1e-150.
    assert same != part_of(Split.by_fraction(people(ids), key + "'"))


def within(count: int, size: int, share: Fraction, tests: int) -> bool:
    """Whether a binomial count lies in its exact two-sided range at FALSE_ALARM over all tests."""
    level = FALSE_ALARM / (2 * tests)
    low, high = binom.ppf([level, 1 - level], size, float(share))
    return bool(low <= count <= high)


def test_shares_are_met_up_to_chance() -> None:
    size = 20000
    split = Split.by_fraction(people([str(i) for i in range(size)]), "key", 0.4, "1/10")
    shares = {"public": Fraction(2, 5), "sensitive": Fraction(1, 2), "test": Fraction(1, 10)}
    for part, share in shares.items():
        assert within(len(getattr(split, part)), size, share, tests=3), part


def test_shards_are_balanced_inside_every_part() -> None:
    """Also inside the sensitive part: the shard hash must not be the split hash over again."""
    size, count = 100_000, 50
    data = people([str(i) for i in range(size)])
    sensitive = Split.by_fraction(data, "key").sensitive
    for ids in (data.ids, sensitive.ids):
        sizes = np.bincount(shards(ids, count, "key"), minlength=count)
        assert all(within(s, len(ids), Fraction(1, count), tests=2 * count) for s in sizes)


def test_a_lopsided_hash_is_caught_by_the_same_check() -> None:
    """The broken twin: one byte modulo 50 favours the first six shards by a fifth."""
    size, count = 100_000, 50
    sizes = np.bincount(np.arange(size) % 256 % count, minlength=count)
    assert not all(within(s, size, Fraction(1, count), tests=2 * count) for s in sizes)


def test_floats_are_meant_as_written() -> None:
    data = people([str(i) for i in range(500)])
    written = [(0.4, 0.1), ("0.4", "0.1"), ("2/5", "1/10"), (Fraction(2, 5), Fraction(1, 10))]
    assert len({str(part_of(Split.by_fraction(data, "key", *shares))) for shares in written}) == 1
    with pytest.raises(BadInput):
        Split.by_fraction(data, "key", 0.9, 0.1)


@pytest.mark.parametrize(
    ("public", "test"),
    [(1, 0), (0.6, 0.5), (-0.1, 0.1), (0.1, -0.1), ("half", 0), (float("nan"), 0), ("1/0", 0)],
)
def test_impossible_shares(public: object, test: object) -> None:
    with pytest.raises(BadInput) as caught:
        Split.by_fraction(people(["a", "b"]), "key", public, test)  # type: ignore[arg-type]
    assert caught.value.remedy


def test_other_bad_requests() -> None:
    data = people(["a", "b"])
    for request in (
        lambda: Split.by_fraction(data, ""),
        lambda: Split.by_class(data, "key", ["unheard-of"]),
        lambda: Split.by_class(data, "key", "ill"),
        lambda: Split.as_given(data, people(["c"]), public=0.5),
        lambda: Split.as_given(data, people(["c"]), public=1, key="key"),
        lambda: shards(["a"], 0, "key"),
        lambda: shards([], 3, ""),
    ):
        with pytest.raises(BadInput) as caught:
            request()
        assert caught.value.remedy


def test_shares_of_nothing_give_empty_parts() -> None:
    split = Split.by_fraction(people(["a", "b"]), "key", public=0, test=0)
    assert (len(split.public), len(split.sensitive), len(split.test)) == (0, 2, 0)


def test_as_given_keeps_equal_pictures_apart() -> None:
    train = Dataset([[1], [2]], [0, 1], class_names(2))
    test = Dataset([[2], [3]], [1, 0], class_names(2))
    split = Split.as_given(train, test)
    assert set(train.ids) & set(test.ids)
    assert split.test.ids == test.ids
    assert split.sensitive.ids == (train.ids[0], f"{train.ids[1][:-1]}1")
    assert len(split.public) == 0


def test_a_tested_record_moves_no_equal_training_record() -> None:
    """Numbers of equal records are counted over all parts, so they must not decide a place."""
    classes = class_names(2)
    rows = np.arange(600).reshape(300, 2)
    train = Dataset(rows, np.zeros(300, int), classes)
    for more in (rows[:1], rows[:40]):
        test = Dataset(np.concatenate([[[900, 901]], more]), np.zeros(1 + len(more), int), classes)
        before = Split.as_given(train, test.select([0]), public="1/2", key="key")
        after = Split.as_given(train, test, public="1/2", key="key")
        assert {*before.sensitive.ids, *before.public.ids} == set(train.ids)
        assert {*after.sensitive.ids, *after.public.ids} != set(train.ids)
        for part in ("public", "sensitive"):
            assert np.array_equal(getattr(before, part).x, getattr(after, part).x)
        own = [split.sensitive.units for split in (before, after)]
        assert shards(own[0], 7, "key").tolist() == shards(own[1], 7, "key").tolist()


def test_equal_records_share_a_part_and_a_shard() -> None:
    data = Dataset(np.repeat(np.arange(60), 5)[:, None], np.zeros(300, int), class_names(2))
    part = part_of(Split.by_fraction(data, "key"))
    assert len({(i.rpartition("-")[0], part[i]) for i in data.ids}) == 60
    assert len(set(zip(data.x[:, 0], shards(data.units, 9, "key"), strict=True))) == 60


def test_as_given_refuses_one_record_or_person_in_two_parts() -> None:
    train = people(["a", "b"], ["anna", "ben"])
    for test in (people(["b"], ["cleo"]), people(["c"], ["ben"]), people(["c"])):
        with pytest.raises(BadInput) as caught:
            Split.as_given(train, test)
        assert caught.value.remedy
        assert "ben" not in str(caught.value)


def test_as_given_with_public_data_from_elsewhere() -> None:
    train, test = people(["a", "b"]), people(["c"])
    split = Split.as_given(train, test, public=people(["d", "e"]))
    assert part_of(split) == {
        "a": "sensitive", "b": "sensitive", "c": "test", "d": "public", "e": "public"
    }  # fmt: skip
    with pytest.raises(BadInput, match="two parts"):
        Split.as_given(train, test, public=people(["a"]))
    with pytest.raises(BadInput, match="shape"):
        Split.as_given(train, test, public=Dataset([[1, 2]], [0], ("well", "ill", "rare")))
    with pytest.raises(BadInput, match="classes"):
        Split.as_given(train, test, public=Dataset([[1]], [0], ("well", "ill")))


def test_as_given_withholds_sensitive_classes() -> None:
    train = Dataset(np.arange(400).reshape(200, 2), np.arange(200) % 4, ("a", "b", "c", "d"))
    test = Dataset(np.arange(400, 440).reshape(20, 2), np.arange(20) % 4, ("a", "b", "c", "d"))
    some = Split.as_given(train, test, public="1/2", key="key", sensitive_classes=["b"])
    every = Split.as_given(train, test, public="1/2", key="key")
    assert set(some.public.y.tolist()) == {0, 2, 3}
    assert set(some.sensitive.ids) >= set(every.sensitive.ids)
    assert len(some.public) + len(some.sensitive) == 200
    with pytest.raises(BadInput, match="sensitive class"):
        Split.as_given(train, test, public="1/2", key="key", sensitive_classes=["e"])
