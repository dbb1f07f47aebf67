"""Where sealed records are opened; only this room may, and a contract test bans it elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.errors import BadInput
from stillroom.vocabulary import Sealed

Records = Dataset | Sealed[Dataset]
"""What the doors of this room take: sealed records, or public ones as they are."""


def opened(records: Records) -> Dataset:
    """The records themselves."""
    return records.open_sealed() if isinstance(records, Sealed) else records


def persons_of(data: Dataset) -> tuple[str, ...]:
    """The person behind each record.

    Raises:
        BadInput: the records name none.
    """
    if data.persons is None:
        raise BadInput(
            "the records name no persons",
            where="data.unit",
            why="whoever is not named cannot be protected as one",
            remedy='name the column of persons, or use unit = "record"',
        )
    return data.persons


def look_at(records: Records, look: Callable[[npt.NDArray[Any]], object]) -> None:
    """Let a public function look at the records before anything is paid for (K10).

    Guarantee: nothing comes back but a refusal, such as that of `FeatureMap.look`.
    """
    look(opened(records).x)


def overlaps(records: Records, public: Dataset) -> bool:
    """Whether a record that is to be public is among these; for a refusal before payment."""
    return not set(public.ids).isdisjoint(opened(records).ids)
