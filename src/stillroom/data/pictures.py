"""Reader of pictures: a folder with one sub-folder per class, and single pictures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from stillroom.data.dataset import Dataset, class_names, content_of, ids_of
from stillroom.data.files import MOST_CONTENT, plain_file, too_much
from stillroom.data.picture_form import PictureForm, need_pillow
from stillroom.data.readers import Classes
from stillroom.errors import BadInput, located

FORMATS = ("PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP")
"""Formats that are pixels and nothing else: some others start helper programs when opened."""

GROWTH = 64
"""Bytes of pixels for one on disk, where a folder holds more than any file may."""

MODES = {"L": 1, "I;16": 2, "I": 4, "RGB": 3, "RGBA": 4}
"""Mode -> bytes of a pixel, of pictures that are taken as they are.

Grey, 16-bit grey as two versions call it, colour, colour with transparency.
"""

Look = Callable[[Iterator[npt.NDArray[Any]]], None]
STRIP = 1 << 17
"""Pixels that are looked at together: a large picture takes no memory to speak of."""

MOST_BYTES = 4
"""Bytes of a pixel while it is converted."""


def read_images(
    path: str | Path,
    classes: Classes = None,
    person_of: Callable[[str], str] | None = None,
    form: PictureForm | None = None,
) -> Dataset:
    """Read a folder that holds one sub-folder of pictures for each class.

    Guarantee: with a form, each record is a function of one picture alone, and only one picture at
    a time is held as large as it was.

    Assumes: which sub-folders there are is no secret; where it is, give the classes.

    Args:
        path: the folder. Files and folders whose names begin with a dot are left out.
        classes: the names of the sub-folders in the order of their labels; sorted by name when
            left out. A given class may have no sub-folder.
        person_of: from the name of a file, from the folder on, to the person it belongs to.
        form: what the pictures are brought to.

    Raises:
        BadInput: Pillow is not installed, a class folder is empty or not declared, a file is no
            picture, or a picture has another size or mode than the first one.

    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         (Path(folder) / name).mkdir()
    ...         Image.new("RGB", (4, 2)).save(Path(folder) / name / "1.png")
    ...     pets = read_images(folder)
    >>> pets.classes, pets.shape
    (('cat', 'dog'), (2, 4, 3))
    """
    folder = Path(path)
    names = folder_classes([folder], classes)
    labelled = list(_files(sub_folders(folder), names))
    files = [file for file, _ in labelled]
    owners = None
    if person_of is not None:
        owners = tuple(person_of(file.relative_to(folder).as_posix()) for file in files)
    labels = [label for _, label in labelled]
    contents: list[str] = []

    def look(stored: Iterator[npt.NDArray[Any]]) -> None:
        place = len(contents)
        person = "" if owners is None else owners[place]
        contents.append(content_of(stored, labels[place], person))

    with located(folder):
        x = _alike(files, form, look)
    # Of the pictures as they are stored: a ledger knows them again in any size and mode.
    ids = () if form is None else ids_of(contents)
    return Dataset(x, np.array(labels), names, ids, owners, str(path))


def _files(found: dict[str, Path], names: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """The pictures of each class, with their labels."""
    for number, name in enumerate(names):
        files = _visible(found[name]) if name in found else []
        if name in found and not files:
            raise BadInput(
                "a class folder holds no pictures",
                where=str(found[name]),
                why="a class without records is most often a copy that was not finished",
                remedy="put its pictures there, or remove the folder",
            )
        yield from ((file, number) for file in files)


def _alike(files: Sequence[Path], form: PictureForm | None, look: Look) -> npt.NDArray[Any]:
    """Pictures that have one shape and type, or are brought to them, as one array."""
    most = max(MOST_CONTENT, GROWTH * sum(map(_stored, files)))
    pictures = (picture_in(file, form, most, look) for file in files)
    first = next(pictures)
    _refuse_more(len(files), first, form, most)
    x = np.empty((len(files), *first.shape), first.dtype)
    for row, (file, picture) in enumerate(zip(files, chain([first], pictures), strict=True)):
        if (picture.shape, picture.dtype) != (first.shape, first.dtype):
            raise _unlike(file, form)
        x[row] = picture
    return x


def _refuse_more(count: int, first: npt.NDArray[Any], form: PictureForm | None, most: int) -> None:
    """Refuse what would fill the memory, before it is set aside."""
    if form is None or form.size is None:
        if count * first.nbytes > most:
            raise too_much(f"{most >> 20} MiB")
        return
    # The recipe says how large they are, so no file can make them larger than that.
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if count * first.nbytes > there:
        raise BadInput(
            f"the pictures take {count * first.nbytes >> 20:,} MiB in the size they are brought to",
            why=f"all of them are kept in memory, and this machine has {there >> 20:,} MiB",
            remedy="set a smaller data.size (--size)",
        )


def _unlike(file: Path, form: PictureForm | None) -> BadInput:
    sized = form is not None and form.size is not None
    return BadInput(
        "a picture has another mode than the first one: one is grey, the other in colour"
        if sized
        else "a picture has another size or mode than the first one",
        where=str(file),
        why="all records of a data set have one shape",
        remedy='set data.mode = "grey" or "colour" (--mode): pictures are then converted as they '
        "are read"
        if sized
        else 'set data.size, such as 64, and data.mode, "grey" or "colour" (--size 64 --mode '
        "grey): pictures are then converted as they are read",
    )


def _stored(file: Path) -> int:
    """Bytes on disk; none of what cannot be read, which is refused when it is."""
    try:
        about = file.stat()
    except OSError:
        return 0
    return min(about.st_size, 512 * about.st_blocks)


def picture_in(
    file: Path,
    form: PictureForm | None = None,
    most: int = MOST_CONTENT,
    look: Look = lambda stored: None,
) -> npt.NDArray[Any]:
    """The pixels of a picture's file; as `read_picture`, and its refusals name the file."""
    with plain_file(file) as (stream, size):
        sized = form is not None and form.size is not None
        most = max(MOST_CONTENT, GROWTH * size) if sized else most
        return read_picture(stream, most, form, look)


