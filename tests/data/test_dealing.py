"""Records dealt to entities: evenly, or as they come."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.data import digits
from stillroom.data.dealing import Dealing
from stillroom.errors import BadInput
from stillroom.private.entities import dealt
from stillroom.private.sealed import opened


@pytest.mark.parametrize("smallest", [None, 5])
def test_one_record_more_or_less_moves_no_other(smallest):
    data, dealing = digits(), Dealing(20, 2000, smallest=smallest)
    whole = [opened(part).ids for part in dealt(data, dealing, "a test")]
    less = [opened(part).ids for part in dealt(data.select(np.arange(1, 1797)), dealing, "a test")]
    changed = [(one, other) for one, other in zip(whole, less, strict=True) if one != other]
    assert len(changed) == 1
    assert set(changed[0][0]) - set(changed[0][1]) == {data.ids[0]}


def test_every_record_is_at_one_entity():
    data = digits()
    for smallest in (None, 3):
        parts = dealt(data, Dealing(20, 2000, smallest=smallest), "a test")
        names = [name for part in parts for name in opened(part).ids]
        assert sorted(names) == sorted(data.ids)


def test_a_surplus_is_left_out_by_hash():
    sizes = [len(opened(part)) for part in dealt(digits(), Dealing(10, 100), "a test")]
    assert max(sizes) == 100


def test_uneven_entities_differ_in_size_and_classes():
    data = digits()
    even = [opened(part) for part in dealt(data, Dealing(20, 2000), "a test")]
    uneven = [opened(part) for part in dealt(data, Dealing(20, 2000, smallest=5), "a test")]

    def of_the_commonest_class(part):
        return np.bincount(part.y, minlength=10).max() / max(1, len(part))

    assert max(map(len, even)) < 3 * min(map(len, even))
    assert max(map(len, uneven)) > 20 * max(1, min(map(len, uneven)))
    assert np.mean([of_the_commonest_class(p) for p in even]) < 0.25
    assert np.mean([of_the_commonest_class(p) for p in uneven if len(p)]) > 0.4


def test_numbers_out_of_range_are_refused():
    with pytest.raises(BadInput, match="smallest"):
        Dealing(5, 10, smallest=11)
