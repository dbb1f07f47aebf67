"""Reader of the digits of SVHN."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data.dataset import Dataset, class_names
from stillroom.data.files import opened, too_much
from stillroom.data.matlab import TooLong, mat_arrays
from stillroom.data.readers import DIGITS, Classes
from stillroom.errors import BadInput


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
