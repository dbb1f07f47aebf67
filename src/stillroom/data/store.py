"""The data home: where imported data sets live, and how a name becomes a data set."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any

import numpy as np

from stillroom.data.catalogue import KNOWN, fresh_folder, present
from stillroom.data.cifar import read_cifar
from stillroom.data.dataset import Dataset, class_names, numbered_together
from stillroom.data.files import MOST_CONTENT, file_kind
from stillroom.data.folders import WHOLE, of_pictures_only, read_folder
from stillroom.data.persons import Persons
from stillroom.data.picture_form import PictureForm
from stillroom.data.readers import Classes, digits, npz_parts, read_csv, read_idx, read_npz
from stillroom.data.schema import Schema
from stillroom.data.svhn import read_svhn
from stillroom.data.tables import read_table
from stillroom.documents import file_content, json_object
from stillroom.errors import BadInput
from stillroom.nearest import near_file, near_name

MODEL = "model"
"""What a recipe without records names as its source; no data set is called so."""
VERSION = 1
META = "meta.json"
LARGEST_META = 16 << 20

Parts = dict[str, Dataset]


def home() -> Path:
    """The data home: $STILLROOM_HOME, else the user's own data folder."""
    if own := os.environ.get("STILLROOM_HOME"):
        return Path(own)
    shared = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(shared) / "stillroom"


def save(
    data: Dataset | Mapping[str, Dataset],
    name: str,
    root: Path | None = None,
    replace: bool = False,
    form: PictureForm | None = None,
) -> Path:
    """Keep a data set, or its train and test part, under a name in the data home.

    Guarantee: the folder appears whole or not at all, readable by its owner alone.

    Args:
        data: a data set, or `{"train": ..., "test": ...}` with the same classes.
        name: small letters, digits, dots, dashes and underscores.
        root: the data home, if not the usual one.
        replace: whether a data set of that name may be replaced.
        form: what its pictures were brought to when they were read.

    Raises:
        BadInput: the name cannot be used or is taken, or the parts are not alike.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(digits(), "scans", Path(folder))
    ...     load("scans", root=Path(folder))
    Dataset('scans', shape=(8, 8), classes=10)
    """
    parts = {WHOLE: data} if isinstance(data, Dataset) else dict(data)
    target = (root or home()) / "data" / name
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name) or name in (*KNOWN, MODEL):
        raise BadInput(
            f"a data set cannot be called {name!r}",
            where="name",
            why="names become folders, and built-in names keep their meaning",
            remedy="use small letters, digits, dots, dashes and underscores, and no built-in name",
        )
    if target.exists() and not replace:
        raise BadInput(
            f"a data set called {name!r} is there already",
            where=str(target),
            why="runs and ledgers that use it would silently see other records",
            remedy="choose another name, or say that it may be replaced (--replace)",
        )
    if len({(part.classes, part.shape, part.columns) for part in parts.values()}) != 1:
        raise BadInput(
            "the parts differ in their classes or in the shape or columns of their records",
            where=name,
            why="what is learnt on one part is measured on another",
            remedy="save them under two names",
        )
    with fresh_folder(target) as folder:
        for part, dataset in parts.items():
            arrays: dict[str, Any] = {"x": dataset.x, "y": dataset.y, "ids": np.array(dataset.ids)}
            if dataset.persons is not None:
                arrays["persons"] = np.array(dataset.persons)
            # Compressed, a large one could look like a file that is made to fill the memory.
            small = sum(array.nbytes for array in arrays.values()) <= MOST_CONTENT
            (np.savez_compressed if small else np.savez)(folder / f"{part}.npz", **arrays)
        meta: dict[str, Any] = {
            "version": VERSION,
            "format": "npz",
            "classes": next(iter(parts.values())).classes,
            "parts": list(parts),
        }
        if (columns := next(iter(parts.values())).columns) is not None:
            meta["columns"] = columns
        if form is not None:
            meta["pictures"] = form.to_json()
        (folder / META).write_text(json.dumps(meta, indent=1) + "\n")
    return target


