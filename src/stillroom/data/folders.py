"""A folder as a data set: CIFAR-10 batches, the two files of SVHN, or pictures by class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from stillroom.data.cifar import BATCHES, read_cifar
from stillroom.data.dataset import Dataset
from stillroom.data.persons import Persons
from stillroom.data.picture_form import PictureForm
from stillroom.data.pictures import folder_classes, read_images, sub_folders
from stillroom.data.readers import Classes
from stillroom.data.svhn import read_svhn
from stillroom.errors import BadInput

WHOLE = "all"
"""The name of the only part of a data set that has no official train and test parts."""

SVHN = {"train": ("train_32x32",), "test": ("test_32x32",)}


def read_folder(
    path: str | Path,
    classes: Classes = None,
    persons: Persons | None = None,
    form: PictureForm | None = None,
) -> dict[str, Dataset]:
    """Read a folder: `train` and `test` where it holds official parts, else `all`.

    Args:
        path: a folder with the five data batches and the test batch of CIFAR-10 (binary or
            Python), with `train_32x32.mat` and `test_32x32.mat` of SVHN, with one sub-folder of
            pictures per class, or with such sub-folders under `train` and `test`.
        classes: as the reader of that kind takes them.
        persons: whose the records are.
        form: what pictures are brought to, in a folder of pictures.

    Raises:
        BadInput: the folder holds none of these, or only some of the files of a set.
    """
    folder = Path(path)
    read: dict[str, Dataset] = {}
    if batches := _official(folder, BATCHES, ("", ".bin")):
        read = {part: read_cifar(files, classes) for part, files in batches.items()}
    elif digits := _official(folder, SVHN, (".mat",)):
        read = {part: read_svhn(file, classes) for part, (file,) in digits.items()}
    if read:
        if form is not None:
            raise of_pictures_only(str(folder))
        return read if persons is None else persons.in_order(read)
    inner = sub_folders(folder)
    parts = {part: inner[part] for part in ("train", "test") if part in inner}
    # Folders that hold pictures themselves may well be classes of these names.
    if len(parts) < 2 or not all(sub_folders(part) for part in parts.values()):
        whole = read_images(folder, classes, _owner(persons), form)
        return _owned({WHOLE: whole}, persons)
    if len(inner) > len(parts):
        raise BadInput(
            "the folder holds other folders beside train and test",
            where=str(folder),
            why="their pictures would be left out silently",
            remedy="move them elsewhere, or into train or test",
        )
    names = folder_classes(list(parts.values()), classes)
    found: dict[str, Dataset] = {
        part: read_images(inside, names, _owner(persons, part), form)
        for part, inside in parts.items()
    }
    return _owned(found, persons)


def of_pictures_only(where: str) -> BadInput:
    """The refusal of a size or mode for what is no folder of pictures."""
    return BadInput(
        "size and mode are for a folder of pictures with one sub-folder per class",
        where=where,
        why="records of other kinds have one shape already, and are taken as they are",
        remedy="leave data.size and data.mode (--size, --mode) out",
    )


def _owner(persons: Persons | None, part: str = "") -> Callable[[str], str] | None:
    """Whose a picture is, by the name of its file."""
    if persons is None or not persons.by_file:
        return None
    return lambda name: persons.of(f"{part}/{name}" if part else name)


def _owned(parts: dict[str, Dataset], persons: Persons | None) -> dict[str, Dataset]:
    """By a list in the order of the records, where names of files do not say it."""
    return parts if persons is None or persons.by_file else persons.in_order(parts)


def _official(
    folder: Path, parts: Mapping[str, tuple[str, ...]], endings: tuple[str, ...]
) -> dict[str, list[Path]]:
    """Part -> its files; nothing when not one of them is there."""
    for ending in endings:
        files = {part: [folder / f"{n}{ending}" for n in names] for part, names in parts.items()}
        there = {path for paths in files.values() for path in paths if path.is_file()}
        missing = [path.name for paths in files.values() for path in paths if path not in there]
        if there and missing:
            raise BadInput(
                f"the folder lacks {', '.join(missing)}",
                where=str(folder),
                why="figures on a piece of a published set compare with nothing",
                remedy="get the missing files, or name a single file instead of the folder",
            )
        if there:
            return files
    return {}
