"""Parts that are passed on sealed, and splits with some of their members only."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

from stillroom.data import About, Dataset, Split, digits
from stillroom.errors import BadInput
from stillroom.vocabulary import Sealed


def visits(persons: bool = True) -> Split:
    names = [f"secret person {i // 2}" for i in range(40)] if persons else None
    ids = tuple(f"secret visit {i}" for i in range(40))
    columns = ("age", "weight")
    x = np.arange(80.0).reshape(40, 2)
    whole = Dataset(x, np.zeros(40, dtype=int), ("well", "ill"), ids, names, "visits", columns)
    return Split.by_fraction(whole, "key", public="1/4", test="1/4")


@pytest.mark.parametrize("test_is_public", [False, True])
def test_what_is_not_public_is_sealed(test_is_public: bool) -> None:
    split = visits()
    parts = split.sealed(test_is_public)
    assert parts.public is split.public
    assert isinstance(parts.sensitive, Sealed)
    assert parts.sensitive.open_sealed() is split.sensitive
    assert isinstance(parts.test, Dataset if test_is_public else Sealed)
    opened = parts.test.open_sealed() if isinstance(parts.test, Sealed) else parts.test
    assert opened is split.test


def test_ids_are_there_for_the_gate() -> None:
    split = visits()
    known = split.sealed(False).sensitive.sealed_ids()
    assert (known.ids, known.persons) == (split.sensitive.ids, split.sensitive.persons)


def test_nothing_in_the_repr_tells_of_a_record() -> None:
    for parts in (visits().sealed(False), visits().members(np.ones(24, dtype=bool)).sealed(True)):
        assert "secret" not in repr(parts)
        assert "24" not in repr(parts)


def test_what_is_public_about_sealed_records() -> None:
    assert visits().sealed(False).about == About(
        (2,), ("well", "ill"), ("age", "weight"), False, True
    )
    assert not visits(persons=False).sealed(False).about.names_persons
    drawn = Split.by_fraction(digits(), "key").sealed(False).about
    assert drawn == About((8, 8), tuple("0123456789"), None, True, False)


def test_one_record_more_or_less_is_not_in_what_is_public() -> None:
    split = visits()
    for without in range(len(split.sensitive)):
        mask = np.arange(len(split.sensitive)) != without
        assert split.members(mask).sealed(False).about == split.sealed(False).about
    nobody = split.members(np.zeros(len(split.sensitive), dtype=bool))
    assert nobody.sealed(False).about == split.sealed(False).about


def test_sealed_parts_reach_a_worker_sealed() -> None:
    parts = pickle.loads(pickle.dumps(visits().sealed(False)))
    assert isinstance(parts.sensitive, Sealed)
    assert parts.sensitive.open_sealed().ids == visits().sensitive.ids


def test_members_keep_ids_persons_and_the_other_parts() -> None:
    split = visits()
    mask = np.arange(len(split.sensitive)) % 3 == 0
    some = split.members(mask)
    assert some.public is split.public
    assert some.test is split.test
    assert some.sensitive.ids == split.sensitive.ids[::3]
    assert some.sensitive.persons == split.sensitive.persons[::3]
    assert np.array_equal(some.sensitive.x, split.sensitive.x[::3])
    assert np.array_equal(some.sensitive.y, split.sensitive.y[::3])
    assert len(split.sensitive) == len(mask)
    again = some.members(np.ones(len(some.sensitive), dtype=bool))
    assert again.sensitive.ids == some.sensitive.ids


@pytest.mark.parametrize(
    "mask",
    [
        np.array([0, 1]),
        np.ones(24, dtype=int),
        np.ones(23, dtype=bool),
        np.ones((24, 1), dtype=bool),
        [],
        True,
    ],
)
def test_a_mask_is_one_truth_value_per_record(mask: object) -> None:
    split = visits()
    assert len(split.sensitive) == 24
    with pytest.raises(BadInput, match="one truth value per sensitive record") as refused:
        split.members(mask)
    assert "24" not in str(refused.value)


def test_hundreds_of_masks_hash_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    split = Split.by_fraction(digits(), "key")
    for hasher in ("stillroom.data.dataset.hashlib.sha256", "stillroom.data.split.hmac.digest"):
        monkeypatch.setattr(hasher, None)
    rng = np.random.default_rng(7)
    masks = rng.random((300, len(split.sensitive))) < 0.5
    start = time.perf_counter()
    for mask in masks:
        assert len(split.members(mask).sensitive) == mask.sum()
    # Some 0.1 ms each; ten times that on a busy machine.
    assert time.perf_counter() - start < 3
