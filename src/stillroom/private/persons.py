"""Clipped gradient sums in which the person, with all records, is the unit (K3).

A person's term is the sum of the gradients of the person's records, at most a public number of
them; its norm comes from two Gram matrices, since (r u^T, s v^T) = (r, s)(u, v). The sum is clipped
as one, so the guarantee is the person's own and not a multiple of a record's.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.private.linear import (
    FEATURE_BITS,
    LARGEST_RESIDUAL,
    RESIDUAL_BITS,
    Clip,
    LinearRecords,
)
from stillroom.private.quantise import one_term
from stillroom.private.sealed import Records, opened, persons_of
from stillroom.vocabulary import Bounded, Integers, Sealed, SecretSample, Unit

_SHRINKS = 8


def cap_records(persons: Sequence[str], ids: Sequence[str], most: int) -> Integers:
    """The positions of at most `most` records per person, chosen by hash of their ids.

    >>> len(cap_records(["a", "a", "a", "b"], ["1", "2", "3", "4"], most=2))
    3
    """
    order = sorted(range(len(ids)), key=lambda i: hashlib.sha256(ids[i].encode()).digest())
    taken: dict[str, int] = {}
    kept = []
    for i in order:
        taken[persons[i]] = taken.get(persons[i], 0) + 1
        if taken[persons[i]] <= most:
            kept.append(i)
    return np.array(sorted(kept), dtype=np.int64)


def records_by_person(persons: Sequence[str], most: int) -> list[npt.NDArray[np.intp]]:
    """The positions of each person's records.

    Raises:
        BadInput: a person has more than the cap.
    """
    _, owner, counts = np.unique(np.asarray(persons), return_inverse=True, return_counts=True)
    if counts.max(initial=0) > most:
        raise BadInput(
            f"a person has more than {most} records",
            where="max_records_per_person",
            why="the cap is part of the guarantee",
            remedy="drop the surplus with cap_records before",
        )
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(counts) + 1))
    return [order[a:b] for a, b in itertools.pairwise(starts)]


def capped(records: Records, most: int) -> Sealed[Dataset]:
    """The same records, at most `most` of each person, sealed.

    Raises:
        BadInput: the records name no persons.
    """
    data = opened(records)
    return Sealed(data.select(cap_records(persons_of(data), data.ids, most)))


def linear_records(
    records: Records,
    rows: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
    unit: Unit = Unit.RECORD,
    max_records_per_person: int = 1,
    class_weights: Sequence[float] | None = None,
) -> LinearRecords:
    """Sealed records as feature rows, ready for clipped sums of single records or persons.

    Args:
        records: the sensitive records.
        rows: from stored records to feature rows, each from its own record alone.
        unit: whose gradient is clipped as one.
        max_records_per_person: the public cap, for persons.
        class_weights: what gradients are multiplied by before the clip, by class; public.

    Raises:
        BadInput: persons are to be protected, and the records name none or exceed the cap.
    """
    data = opened(records)
    classes = len(data.classes)
    if unit is Unit.RECORD:
        return LinearRecords(rows(data.x), data.y, classes, class_weights)
    persons, most = persons_of(data), max_records_per_person
    return LinearPersons(rows(data.x), data.y, classes, persons, most, class_weights)


class LinearPersons(LinearRecords):
    """Sensitive records as integer feature rows, summed and clipped person by person.

    Guarantee: one person, with at most `most` records, is one term of the sum.
    Assumes: as `LinearRecords`; `persons` names the person of each row.

    Args:
        rows: feature rows, one per record.
        labels: the label of each record.
        classes: how many classes there are.
        persons: the person of each record.
        most: the public cap on records per person.
        class_weights: as there; a person's gradients are multiplied, then added and clipped.

    Raises:
        BadInput: a person has more records than the cap.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        classes: int,
        persons: Sequence[str],
        most: int,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__(rows, labels, classes, class_weights)
        self._records_of = records_by_person(persons, most)

    def clipped_sum(
        self, weights: npt.NDArray[np.float32], clip: Clip, sample: SecretSample | None
    ) -> Bounded:
        """The sum of the sampled persons' clipped gradients, in grid units; arguments as there."""
        from stillroom.private import kernels  # here: whoever trains nothing needs no compiler

        persons = np.arange(len(self._records_of))
        if sample is not None:
            persons = persons[sample.open_secret(len(persons))]
        own = [self._records_of[person] for person in persons]
        nobody = np.zeros((self.classes, 0), dtype=np.int64)
        factors = [nobody, *(self._factors(records, weights, clip) for records in own)]
        chosen = np.concatenate([nobody[0], *own])
        total = kernels.sums(self._rows, chosen, np.concatenate(factors, axis=1))
        return Bounded(total.reshape(1, -1), one_term(clip.squared_norm, Unit.PERSON), sample)

    def _factors(self, own: Integers, weights: npt.NDArray[np.float32], clip: Clip) -> Integers:
        """What one person's rows are multiplied by: one line per class, one column per record.

        Not `clip_to_ball`: the ball is that of a sum of outer products, known by its Gram matrices.
        """
        rows = self._rows[own].astype(np.int64)
        logits = (rows @ weights.T.astype(np.float64)) / (1 << FEATURE_BITS)
        residuals = np.exp(logits - logits.max(axis=1, keepdims=True))
        residuals /= residuals.sum(axis=1, keepdims=True)
        residuals[np.arange(len(own)), self._labels[own]] -= 1.0
        residuals *= self._weight[own][:, None]
        gram = rows @ rows.T
        length = np.sqrt(max(0.0, float(((residuals @ residuals.T) * gram).sum())))
        room = clip.steps / max(length * (1 << RESIDUAL_BITS), 1e-9)
        factor = room if clip.normalise else min(1.0, room)
        # Gradients that nearly cancel must not be blown up beyond what the grid can carry.
        largest = float(np.abs(residuals).max()) * (1 << RESIDUAL_BITS)
        factor = min(factor, LARGEST_RESIDUAL / max(largest, 1e-9))
        for _ in range(_SHRINKS):
            scaled = residuals * (factor * (1 << RESIDUAL_BITS))
            integers: Integers = np.trunc(scaled).astype(np.int64)
            # Truncating several records may lengthen their sum, so the norm is checked exactly.
            if int(((integers @ integers.T) * gram).sum()) <= clip.squared_norm:
                factors: Integers = integers.T
                return factors
            factor *= 1 - 2.0**-6
        return np.zeros((self.classes, len(own)), dtype=np.int64)
