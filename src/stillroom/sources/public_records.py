"""Public records that a recipe names beside its own data."""

from __future__ import annotations

from stillroom.data import Dataset
from stillroom.data.store import load_parts
from stillroom.errors import BadInput
from stillroom.private import overlaps
from stillroom.sources.base import Setting


def named_public_records(setting: Setting, source: str, where: str) -> Dataset:
    """The records of a public data set, by its name.

    Args:
        setting: whose records they must not be, nor tested ones; and what shape they must have.
        source: a known or imported name.
        where: the recipe's key.

    Raises:
        BadInput: they overlap with sensitive or tested records, or have another shape.
    """
    shape, tested = setting.facts.shape, setting.public.tested
    parts = load_parts(source, None)
    data = parts.get("all") or parts["train"]
    if any(overlaps(party.data, data) for party in setting.parties):
        raise BadInput(
            "public and sensitive records overlap",
            where=where,
            why="what is fitted on them would tell about sensitive records, and nobody paid for it",
            remedy="use public records that are not among the sensitive ones",
        )
    if tested is not None and overlaps(tested, data):
        raise BadInput(
            "public and tested records overlap",
            where=where,
            why="a model that has seen them is not tested by them, and they may be sensitive too",
            remedy="use public records that are not among the tested ones",
        )
    if data.shape != shape:
        raise BadInput(
            f"{source} has records of shape {data.shape}, the sensitive ones {shape}",
            where=where,
            why="what is learnt from other features means nothing here",
            remedy="use public records of the same shape",
        )
    return data
