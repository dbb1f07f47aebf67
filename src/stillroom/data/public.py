"""Pictures that anyone may see: public ones, and ones drawn from sanitised statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class PublicPictures:
    """Pictures that statistics may be fitted on, free of charge.

    Assumes: whoever makes one vouches for its origin. It is a type of its own so that sensitive
    records, which are a `Dataset`, cannot be taken for it by accident.

    Args:
        x: the pictures.
        origin: where they come from, in words for the certificate.
    """

    x: npt.NDArray[Any] = field(repr=False)
    origin: str
