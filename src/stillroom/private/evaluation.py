"""How a finished model does on sensitive test records, as counts the gate can release (K1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stillroom.data import Dataset
from stillroom.private.persons import cap_records
from stillroom.private.sealed import Records, opened, persons_of
from stillroom.vocabulary import Bounded, Integers, Sensitivity, Unit


def confusion(
    tested: Records,
    guesses: Callable[[Dataset], Integers],
    *,
    unit: Unit = Unit.RECORD,
    records: int = 1,
) -> Bounded:
    """How often each class was taken for each other: one row of counts, possibly all zero.

    Guarantee: one record, or one person with all records, wherever they are counted. Of a person
    at most `records` are counted, chosen by hash of their ids; all may share one cell (K1b).
    Assumes: each guess is a function of its own record and of sanitised things.

    Args:
        tested: the tested records; may be empty.
        guesses: gives a class to each record.
        unit: who is protected.
        records: how many records of a person are counted at most; 1 where records are protected.

    Raises:
        BadInput: persons are to be protected, and the records name none.
    """
    data = opened(tested)
    chosen = np.arange(len(data))
    if unit is Unit.PERSON:
        chosen = cap_records(persons_of(data), data.ids, records)
    classes = len(data.classes)
    table = np.zeros(classes * classes, dtype=np.int64)
    np.add.at(table, data.y[chosen] * classes + guesses(data)[chosen], 1)
    counted = records if unit is Unit.PERSON else 1
    return Bounded(table.reshape(1, -1), Sensitivity.of_counts(counted, unit))