def load(
    name_or_path: str | Path,
    classes: Classes = None,
    part: str | None = None,
    labels: str | Path | None = None,
    root: Path | None = None,
) -> Dataset:
    """The data set of that name, or the one in that file or folder.

    Args:
        name_or_path: a built-in name, an imported name, a file (npz, CSV with a `label` column,
            IDX, a CIFAR-10 batch, SVHN's `.mat`), or a folder as `read_folder` takes it.
        classes: needed for npz, CSV and IDX files; other files and folders know theirs, and may
            be given other names; for a name they are known and, if given, compared.
        part: `"train"` or `"test"`, where the data set has official parts.
        labels: the file of labels that belongs to an IDX file.
        root: the data home, if not the usual one.

    Raises:
        BadInput: nothing is found, a part must be chosen, or the data cannot be used.

    >>> load("digits")
    Dataset('digits', shape=(8, 8), classes=10)
    >>> load("digit", root=Path("an empty home"))
    Traceback (most recent call last):
        ...
    stillroom.errors.BadInput: no data set and no file is called 'digit' [digit]. \
Why it matters: without records there is nothing to look at. \
What to do: did you mean 'digits'? Known: cifar-10, digits, fashion-mnist, mnist.
    """
    parts = load_parts(name_or_path, classes, labels=labels, root=root)
    wanted = WHOLE if part is None else part
    if wanted not in parts:
        known = " or ".join(f"part={p!r}" for p in parts if p != WHOLE)
        raise BadInput(
            f"the data set has no part {wanted!r}",
            where=str(name_or_path),
            why="the part says which records are meant",
            remedy=f"ask for {known}" if known else "ask for no part: it has not been split",
        )
    return parts[wanted]


def load_parts(
    name_or_path: str | Path,
    classes: Classes = None,
    *,
    labels: str | Path | None = None,
    columns: Mapping[str, Any] | None = None,
    schema: Schema | None = None,
    persons: Persons | None = None,
    form: PictureForm | None = None,
    root: Path | None = None,
) -> Parts:
    """All parts of a data set: `all`, or `train` and `test`; arguments as in `load`.

    Args:
        columns: for a CSV file, which columns are `label`, `id` and `person`; None for none.
        schema: for a CSV file, all of its columns; it names classes and roles as well.
        persons: whose the records are, where the data do not say it.
        form: what the pictures of a folder are brought to; of an imported data set, what they were
            brought to.

    Raises:
        BadInput: as in `load`.
    """
    folder, name = root or home(), str(name_or_path)
    if schema is not None and os.path.exists(name):
        return _table(Path(name), schema)
    if name in KNOWN or name in imported(folder):
        if form is not None and (name in KNOWN or imported_form(name, folder) != form):
            raise _other_form(name, None if name in KNOWN else imported_form(name, folder))
        if schema is not None:
            raise _no_table(name)
        parts = _known(name, folder) if name in KNOWN else _imported(name, folder)
        names = next(iter(parts.values())).classes
        given = None if classes is None else class_names(classes)
        if given not in (None, names) and classes != len(names):
            raise BadInput(
                f"the data set has {len(names)} classes with names of its own",
                where=name,
                why="a label would mean another class than the recipe says",
                remedy=f"leave the classes out, or give: {', '.join(names)}",
            )
        return numbered_together(parts if persons is None else persons.in_order(parts))
    path = Path(name)
    # Unlike a path's own methods, these take a name that no file can have for an absent one.
    if os.path.isdir(path) and labels is None:
        return numbered_together(read_folder(path, classes, persons, form))
    if not os.path.exists(path):
        raise _not_found(name, folder)
    if form is not None:
        raise of_pictures_only(name)
    parts = _read_file(path, classes, labels, columns or {})
    return numbered_together(parts if persons is None else persons.in_order(parts))


def imported(root: Path) -> tuple[str, ...]:
    """The names of the imported data sets, sorted."""
    folders = (path.parent.name for path in (root / "data").glob(f"*/{META}"))
    return tuple(sorted(name for name in folders if name not in KNOWN))