def sub_folders(folder: Path) -> dict[str, Path]:
    """The sub-folders of a folder by name, without hidden ones.

    Raises:
        BadInput: the folder cannot be listed.
    """
    return {path.name: path for path in _visible(folder) if path.is_dir()}


def folder_classes(folders: Sequence[Path], classes: Classes) -> tuple[str, ...]:
    """The classes of one or more image folders: as given, or the names of all their sub-folders.

    Raises:
        BadInput: there are no sub-folders, fewer than two, or others than the given classes.
    """
    found = {name: path for folder in folders for name, path in sub_folders(folder).items()}
    if not found:
        raise BadInput(
            "the folder holds no sub-folders of pictures and no data files of a known kind",
            where=str(folders[0]),
            why="the class of a picture is the name of its folder",
            remedy="make one sub-folder per class; or name a data file itself",
        )
    if classes is None or classes == len(found):
        return class_names(sorted(found), str(folders[0]))
    names = class_names(classes, str(folders[0]))
    if unknown := sorted(set(found) - set(names)):
        raise BadInput(
            "a sub-folder is not among the given classes",
            where=str(found[unknown[0]]),
            why="its pictures would be left out silently",
            remedy="give the names of all sub-folders as classes, or leave the classes out",
        )
    return names


def read_picture(
    stream: IO[bytes],
    most: int = MOST_CONTENT,
    form: PictureForm | None = None,
    look: Look = lambda stored: None,
) -> npt.NDArray[Any]:
    """The pixels of one picture: (height, width), or (height, width, channels).

    Args:
        stream: the picture's file.
        most: bytes that its pixels may take before it is converted.
        form: what it is brought to; None takes it as it is.
        look: given the pixels as they are stored, some rows at a time, before they are converted.

    Raises:
        BadInput: Pillow is not installed, the file is no picture of a known kind, or a header
            promises more pixels than a file of its size can honestly hold.
    """
    image = need_pillow()
    flaw = "gif" if stream.read(4) == b"GIF8" else ""
    stream.seek(0)
    try:
        with warnings.catch_warnings():
            # Pillow has its own bound on pixels; its other warnings do not matter here.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with image.open(stream, formats=FORMATS) as picture:
                # Some cameras keep a preview behind their picture, and call it a second one.
                if getattr(picture, "n_frames", 1) != 1 and picture.format != "MPO":
                    flaw = "several"
                elif not (picture.mode in MODES if form is None else form.takes(picture)):
                    flaw = "mode"
                else:
                    each = MODES[picture.mode] if form is None else MOST_BYTES
                    if picture.width * picture.height * each > most:
                        raise too_much(f"{most >> 20} MiB")
                    if form is None:
                        return np.array(picture)
                    look(_strips(picture))
                    return form.pixels(picture)
    except (BadInput, MemoryError):
        raise
    except (image.DecompressionBombWarning, image.DecompressionBombError):
        raise BadInput(
            f"the picture has more than {image.MAX_IMAGE_PIXELS:,} pixels",
            why="it would fill the memory; it is most often damaged, or made to do harm",
            remedy="if it is really that large, make it smaller or cut it into pieces",
        ) from None
    except Exception:
        # On damaged files Pillow fails in a dozen ways, from SyntaxError to struct.error.
        flaw = flaw if flaw == "gif" else ""
    raise _no_picture(flaw, form)


def _strips(picture: Any) -> Iterator[npt.NDArray[Any]]:
    """The pixels of an open picture as they are stored, some rows at a time."""
    picture.load()
    wide, high = picture.size
    rows = max(1, STRIP // wide)
    for top in range(0, high, rows):
        yield np.asarray(picture.crop((0, top, wide, min(top + rows, high))))


def _no_picture(flaw: str, form: PictureForm | None) -> BadInput:
    """What is wrong with a file, in words."""
    known = ", ".join(FORMATS)
    if flaw in ("gif", "several"):
        return BadInput(
            "a GIF is not read: it may hold several pictures"
            if flaw == "gif"
            else "the file holds several pictures",
            why="one file is one record, and which of its pictures is meant is not known",
            remedy=f"save the picture that is meant by itself ({known})",
        )
    if flaw == "mode" and (form is None or form.mode is None):
        return BadInput(
            "the picture is neither grey nor colour with 8 bits"
            if form is not None
            else "the file is no readable picture in grey or colour",
            why="with a palette, transparency, 16 bits or inks, what a pixel means must be said",
            remedy='set data.mode = "grey" or "colour" (--mode): pictures are then converted as '
            "they are read",
        )
    return BadInput(
        "the file is no readable picture in grey or colour",
        why="every file in a class folder is a record",
        remedy=f"repair or remove it; rare formats need converting (known formats: {known})",
    )


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as fault:
        raise BadInput(
            f"the folder cannot be listed ({fault.strerror})",
            where=str(folder),
            why="its pictures are the records",
            remedy="check the path and the permissions",
        ) from None
