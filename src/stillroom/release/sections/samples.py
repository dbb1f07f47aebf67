"""Section `samples`: pictures drawn from a sketch or a generator, one PNG sheet for the card."""

from __future__ import annotations

import io
import math
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.release.files import sha256
from stillroom.release.generator import NETWORK
from stillroom.release.manifest import does_not
from stillroom.release.sections.base import Body, Core, Section

MOST = 400
"""A card shows a sheet of pictures, not a data set."""
_LEAST_COLUMNS = 10
_GAP = 1
_PAPER = 255
_PICTURE = re.compile(rb'src="data:image/png;base64,([A-Za-z0-9+/=]+)"')


def drawable(shape: Sequence[int]) -> bool:
    """Whether records of that shape are grey pictures, or pictures of three colours.

    >>> drawable((28, 28)), drawable((32, 32, 3)), drawable((30,))
    (True, True, False)
    """
    return len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)


def check_samples(samples: npt.NDArray[Any]) -> None:
    """Refuse what cannot be shown as pictures.

    Raises:
        BadInput: another shape, another type, values outside 0 to 1, or too many.
    """
    if not drawable(samples.shape[1:]) or min(samples.shape) < 1 or len(samples) > MOST:
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
    """All pictures side by side, ten or more per row, on white paper.

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


@dataclass(frozen=True)
class Sheet:
    """Pictures that are shown on the card.

    Args:
        count: how many there are.
        png: all of them, as one PNG file.
    """

    count: int
    png: bytes

    @classmethod
    def of(cls, samples: npt.NDArray[Any]) -> Sheet:
        """The sheet of pictures (n, H, W) or (n, H, W, 3), uint8, or floats from 0 to 1.

        Raises:
            BadInput: another shape, another type, values outside 0 to 1, or too many.
        """
        check_samples(samples)
        return cls(len(samples), _png(sheet(samples)))

    def to_json(self) -> Body:
        """How many pictures are on the card, and the sheet's hash."""
        return {"count": self.count, "sha256": sha256(self.png)}


def _png(picture: npt.NDArray[np.uint8]) -> bytes:
    """A grey (H, W) or coloured (H, W, 3) picture as a PNG file, which holds nothing else."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG", optimize=True)
    return file.getvalue()


def picture_of(certificate: Mapping[str, Any], card: bytes, place: Path) -> bytes | None:
    """The sheet of samples on a card; None where there is none.

    Raises:
        DoesNotVerify: it is not the one the certificate names.
    """
    stated = certificate["sections"].get("samples")
    if stated is None:
        return None
    found = _PICTURE.search(card)
    picture = b"" if found is None else b64decode(found.group(1))
    if sha256(picture) != stated["sha256"]:
        raise does_not(place, "card.html shows other pictures than were released")
    return picture


def _completed(body: Body | None, core: Core) -> Body | None:
    if body is None:
        return None
    proper = set(body) == {"count", "sha256"} and type(body["count"]) is int
    if not proper or not 1 <= body["count"] <= MOST or len(bytes.fromhex(body["sha256"])) != 32:
        raise ValueError("not a sheet of pictures")
    return body


def _shown(certificate: Mapping[str, Any]) -> Body | None:
    body: Body | None = certificate["sections"].get("samples")
    if body is None:
        return None
    network = any(artefact.get("make") == NETWORK for artefact in certificate["artefacts"])
    return {**body, "network": network, "maker": "generator" if network else "private sketch"}


def _no_pictures(what: str, remedy: str) -> BadInput:
    return BadInput(what, where="samples", why="the card shows them as pictures", remedy=remedy)


SECTION = Section(
    "samples",
    Sheet.to_json,
    _completed,
    _shown,
    word="that the pictures on the card were drawn from the sketch or the generator",
    place="warnings",
)
