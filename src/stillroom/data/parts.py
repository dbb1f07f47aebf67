"""The parts of a split as the rest of the package sees them: what is sensitive is sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stillroom.data.dataset import Dataset
from stillroom.vocabulary import Sealed


@dataclass(frozen=True)
class About:
    """What is public about records that are sealed; none of it tells of a single one.

    Assumes: the classes were declared, and shape, columns, ids and persons belong to the format of
    the files, which is the same with one record more or less.

    Args:
        shape: of one record.
        classes: their names, in the order of the labels.
        columns: the names of the features, where their file names them.
        ids_from_content: whether ids are made from content: a changed record is then another one.
        names_persons: whether it is known which person each record belongs to.
    """

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    columns: tuple[str, ...] | None
    ids_from_content: bool
    names_persons: bool

    @classmethod
    def of(cls, records: Dataset) -> About:
        named = records.persons is not None
        own = (records.shape, records.classes, records.columns, records.ids_from_content)
        return cls(*own, named)


@dataclass(frozen=True)
class Parts:
    """The three parts of the data, to be passed on: public records, and sealed ones.

    Guarantee: nothing here, nor its repr, tells of a sealed record; see `Sealed` for who opens it.

    Args:
        public: may be used without charge.
        sensitive: sealed records, or a sealed model; used only through the gate.
        test: sealed, unless the recipe declares the test part public.
        about: what is public about all three.
    """

    public: Dataset
    sensitive: Sealed[Any]
    test: Sealed[Dataset] | Dataset
    about: About
