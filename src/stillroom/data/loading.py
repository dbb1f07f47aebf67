"""From the words of a recipe to a split: which records, and who may see which."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stillroom.data.catalogue import KNOWN
from stillroom.data.dataset import Dataset, class_names
from stillroom.data.folders import WHOLE
from stillroom.data.persons import Persons
from stillroom.data.picture_form import PictureForm
from stillroom.data.readers import Classes
from stillroom.data.schema import Schema
from stillroom.data.split import Share, Split
from stillroom.data.store import MODEL as MODEL
from stillroom.data.store import home, imported, load_parts
from stillroom.errors import BadInput


def load_split(
    source: str,
    folder: Path,
    *,
    classes: Classes = None,
    labels: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    schema: Schema | None = None,
    test_file: str | None = None,
    person_pattern: str | None = None,
    persons: str | None = None,
    form: PictureForm | None = None,
    split: str = "fraction",
    key: str = "",
    public: Share,
    test: Share,
    sensitive_classes: Sequence[str] = (),
) -> Split:
    """The records that a recipe names, in their parts; names of files are beside the recipe.

    Args:
        source: a file or folder beside the recipe, or a data set by name.
        folder: where the recipe is.
        classes: names of the classes, or how many there are; see `load`.
        labels: the file of labels that belongs to an IDX file, beside the recipe.
        columns: for a CSV file, which columns are `label`, `id` and `person`; None for none.
        schema: for a CSV file, all of its columns.
        test_file: the official test part, where it is a file of its own, beside the recipe.
        person_pattern: for a folder of pictures, how the name of a file tells its person.
        persons: a list of persons, a CSV file beside the recipe; see `Persons`.
        form: what the pictures of a folder are brought to while they are read.
        split: `"fraction"` or `"as-given"`, the official train and test parts.
        key: the public split key.
        public: the expected share that is public.
        test: the expected share that is tested on; not used for a split as given.
        sensitive_classes: names of classes of which nothing becomes public.

    Raises:
        BadInput: the data cannot be loaded or split in this way.

    >>> load_split("digits", Path(), key="an example", public="2/5", test="1/10").sensitive
    Dataset('digits', shape=(8, 8), classes=10)
    """
    parts, test_parts = (
        load_parts(
            found_beside(name, folder),
            tuple(classes) if isinstance(classes, list) else classes,
            labels=folder / labels if labels else None,
            columns={role: column or None for role, column in (columns or {}).items()},
            schema=schema,
            persons=persons_of(person_pattern, folder / persons if persons else None),
            form=form,
        )
        if name is not None
        else {}
        for name in (source, test_file)
    )
    if test_file is not None:
        parts = _two_files(parts, test_parts)
    if sensitive_classes and any(part.persons for part in parts.values()):
        raise BadInput(
            "records of named persons cannot be kept from the public part by their class",
            where="data.sensitive_classes",
            why="one more such record would take its owner's others out of the public part, so "
            "the promise for one record would not hold",
            remedy="leave the persons out, or the sensitive classes",
        )
    if split == "as-given":
        if set(parts) != {"train", "test"}:
            raise BadInput(
                f"{source} has no official train and test parts",
                where="data.split",
                why="a split as given needs parts that were given",
                remedy='use split = "fraction"',
            )
        given = (parts["train"], parts["test"])
        return Split.as_given(*given, public, key, sensitive_classes)
    whole = parts.get(WHOLE) or parts["train"]
    if not sensitive_classes:
        return Split.by_fraction(whole, key, public, test)
    return Split.by_class(whole, key, sensitive_classes, public, test)


def _two_files(parts: Mapping[str, Dataset], others: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """The train and the test part, where each is a file."""
    if {*parts, *others} != {WHOLE}:
        raise BadInput(
            "a file that has train and test parts is given together with a file of its own to test "
            "on",
            where="data.test_file",
            why="there would be two test parts",
            remedy="leave data.test_file out, or name files without parts",
        )
    train, test = parts[WHOLE], others[WHOLE]
    if train.columns != test.columns:
        raise BadInput(
            "the columns of the two files differ, or stand in another order",
            where="data.source, data.test_file",
            why="a number would be taken for one of another column",
            remedy="bring them to one order, or give a schema, which finds columns by name",
        )
    return {"train": train, "test": test}


def persons_of(pattern: str | None, listed: Path | None) -> Persons | None:
    """Whose the records are, where a recipe or a command says so."""
    return None if pattern is None and listed is None else Persons(pattern, listed)


def no_records(shape: Sequence[int], classes: Classes) -> Dataset:
    """Records of which there are none, of a known shape and with known classes.

    >>> len(no_records((28, 28), 10)), no_records((28, 28), 10)
    (0, Dataset('no records', shape=(28, 28), classes=10))
    """
    names = class_names(list(classes) if isinstance(classes, tuple) else classes)
    return Dataset(np.zeros((1, *shape)), np.zeros(1, np.int64), names, name="no records").select(
        []
    )


def load_test(source: str, folder: Path, like: Dataset) -> Dataset:
    """A public data set to test on: its official test part, or all of it where it has none.

    Args:
        source: a file or folder beside the recipe, or a data set by name.
        folder: where the recipe is.
        like: what has the shape and the classes that it must have.

    Raises:
        BadInput: it cannot be loaded, or is of another shape or other classes.

    >>> load_test("digits", Path(), like=no_records((8, 8), 10))
    Dataset('digits', shape=(8, 8), classes=10)
    """
    parts = load_parts(found_beside(source, folder), like.classes)
    test = next(parts[name] for name in ("test", WHOLE, "train") if name in parts)
    if test.shape != like.shape:
        raise BadInput(
            f"records to test on are of shape {test.shape}, and the model's of {like.shape}",
            where="data.test_source",
            why="a student is tested on what it is given",
            remedy="name a data set of the model's shape, or leave it out: nothing is tested then",
        )
    return test


def found_beside(source: str, folder: Path) -> str:
    """A file or folder beside the recipe; else a name."""
    beside = folder / source
    named = source in KNOWN or source in imported(home())
    # Unlike a path's own methods, these take a name that no file can have for an absent one.
    found = os.path.isfile(beside) or (os.path.isdir(beside) and not named)
    return str(beside) if found else source
