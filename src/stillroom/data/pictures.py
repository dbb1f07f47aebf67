"""Readers of pictures: folders with one sub-folder per class, and the digits of SVHN."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from stillroom.data.dataset import Dataset, class_names
from stillroom.data.files import MOST_CONTENT, opened, plain_file, too_much
from stillroom.data.matlab import TooLong, mat_arrays
from stillroom.data.readers import DIGITS, Classes
from stillroom.errors import BadInput
from stillroom.extras import needed

FORMATS = ("PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP")
"""Formats that are pixels and nothing else: some others start helper programs when opened."""

GROWTH = 64
"""Bytes of pixels for one on disk, where a folder holds more than any file may."""

MODES = {"L": 1, "I;16": 2, "I": 4, "RGB": 3, "RGBA": 4}
"""Mode -> bytes of a pixel.

Grey, 16-bit grey as two versions call it, colour, colour with transparency.
"""


def read_images(
    path: str | Path, classes: Classes = None, person_of: Callable[[str], str] | None = None
) -> Dataset:
    """Read a folder that holds one sub-folder of pictures for each class.

    Assumes: which sub-folders there are is no secret; where it is, give the classes.

    Args:
        path: the folder. Files and folders whose names begin with a dot are left out.
        classes: the names of the sub-folders in the order of their labels; sorted by name when
            left out. A given class may have no sub-folder.
        person_of: from the name of a file, from the folder on, to the person it belongs to.

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
    found = sub_folders(folder)
    pictures: list[npt.NDArray[Any]] = []
    labels: list[int] = []
    persons: list[str] = []
    held = stored = 0
    for number, name in enumerate(names):
        files = _visible(found[name]) if name in found else []
        if name in found and not files:
            raise BadInput(
                "a class folder holds no pictures",
                where=str(found[name]),
                why="a class without records is most often a copy that was not finished",
                remedy="put its pictures there, or remove the folder",
            )
        for file in files:
            with plain_file(file) as (stream, size):
                stored += size
                picture = read_picture(stream, max(MOST_CONTENT, GROWTH * stored) - held)
                pictures.append(picture)
                if (picture.shape, picture.dtype) != (pictures[0].shape, pictures[0].dtype):
                    raise BadInput(
                        "a picture has another size or mode than the first one",
                        why="all records of a data set have one shape",
                        remedy="bring all pictures to one size and to one mode, such as RGB",
                    )
            held += picture.nbytes
            labels.append(number)
            if person_of is not None:
                persons.append(person_of(file.relative_to(folder).as_posix()))
    owners = None if person_of is None else tuple(persons)
    return Dataset(np.stack(pictures), np.array(labels), names, (), owners, str(path))


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


def read_picture(stream: IO[bytes], most: int = MOST_CONTENT) -> npt.NDArray[Any]:
    """The pixels of one picture: (height, width), or (height, width, channels).

    Args:
        stream: the picture's file.
        most: bytes that its pixels may take.

    Raises:
        BadInput: Pillow is not installed, the file is no picture of a known kind, or a header
            promises more pixels than a file of its size can honestly hold.
    """
    image = need_pillow()
    try:
        with warnings.catch_warnings():
            # Pillow has its own bound on pixels; its other warnings do not matter here.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with image.open(stream, formats=FORMATS) as picture:
                usable = picture.mode in MODES and getattr(picture, "n_frames", 1) == 1
                if usable and picture.width * picture.height * MODES[picture.mode] > most:
                    raise too_much(f"{most >> 20} MiB")
                if usable:
                    return np.array(picture)
    except (BadInput, MemoryError):
        raise
    except Exception:
        # On damaged files Pillow fails in a dozen ways, from SyntaxError to struct.error.
        usable = False
    raise BadInput(
        "the file is no readable picture in grey or colour",
        why="every file in a class folder is a record",
        remedy="repair or remove it; a palette, several frames or rare formats need converting "
        f"(known formats: {', '.join(FORMATS)})",
    )


def need_pillow() -> ModuleType:
    with needed("PIL", where="pictures", why="Pillow reads them"):
        from PIL import Image
    return Image


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as fault:
        raise BadInput(
            f"the folder cannot be listed ({fault.strerror})",
            where=str(folder),
            remedy="check the path and the permissions",
        ) from None


def read_svhn(path: str | Path, classes: Classes = None) -> Dataset:
    """Read a `.mat` file of SVHN's cropped digits: pictures of 32x32 pixels in colour.

    Args:
        path: the file, MATLAB version 5; it holds `X` (32x32x3xN) and `y`, where 10 means digit 0.
        classes: other names for the ten digits.

    Raises:
        BadInput: the file is no such file, or its arrays have other shapes, types or labels.

    >>> from tempfile import TemporaryDirectory
    >>> from scipy.io import savemat
    >>> with TemporaryDirectory() as folder:
    ...     x = np.zeros((32, 32, 3, 2), dtype=np.uint8)
    ...     savemat(Path(folder) / "digits.mat", {"X": x, "y": [[10], [3]]})
    ...     read_svhn(Path(folder) / "digits.mat").y
    array([0, 3])
    """
    names = DIGITS if classes in (None, len(DIGITS)) else class_names(classes, str(path))
    x, y = _records_and_labels(Path(path))
    if x.ndim != 4 or x.shape[:3] != (32, 32, 3) or x.dtype != np.uint8 or y.size != x.shape[3]:
        raise BadInput(
            "X is not 32x32x3xN bytes with one label y for each of the N",
            where=str(path),
            why="pixels would be taken for records, or labels for others",
            remedy="use train_32x32.mat or test_32x32.mat as published",
        )
    labels = y.reshape(-1)
    known = np.isin(labels, np.arange(1, 11))
    if not known.all():
        raise BadInput(
            "a label is outside 1 to 10",
            where=f"{path}, record {int(np.argmin(known))}",
            why="SVHN calls the digit 0 class 10, and knows no others",
            remedy="correct the label",
        )
    pictures = np.ascontiguousarray(x.transpose(3, 0, 1, 2))
    return Dataset(pictures, labels.astype(np.int64) % 10, names, name=str(path))


def _records_and_labels(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    with opened(path) as stream:
        content = stream.read()
        try:
            found = mat_arrays(content, ("X", "y"), stream.most)
            return found["X"], found["y"]
        except TooLong:
            raise too_much(f"{stream.most >> 20} MiB") from None
        except (ValueError, KeyError, struct.error, zlib.error):
            raise BadInput(
                "the file is no MATLAB file (version 5) with arrays of numbers X and y",
                why="records and labels are looked for under these names",
                remedy="use the published file; in MATLAB, save with the option -v7, not -v7.3",
            ) from None
