"""Pictures that a model is asked about: single files, and all those of a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.release.predict import Described

ENDINGS = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp"))
GIF = ".gif"
"""Not read, and therefore named."""
LEFT_OUT_TOLD = 20
"""Pictures without an answer that are told of one by one."""

File = tuple[Path, str]


@dataclass
class LeftOut:
    """Pictures that have no answer, because they cannot be read or do not fit; the others have.

    Args:
        tell: what is done with a line on one of them.
    """

    tell: Callable[[str], None] = lambda line: None
    names: list[str] = field(default_factory=list)
    first: BadInput | None = None

    def add(self, name: str, error: BadInput) -> None:
        """Note a picture, and go on."""
        self.names.append(name)
        self.first = self.first or error
        if len(self.names) <= LEFT_OUT_TOLD:
            self.tell(f"left out: {error.where or name}: {error.what}")
        if len(self.names) == LEFT_OUT_TOLD:
            self.tell("left out: the next ones are counted only")

    def error(self, answered: int) -> BadInput | None:
        """What is wrong in the end; None where nothing was left out."""
        if self.first is None or (answered == 0 and len(self.names) == 1):
            return self.first
        return BadInput(
            f"{len(self.names):,} of {answered + len(self.names):,} records have no answer: "
            f"{self.first.what}",
            where=self.first.where,
            why="these files are left out; all others were answered",
            remedy=self.first.remedy,
        )


def is_picture(path: Path) -> bool:
    """Whether a file is called like a picture."""
    return path.suffix.lower() in ENDINGS or path.suffix.lower() == GIF


def pictures_in(folder: Path, left_out: LeftOut) -> list[File]:
    """All files of a folder and its sub-folders that are called like pictures.

    Links are followed, and each folder is looked into once. Hidden files and folders are left out.

    Returns:
        Each file, and its name from the folder on; in the order of these names.
    """
    found: list[File] = []
    seen: set[tuple[int, int]] = set()

    def closed(fault: OSError) -> None:
        where = str(fault.filename)
        left_out.add(
            where,
            BadInput(
                f"a folder cannot be listed ({fault.strerror})",
                where=where,
                why="what is in it is not known, so nothing in it is answered",
                remedy="check the permissions, or give other folders",
            ),
        )

    for place, folders, files in os.walk(folder, onerror=closed, followlinks=True):
        about = Path(place).stat()
        if (about.st_dev, about.st_ino) in seen:
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = Path(place, name)
            if is_picture(path) and not name.startswith("."):
                found.append((path, path.relative_to(folder).as_posix()))
    return sorted(found, key=lambda file: file[1].split("/"))


def read_pictures(
    files: list[File], model: Described, together: int, left_out: LeftOut
) -> Iterator[tuple[list[str], npt.NDArray[Any]]]:
    """Pictures in the model's form with their names, some at a time, without those left out."""
    remaining = iter(files)
    while some := list(islice(remaining, together)):
        pictures, names = [], []
        for path, name in some:
            try:
                pictures.append(_read(path, model))
                names.append(name)
            except BadInput as error:
                left_out.add(name, error)
        if pictures:
            yield names, np.stack(pictures)


def _read(path: Path, model: Described) -> npt.NDArray[Any]:
    from stillroom.data.pictures import picture_in

    picture = picture_in(path, model.form)
    if picture.shape != model.shape:
        raise BadInput(
            f"the picture has shape {picture.shape}, the model takes {model.shape}",
            where=str(path),
            why="other records would get labels that mean nothing",
            remedy="bring the pictures to the size and mode the model was trained on; a model "
            "whose recipe has data.size and data.mode takes pictures of any size",
        )
    return picture
