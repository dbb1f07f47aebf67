"""Pictures drawn from a sanitised sketch, as one PNG sheet for the card."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.release.files import sha256

MOST = 400
"""A card shows a sheet of pictures, not a data set."""
_LEAST_COLUMNS = 10
_GAP = 1
_PAPER = 255


def check_samples(samples: npt.NDArray[Any]) -> None:
    """Refuse what cannot be shown as pictures.

    Raises:
        BadInput: another shape, another type, values outside 0 to 1, or too many.
    """
    grey_or_colour = samples.ndim == 3 or (samples.ndim == 4 and samples.shape[3] == 3)
    if not grey_or_colour or min(samples.shape) < 1 or len(samples) > MOST:
        raise _no_pictures(
            f"samples of shape {samples.shape} are no sheet of pictures",
            f"give 1 to {MOST} pictures, (n, height, width) or (n, height, width, 3)",
        )
    if samples.dtype.kind == "f":
        fits = bool(((samples >= 0) & (samples <= 1)).all())
    else:
        fits = samples.dtype == np.uint8
    if not fits:
        raise _no_pictures(
            "the samples are neither uint8 nor floats from 0 to 1",
            "scale them to 0 to 1 and cut off what lies outside",
        )


def sheet(samples: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """All pictures side by side, ten or more a row, on white paper.

    >>> sheet(np.zeros((12, 4, 4))).shape
    (9, 49)
    """
    pictures = samples if samples.dtype == np.uint8 else np.rint(samples * 255).astype(np.uint8)
    count, high, wide, *colour = pictures.shape
    columns = min(count, max(_LEAST_COLUMNS, math.ceil(math.sqrt(count))))
    rows = math.ceil(count / columns)
    size = (rows * (high + _GAP) - _GAP, columns * (wide + _GAP) - _GAP, *colour)
    paper = np.full(size, _PAPER, dtype=np.uint8)
    for place, picture in enumerate(pictures):
        top, left = place // columns * (high + _GAP), place % columns * (wide + _GAP)
        paper[top : top + high, left : left + wide] = picture
    return paper


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """A grey (H, W) or coloured (H, W, 3) picture as a PNG file, which holds nothing else."""
    high, wide = picture.shape[:2]
    colour_type = 0 if picture.ndim == 2 else 2
    rows = picture.reshape(high, -1)
    unfiltered = np.concatenate([np.zeros((high, 1), np.uint8), rows], axis=1)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", wide, high, 8, colour_type, 0, 0, 0),
        b"IDAT": zlib.compress(unfiltered.tobytes(), 9),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks.items()
    )


def stated_samples(samples: npt.NDArray[Any] | None) -> dict[str, Any] | None:
    """What the certificate says of the pictures on the card: how many, and the sheet's hash."""
    if samples is None:
        return None
    return {"count": len(samples), "sha256": sha256(png(sheet(samples)))}


def check_stated_samples(stated: Any) -> None:
    """Refuse what `stated_samples` cannot have said.

    Raises:
        ValueError: it is neither nothing nor a count and a hash.
    """
    if stated is None:
        return
    proper = set(stated) == {"count", "sha256"} and type(stated["count"]) is int
    if not proper or not 1 <= stated["count"] <= MOST or len(bytes.fromhex(stated["sha256"])) != 32:
        raise ValueError("not a sheet of pictures")


def _no_pictures(what: str, remedy: str) -> BadInput:
    return BadInput(what, where="samples", why="the card shows them as pictures", remedy=remedy)
