"""A data set refuses what it cannot vouch for, and its ids follow the records, not the rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillroom.data import Dataset
from stillroom.data.dataset import class_names
from stillroom.errors import BadInput

SECRET = "4242.4242"
GOOD = {
    "x": np.arange(12.0).reshape(3, 4),
    "y": [0, 1, 1],
    "classes": ("cat", "dog"),
    "ids": ("a", "b", "c"),
    "persons": ("p", "q", "p"),
    "name": "pets",
}
BAD = {
    "labels shorter": ({"y": [0, 1]}, "as many labels"),
    "ids longer": ({"ids": ("a", "b", "c", "d")}, "as many ids"),
    "persons shorter": ({"persons": ("p",)}, "as many persons"),
    "persons none": ({"persons": ()}, "as many persons"),
    "no records": ({"x": np.zeros((0, 4)), "y": [], "ids": (), "persons": None}, "no records"),
    "no features": ({"x": np.zeros((3, 0))}, "no features"),
    "records without axes": ({"x": np.zeros(3)}, "no features"),
    "NaN pixel": ({"x": [[0.0], [float(SECRET)], [np.nan]]}, "record 2"),
    "infinite pixel": ({"x": [[0.0], [-np.inf], [float(SECRET)]]}, "record 1"),
    "huge integer": ({"x": np.array([[0], [2**53 + 1], [1]])}, "record 1"),
    "label too large": ({"y": [0, 4242, 1]}, "record 1"),
    "label negative": ({"y": [0, 1, -1]}, "record 2"),
    "label not whole": ({"y": [0.0, 1.0, 1.0]}, "one integer per record"),
    "labels one-hot": ({"y": np.eye(3, dtype=int)}, "2 axes"),
    "labels ragged": ({"y": [[0], [1, 1], 1]}, "same shape"),
    "records ragged": ({"x": [[0.0], [1.0, 2.0], [3.0]]}, "same shape"),
    "duplicate id": ({"ids": (SECRET, "b", SECRET)}, "record 2"),
    "empty id": ({"ids": ("a", " ", "c")}, "record 1"),
    "id of another type": ({"ids": ("a", 1.5, "c")}, "record 1"),
    "empty person": ({"persons": (SECRET, "q", "")}, "record 2"),
    "objects": ({"x": np.array([[SECRET], [None], [3]], dtype=object)}, "not object"),
    "text": ({"x": np.array([[SECRET]] * 3)}, "64 bits"),
    "classes unknown": ({"classes": ()}, "classes are not known"),
    "classes none": ({"classes": None}, "classes are not known"),
    "one class": ({"classes": ("cat",)}, "two or more"),
    "class twice": ({"classes": ("cat", "cat")}, "two or more"),
    "class names in one text": ({"classes": "cat,dog"}, "classes are not known"),
    "too many classes": ({"classes": 10**12}, "classes are not known"),
}


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_used_is_refused_without_showing_it(change: dict, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        Dataset(**(GOOD | change))
    assert words in str(caught.value)
    assert caught.value.remedy
    assert caught.value.where.startswith(("pets", "classes"))
    assert "4242" not in str(caught.value)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32", "float64", "bool"])
def test_records_stay_as_given(dtype: str) -> None:
    x = np.array([[[0, 1], [1, 0]]] * 2).astype(dtype)
    dataset = Dataset(x, [0, 1], classes=("no", "yes"))
    assert dataset.x.dtype == x.dtype
    assert np.array_equal(dataset.x, x)
    assert dataset.y.dtype == np.int64
    assert dataset.shape == (2, 2)


def test_classes_are_declared_and_may_be_absent() -> None:
    assert Dataset([[1], [2]], [0, 0], classes=class_names(10)).classes == tuple("0123456789")


def test_repr_shows_neither_values_nor_their_number() -> None:
    dataset = Dataset(**GOOD)
    assert repr(dataset) == "Dataset('pets', shape=(4,), classes=2)"


def test_nothing_can_be_changed_afterwards() -> None:
    dataset = Dataset(**GOOD)
    with pytest.raises(AttributeError):
        dataset.y = dataset.y  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        dataset.x[0, 0] = 1
    again = pickle.loads(pickle.dumps(dataset))
    assert again.ids == dataset.ids


def test_units_are_persons_where_they_are_known() -> None:
    dataset = Dataset(**GOOD)
    assert dataset.units == ("p", "q", "p")
    assert Dataset(**(GOOD | {"persons": None})).units == ("a", "b", "c")


def test_integer_ids_become_text() -> None:
    assert Dataset(**(GOOD | {"ids": np.array([3, 1, 2])})).ids == ("3", "1", "2")


def test_select_keeps_names_with_their_records() -> None:
    dataset = Dataset(**GOOD)
    by_mask, by_place = dataset.select([True, False, True]), dataset.select([2, 0])
    assert (by_mask.ids, by_mask.persons, by_mask.y.tolist()) == (("a", "c"), ("p", "p"), [0, 1])
    assert (by_place.ids, by_place.x[0].tolist()) == (("c", "a"), [8.0, 9.0, 10.0, 11.0])
    empty = dataset.select([])
    assert (len(empty), empty.shape, empty.classes) == (0, (4,), dataset.classes)


@pytest.mark.parametrize("which", [[True, False], [0, 0], [3], [-1], [[0]], [0.5], ["a"]])
def test_select_refuses_what_is_not_a_choice(which: list) -> None:
    with pytest.raises(BadInput) as caught:
        Dataset(**GOOD).select(which)
    assert caught.value.remedy


Record = tuple[int, int, str]
RECORDS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from("pq")), min_size=1, max_size=12
)
NameRecords = Callable[[Sequence[Record]], Sequence[str]]


def content_ids(records: Sequence[Record]) -> Sequence[str]:
    x, y, persons = zip(*records, strict=True)
    return Dataset(np.array(x)[:, None], y, class_names(2), persons=persons).ids


def row_number_ids(records: Sequence[Record]) -> Sequence[str]:
    """The broken twin: what K7 forbids."""
    return [str(row) for row in range(len(records))]


def ids_follow_records(
    name: NameRecords, before: Sequence[Record], after: Sequence[Record]
) -> bool:
    """Whether every (id, record) pair that can have stayed did stay."""
    pairs_before = set(zip(name(before), before, strict=True))
    pairs_after = set(zip(name(after), after, strict=True))
    kept = sum(min(before.count(r), after.count(r)) for r in set(before))
    return len(pairs_before & pairs_after) == kept


@settings(deadline=None)
@given(records=RECORDS, data=st.data())
def test_ids_survive_reordering_adding_and_removing(
    records: list[Record], data: st.DataObject
) -> None:
    assert len(set(content_ids(records))) == len(records)
    assert ids_follow_records(content_ids, records, data.draw(st.permutations(records)))
    more = data.draw(st.permutations([*records, data.draw(RECORDS)[0]]))
    assert ids_follow_records(content_ids, records, more)
    assert ids_follow_records(content_ids, more, records)


def test_row_numbers_are_caught_by_the_same_check() -> None:
    before = [(0, 0, "p"), (1, 0, "p"), (2, 1, "q")]
    assert ids_follow_records(content_ids, before, before[1:])
    assert not ids_follow_records(row_number_ids, before, before[1:])


def test_the_same_numbers_have_the_same_ids_in_every_type_and_shape() -> None:
    x = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    ids = {
        Dataset(made, [0, 1], class_names(2)).ids
        for made in (
            x.astype(np.uint8),
            x.astype(">i4"),
            x.astype(np.float32),
            x.reshape(2, 2, 2),
            np.where(x == 0, -0.0, x),
        )
    }
    assert len(ids) == 1


def test_label_and_person_are_part_of_the_content() -> None:
    x = [[7], [7], [7]]
    by_label = Dataset(x, [0, 1, 1], class_names(2)).ids
    by_person = Dataset(x, [0, 0, 0], class_names(2), persons=("p", "q", "q")).ids
    assert [name.split("-")[1] for name in by_label] == ["0", "0", "1"]
    assert [name.split("-")[1] for name in by_person] == ["0", "0", "1"]