def _known(name: str, root: Path) -> Parts:
    known = KNOWN[name]
    if known.read is None:
        return {WHOLE: digits()}
    files = present(name, root)
    if not files:
        raise BadInput(
            f"{name} is not in the data home yet, or its files are not the published ones",
            where=str(root / "data" / name),
            why="figures on other files than the published ones compare with nothing",
            remedy=f"run `stillroom data import {name}`",
        )
    return {
        part: with_changes(known.read(paths, known.classes), name=name)
        for part, paths in files.items()
    }


def _imported(name: str, root: Path) -> Parts:
    folder = root / "data" / name
    meta = _meta(name, root)
    named, classes = meta.get("columns"), tuple(meta["classes"])
    columns = None if named is None else tuple(named)
    return {
        part: with_changes(read_npz(folder / f"{part}.npz", classes), name=name, columns=columns)
        for part in meta["parts"]
    }


def imported_form(name: str, root: Path) -> PictureForm | None:
    """What the pictures of an imported data set were brought to; None where they were not.

    Raises:
        BadInput: its description is damaged.
    """
    said = _meta(name, root).get("pictures")
    return None if said is None else PictureForm.from_json(said)


def _meta(name: str, root: Path) -> dict[str, Any]:
    """The description of an imported data set."""
    place = root / "data" / name / META
    try:
        meta: dict[str, Any] = json_object(file_content(place, LARGEST_META))
        known = meta["version"] == VERSION and meta["format"] == "npz"
        parts = list(meta["parts"])
        known = known and bool(parts) and set(parts) <= {WHOLE, "train", "test"}
        tuple(meta["classes"])
        tuple(meta.get("columns") or ())
        if "pictures" in meta:
            PictureForm.from_json(meta["pictures"])
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise BadInput(
            "the data set was kept by another version, or its description is damaged",
            where=str(place),
            why="its classes and columns could be misread",
            remedy=f"import it again: `stillroom data import FILE --name {name} --replace`",
        )
    return meta


def _other_form(name: str, form: PictureForm | None) -> BadInput:
    """The refusal of a size or mode that an imported data set does not have."""
    if form is None:
        return of_pictures_only(name)
    return BadInput(
        f"the pictures were imported with {form.words}",
        where=f"data.size, data.mode: {name}",
        why="what they were before was not kept",
        remedy="say the same in the recipe, or import the folder again (--replace)",
    )


def _table(path: Path, schema: Schema) -> Parts:
    if os.path.isdir(path) or file_kind(path) != "csv":
        raise _no_table(str(path))
    return numbered_together({WHOLE: read_table(path, schema)})


def _no_table(where: str) -> BadInput:
    return BadInput(
        "a schema is for a CSV file",
        where=where,
        why="it says what the columns of a table mean, and here are none",
        remedy="name the CSV file itself, or leave the schema out",
    )


def _read_file(
    path: Path, classes: Classes, labels: str | Path | None, columns: Mapping[str, Any]
) -> Parts:
    kind = "idx" if labels is not None else file_kind(path)
    if kind == "npz":
        # A file without known arrays is refused by name when it is read.
        return {p or WHOLE: read_npz(path, classes, p) for p in npz_parts(path) or (None,)}
    if kind == "npy":
        raise BadInput(
            "an npy file holds one array, and a data set has records and labels",
            where=str(path),
            why="without labels there is nothing to learn",
            remedy="save both with numpy.savez, as x and y",
        )
    if kind == "csv":
        return {WHOLE: read_csv(path, classes, **columns)}
    if kind == "mat":
        return {WHOLE: read_svhn(path, classes)}
    if kind.startswith("cifar"):
        return {WHOLE: read_cifar(path, classes)}
    if labels is None:
        raise BadInput(
            "an IDX file of records needs its file of labels",
            where=str(path),
            why="without labels there is nothing to learn",
            remedy="name the file of labels too (--labels)",
        )
    return {WHOLE: read_idx(path, labels, classes)}


def _not_found(name: str, root: Path) -> BadInput:
    names = sorted([*KNOWN, *imported(root)])
    hint = near_file(Path(name)) or near_name(name, names) or "check the name or the path. "
    return BadInput(
        f"no data set and no file is called {name!r}",
        where=name,
        why="without records there is nothing to look at",
        remedy=f"{hint}Known: {', '.join(names)}",
    )
