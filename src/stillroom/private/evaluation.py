"""How a finished model does on sensitive test records, as counts the gate can release (K1)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from stillroom.vocabulary import Bounded, Integers, Norm, Pair, Relation, Sensitivity, Unit


def confusion(
    truth: Integers, guesses: Integers, classes: int, *, unit: Unit = Unit.RECORD, records: int = 1
) -> Bounded:
    """How often each class was taken for each other: one row of counts.

    Guarantee: a unit stands in at most `records` of the counts, once each.
    Assumes: at most `records` rows belong to one unit.
    """
    table = np.zeros(classes * classes, dtype=np.int64)
    np.add.at(table, truth * classes + guesses, 1)
    bounds = {
        Pair(unit, Relation.ADD_OR_REMOVE): Fraction(records),
        Pair(unit, Relation.CHANGE): Fraction(2 * records),
    }
    return Bounded(table.reshape(1, -1), Sensitivity(Norm.STEPS, bounds))
