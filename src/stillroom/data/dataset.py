"""A data set: records, labels, names of records and of the persons behind them."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, located

CONTENT_ID = "sha256:"
"""How an id made from the content begins; an id from a column begins otherwise."""


def is_from_content(identity: str) -> bool:
    """Whether an id was made from the content of its record.

    >>> is_from_content("patient 17"), is_from_content("sha256:0f-0")
    (False, True)
    """
    return identity.startswith(CONTENT_ID)


LARGEST_INTEGER = 2**53
"""Beyond it a feature is no exact float64, and two different records would share an id."""

MOST_CLASSES = 65536


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Records with labels, unique ids and, where known, the person each record belongs to.

    Guarantee: an id depends on its own record alone. Without given ids it is the SHA-256 of the
    record's numbers, label and person, plus an occurrence number among equal ones. So reordering
    the records keeps the set of ids, adding or removing one changes the ids of equal ones at most,
    and the same numbers read from another file format or data type keep theirs. Nothing here is
    computed over several records: no mean, no scale, no list of classes.

    Assumes: `classes` was fixed without looking at the records. A class may be absent.

    Args:
        x: the records, first axis first; integers and floats stay as given.
        y: the label of each record, an integer from 0 to the number of classes - 1.
        classes: the names of the classes (or how many there are), from the recipe or the caller.
        ids: one unique name for each record; made from the content when left out.
        persons: the name of the person each record belongs to, if known.
        name: what to call the data set in messages.
        columns: the names of a record's features, in order, where their file names them.

    Raises:
        BadInput: the parts do not fit together, or a record cannot be used.

    >>> pets = Dataset([[0, 1], [2, 3]], [1, 0], classes=("cat", "dog"), name="pets")
    >>> pets, len(pets), pets.shape
    (Dataset('pets', shape=(2,), classes=2), 2, (2,))
    >>> pets.select([1]).y
    array([0])
    """

    x: npt.NDArray[Any]
    y: npt.NDArray[np.int64]
    classes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    persons: tuple[str, ...] | None = None
    name: str = "unnamed"
    columns: tuple[str, ...] | None = None
    ids_from_content: bool = field(init=False)
    """Whether ids are made from content: a changed record is then another record."""

    def __post_init__(self) -> None:
        with located(self.name):
            self._settle(classes=class_names(self.classes, self.name))
            self._settle(x=_checked_features(_array(self.x, "records"), self.name))
            self._settle(y=_checked_labels(_array(self.y, "labels"), self))
            if self.columns is not None:
                self._settle(columns=_checked_columns(self.columns, self.shape))
            if self.persons is not None:
                self._settle(persons=_names(self.persons, "persons", self))
            given = len(self.ids)
            self._settle(ids=_names(self.ids, "ids", self) if given else _content_ids(self))
            _refuse_twins(self.ids, self.name)
        self._settle(ids_from_content=any(map(is_from_content, self.ids)))

    def _settle(self, **fields: Any) -> Dataset:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one record."""
        return self.x.shape[1:]

    @property
    def units(self) -> tuple[str, ...]:
        """What must stay together: persons where they are known, equal records, else single ones.

        Which of two equal records has which number may depend on a third one, so no number may
        decide where they go.
        """
        if self.persons is not None:
            return self.persons
        return tuple(_first_of_equals(i) for i in self.ids)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        # Not the number of records: under add-or-remove it is itself sensitive.
        return f"Dataset({self.name!r}, shape={self.shape}, classes={len(self.classes)})"

    def select(self, which: npt.ArrayLike) -> Dataset:
        """The chosen records under their old ids; unlike a new data set it may be empty.

        Args:
            which: a mask with one truth value per record, or positions without repeats.

        Raises:
            BadInput: the mask has another length, or a position is unknown or given twice.
        """
        chosen = np.asarray(which)
        if chosen.dtype == bool and chosen.shape == (len(self),):
            chosen = np.flatnonzero(chosen)
        elif chosen.size == 0 and chosen.dtype != bool:
            chosen = np.zeros(0, dtype=np.int64)
        fits = chosen.ndim == 1 and chosen.dtype.kind in "iu"
        if not fits or np.any(chosen < 0) or np.any(chosen >= len(self)):
            raise BadInput(
                "a selection must be a mask of the data set's length or known positions",
                where=self.name,
                why="other records than those that are meant would be taken",
                remedy="give one truth value per record, or positions from 0 up",
            )
        if len(np.unique(chosen)) != len(chosen):
            raise BadInput(
                "a selection names a record twice",
                where=self.name,
                why="a record that counts twice moves an answer twice as far",
                remedy="name each position once",
            )
        part = copy.copy(self)._settle(
            x=self.x[chosen], y=self.y[chosen], ids=tuple(self.ids[i] for i in chosen)
        )
        if self.persons is not None:
            part._settle(persons=tuple(self.persons[i] for i in chosen))
        return part


def numbered_together(parts: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """The parts of one source, equal records numbered over all of them, those of `test` first.

    Two equal rows in two parts are two records. Ids made from content only say that they look
    alike, so the later ones get the next numbers; given ids stay as they are.

    >>> train, test = (Dataset([[1], [v]], [0, 0], classes=2) for v in (2, 3))
    >>> both = numbered_together({"train": train, "test": test})
    >>> [i[-2:] for i in both["test"].ids], [i[-2:] for i in both["train"].ids]
    (['-0', '-0'], ['-1', '-0'])
    """
    every = [i for part in parts.values() for i in part.ids if is_from_content(i)]
    if len(set(every)) == len(every):
        return dict(parts)
    seen: Counter[str] = Counter()
    numbered = {}
    for name in sorted(parts, key=lambda part: part != "test"):
        ids = []
        for own in parts[name].ids:
            first = _first_of_equals(own)
            ids.append(f"{first.removesuffix('0')}{seen[first]}" if is_from_content(own) else own)
            seen[first] += 1
        numbered[name] = copy.copy(parts[name])._settle(ids=tuple(ids))
    return {name: numbered[name] for name in parts}


def _first_of_equals(identity: str) -> str:
    """The id that the first of all equal records has; a given id is its own."""
    if not is_from_content(identity):
        return identity
    return identity.rpartition("-")[0] + "-0"


def class_names(classes: int | Sequence[str] | None, where: str = "classes") -> tuple[str, ...]:
    """The names of the classes, from their names or their count.

    Raises:
        BadInput: there are fewer than two, too many, or a name is empty or repeated.

    >>> class_names(3)
    ('0', '1', '2')
    """
    if isinstance(classes, int) and 2 <= classes <= MOST_CLASSES:
        return tuple(str(i) for i in range(classes))
    if isinstance(classes, int) or classes is None or isinstance(classes, str) or not classes:
        raise BadInput(
            "the classes are not known",
            where=where,
            why="classes counted in sensitive data would themselves give records away",
            remedy=f"say how many there are (2 to {MOST_CLASSES}), such as 10, or list their names "
            "(data.classes, --classes)",
        )
    names = tuple(classes)
    proper = all(isinstance(name, str) and name.strip() and name.isprintable() for name in names)
    if not proper or len(set(names)) != len(names) or not 2 <= len(names) <= MOST_CLASSES:
        raise BadInput(
            "class names must be two or more different texts of one line each",
            where=where,
            why="a label must point to exactly one class",
            remedy="list each class once, such as cat,dog",
        )
    return names


def _array(values: object, kind: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise BadInput(
            f"the {kind} do not all have the same shape",
            why="all records of a data set have one shape",
            remedy="bring them all to one shape before making a data set",
        ) from None


def _checked_features(x: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        raise BadInput(
            f"records must be numbers of at most 64 bits, not {x.dtype}",
            why="other types cannot be trained on, and Python objects can carry anything",
            remedy="convert the records to integers or float64",
        )
    if x.ndim < 2 or x.size == 0:
        raise BadInput(
            "there are no records, or a record has no features",
            why="there is nothing to learn from",
            remedy="give an array whose first axis is the records and that has features after it",
        )
    rows = x.reshape(len(x), -1)
    if x.dtype.kind == "f":
        usable = np.isfinite(rows).all(axis=1)
        flaw, remedy = "not a finite number", "remove or repair records with NaN or infinity"
    elif x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        usable = ((rows <= LARGEST_INTEGER) & (rows >= -LARGEST_INTEGER)).all(axis=1)
        flaw, remedy = "an integer beyond 2^53", "scale the features down"
    else:
        return x
    if not usable.all():
        raise BadInput(
            f"a feature is {flaw}",
            where=f"{where}, record {int(np.argmin(usable))}",
            why="it would spoil every sum it enters, and clipping cannot bound it",
            remedy=remedy,
        )
    return x


def _checked_labels(y: npt.NDArray[Any], dataset: Dataset) -> npt.NDArray[np.int64]:
    if y.dtype.kind not in "iu" or y.ndim != 1:
        raise BadInput(
            f"labels must be one integer per record, not {y.ndim} axes of {y.dtype}",
            why="a label says to which class a record belongs",
            remedy="number the classes from 0 and give one label per record",
        )
    refuse_other_length(len(y), "labels", len(dataset))
    known = (y >= 0) & (y < len(dataset.classes))
    if not known.all():
        raise BadInput(
            f"a label is outside 0 to {len(dataset.classes) - 1}",
            where=f"{dataset.name}, record {int(np.argmin(known))}",
            why="the recipe's classes decide what may be counted, not the data",
            remedy="correct the label, or declare more classes",
        )
    return y.astype(np.int64)


def _checked_columns(columns: Sequence[str], shape: tuple[int, ...]) -> tuple[str, ...]:
    names = tuple(columns)
    if shape != (len(names),):
        raise BadInput(
            "there are not as many names of columns as features",
            why="a model trained on them must be given the same columns in the same order",
            remedy="name every feature, in its order",
        )
    if not all(isinstance(name, str) and name.isprintable() for name in names):
        raise BadInput(
            "the name of a column holds characters that cannot be printed",
            why="the names stand on the certificate of a model that was trained on them",
            remedy="name the columns in one line of plain text each",
        )
    return names


def _names(values: Any, kind: str, dataset: Dataset) -> tuple[str, ...]:
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    refuse_other_length(len(listed), kind, len(dataset))
    for position, name in enumerate(listed):
        text = isinstance(name, str) and name.strip() and "\0" not in name
        if not text and (not isinstance(name, int) or isinstance(name, bool)):
            raise BadInput(
                f"one of the {kind} is empty, or neither an integer nor plain text",
                where=f"{dataset.name}, record {position}",
                why="records without a name of their own cannot be followed from run to run",
                remedy=f"fill in the {kind}, or leave them out altogether",
            )
    return tuple(str(name) for name in listed)


def refuse_other_length(length: int, kind: str, records: int) -> None:
    """Refuse labels, ids or persons that are more or fewer than the records.

    Raises:
        BadInput: they are.
    """
    if length != records:
        raise BadInput(
            f"there are not as many {kind} as records",
            why="every record needs its own, in the same order",
            remedy=f"check that records and {kind} come from the same file or the same part",
        )


def _refuse_twins(ids: tuple[str, ...], where: str) -> None:
    seen: set[str] = set()
    for position, name in enumerate(ids):
        if name in seen:
            raise BadInput(
                "an id occurs twice",
                where=f"{where}, record {position}",
                why="two records under one id would be charged and protected as one",
                remedy="make the ids unique; if they name persons, give them as persons instead",
            )
        seen.add(name)


def content_of(numbers: Iterable[npt.NDArray[Any]], label: int, person: str = "") -> str:
    """The digest that the id of a record without a given one is made of.

    Args:
        numbers: of the record, as they are stored, in any number of parts.
        label: its class.
        person: whose it is.
    """
    digest = hashlib.sha256()
    for part in numbers:
        # One number format for all files; adding 0 turns the other zero, -0.0, into 0.0.
        digest.update((part.astype("<f8") + 0.0).tobytes())
    digest.update(label.to_bytes(8, "little"))
    digest.update(person.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def ids_of(contents: Iterable[str]) -> tuple[str, ...]:
    """Ids made from content: equal records are numbered.

    >>> ids_of(["0f", "0f"])
    ('sha256:0f-0', 'sha256:0f-1')
    """
    seen: Counter[str] = Counter()
    ids = []
    for content in contents:
        ids.append(f"{CONTENT_ID}{content}-{seen[content]}")
        seen[content] += 1
    return tuple(ids)


def ids_with_persons(ids: Sequence[str], persons: Sequence[str]) -> tuple[str, ...]:
    """Ids made from content, now that it is known whose each record is.

    Equal records of two persons are told apart, so that no person's records number another's.
    """
    return ids_of(
        hashlib.sha256(f"{_first_of_equals(own)} {person}".encode()).hexdigest()
        for own, person in zip(ids, persons, strict=True)
    )


def _content_ids(dataset: Dataset) -> tuple[str, ...]:
    persons = dataset.persons or ("",) * len(dataset)
    labels = dataset.y.tolist()
    # Row by row, or one number of a record of one axis after the other: the bytes are the same.
    records = dataset.x.reshape(len(dataset), 1, -1)
    return ids_of(map(content_of, records, labels, persons))
