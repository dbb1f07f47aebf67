"""Pictures as they come, brought to one size and one mode while they are read.

Everything here is a function of one picture and of what the recipe says: no mean, no largest value,
no first picture decides about another. Training and `predict` use this code alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.extras import needed

Mode = Literal["grey", "colour"]
RULES = 1
"""Of the conversion as docs/pictures.md states it; other rules would be another number."""
LARGEST_SIDE = 4096
WHITE = (255, 255, 255, 255)
"""What stands behind transparent pixels."""

PLAIN = ("L", "RGB")
"""Pillow's modes of 8 bits per channel without anything else."""
WIDE = ("I;16", "I;16L", "I;16B", "I;16N")
"""16-bit grey."""
CLEAR = ("P", "PA", "LA", "RGBA")
"""With a palette or with transparency."""
OTHERS = ("1", "RGBX", "CMYK", "YCbCr")
_ORIENTATION = 0x0112


@dataclass(frozen=True)
class PictureForm:
    """To which size and mode pictures are brought.

    Args:
        size: height and width; None leaves each picture its own.
        mode: grey or colour; None takes grey or colour pictures of 8 bits as they are.

    Raises:
        BadInput: neither is given, or one is out of range.

    >>> PictureForm((48, 64), "colour").shape
    (48, 64, 3)
    """

    size: tuple[int, int] | None = None
    mode: Mode | None = None

    def __post_init__(self) -> None:
        sized = self.size is None or (
            len(self.size) == 2
            and all(type(side) is int and 1 <= side <= LARGEST_SIDE for side in self.size)
        )
        named = self.mode is None or self.mode in get_args(Mode)
        if not sized or not named or (self.size is None and self.mode is None):
            raise BadInput(
                "pictures cannot be brought to this size or mode",
                where="data.size, data.mode",
                why="all records of a data set have one shape",
                remedy=f"give one side or height and width, from 1 to {LARGEST_SIDE}; and mode "
                f"{' or '.join(get_args(Mode))}",
            )

    @classmethod
    def of(cls, size: int | Sequence[int] | None, mode: str | None) -> PictureForm | None:
        """From the words of a recipe; None where it says nothing.

        >>> PictureForm.of(64, None)
        PictureForm(size=(64, 64), mode=None)
        """
        if size is None and mode is None:
            return None
        sides = (size, size) if isinstance(size, int) else size
        return cls(None if sides is None else tuple(sides), mode)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, said: object) -> PictureForm:
        """As a certificate states it.

        Raises:
            ValueError: it is malformed, or of rules that are not known here.
        """
        if not isinstance(said, Mapping) or said.keys() != {"size", "mode", "rules"}:
            raise ValueError("the form of pictures is malformed")
        size, mode = said["size"], said["mode"]
        if type(said["rules"]) is not int or said["rules"] != RULES:
            raise ValueError("pictures are converted by rules of another version")
        if not isinstance(size, list | None) or not isinstance(mode, str | None):
            raise ValueError("the form of pictures is malformed")
        try:
            form = cls.of(size, mode)
        except BadInput:
            form = None
        if form is None:
            raise ValueError("the form of pictures is malformed")
        return form

    def to_json(self) -> dict[str, Any]:
        """For a certificate."""
        size = None if self.size is None else list(self.size)
        return {"size": size, "mode": self.mode, "rules": RULES}

    @property
    def words(self) -> str:
        """As a recipe says it.

        >>> PictureForm((48, 64), "grey").words
        'size = [48, 64], mode = "grey"'
        """
        high, wide = self.size or (0, 0)
        told = [f"size = {high if high == wide else [high, wide]}"] if self.size else []
        return ", ".join(told + ([f'mode = "{self.mode}"'] if self.mode else []))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of one record, where size and mode fix it."""
        if self.size is None or self.mode is None:
            return None
        return self.size if self.mode == "grey" else (*self.size, 3)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether pictures of this form can be records of that shape."""
        sized = self.size is None or tuple(shape[:2]) == self.size
        colour = tuple(shape[2:]) == (3,)
        right = {"grey": len(shape) == 2, "colour": colour, None: colour or len(shape) == 2}
        return sized and len(shape) >= 2 and right[self.mode]

    def takes(self, picture: Any) -> bool:
        """Whether an open picture of Pillow can be converted."""
        if self.mode is None:
            return picture.mode in PLAIN
        # Signed or 32-bit numbers of other formats have no known range.
        wide = picture.mode == "I" and picture.format in ("PNG", "PPM")
        return wide or picture.mode in (*PLAIN, *WIDE, *CLEAR, *OTHERS)

    def pixels(self, picture: Any) -> npt.NDArray[np.uint8]:
        """An open picture of Pillow in this form: turned upright, converted, then resized."""
        picture.load()
        plain = self._plain(_upright(picture))
        if self.size is not None and plain.size != self.size[::-1]:
            # Its triangle is as wide as the shrinking asks for, so every pixel counts.
            plain = plain.resize(self.size[::-1], need_pillow().Resampling.BILINEAR)
        return np.array(plain, dtype=np.uint8)

    def _plain(self, picture: Any) -> Any:
        if self.mode is None:
            return picture
        wanted = "L" if self.mode == "grey" else "RGB"
        if picture.mode == "I" or picture.mode in WIDE:
            high = np.clip(np.asarray(picture), 0, 0xFFFF) >> 8
            return need_pillow().fromarray(high.astype(np.uint8)).convert(wanted)
        if picture.mode in CLEAR or "transparency" in picture.info:
            over = picture.convert("RGBA")
            behind = need_pillow().new("RGBA", over.size, WHITE)
            picture = need_pillow().alpha_composite(behind, over)
        straight = picture.mode in ("1", *PLAIN)
        return (picture if straight else picture.convert("RGB")).convert(wanted)


def _upright(picture: Any) -> Any:
    """Turned as its EXIF orientation says; as it is stored where that cannot be read."""
    turn = need_pillow().Transpose
    turns = {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_270,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_90,
    }
    said = None
    # On damaged entries Pillow fails in a dozen ways, and the pixels are none the worse for it.
    with suppress(Exception):
        said = turns.get(picture.getexif().get(_ORIENTATION))
    return picture if said is None else picture.transpose(said)


def need_pillow() -> Any:
    """Pillow's Image.

    Raises:
        BadInput: it is not installed.
    """
    with needed("PIL", where="pictures", why="Pillow reads them"):
        from PIL import Image
    return Image
