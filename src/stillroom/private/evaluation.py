"""How a finished model does on sensitive test records, as counts the gate can release (K1)."""

from __future__ import annotations

import numpy as np

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.private.persons import cap_records
from stillroom.vocabulary import Bounded, Integers, Sensitivity, Unit


def confusion(
    data: Dataset, guesses: Integers, *, unit: Unit = Unit.RECORD, records: int = 1
) -> Bounded:
    """How often each class was taken for each other: one row of counts, possibly all zero.

    Guarantee: one record, or one person with all records, wherever they are counted. Of a person
    at most `records` are counted, chosen by hash of their ids; all may share one cell (K1b).
    Assumes: each guess is a function of its own record and of sanitised things.

    Args:
        data: the tested records; may be empty.
        guesses: the class given to each record.
        unit: who is protected.
        records: how many records of a person are counted at most; 1 where records are protected.

    Raises:
        BadInput: persons are to be protected, and the records name none.
    """
    chosen = np.arange(len(data))
    if unit is Unit.PERSON:
        if data.persons is None:
            raise BadInput(
                "the tested records name no persons",
                where="unit",
                why="whoever is not named cannot be counted once",
                remedy='name the column of persons, or use unit = "record"',
            )
        chosen = cap_records(data.persons, data.ids, records)
    classes = len(data.classes)
    table = np.zeros(classes * classes, dtype=np.int64)
    np.add.at(table, data.y[chosen] * classes + guesses[chosen], 1)
    counted = records if unit is Unit.PERSON else 1
    return Bounded(table.reshape(1, -1), Sensitivity.of_counts(counted, unit))
