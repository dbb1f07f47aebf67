"""From records as they are stored to what a network reads."""

from __future__ import annotations

import math

import torch
from torch import nn

from stillroom.errors import BadInput


class AsPictures(nn.Module):
    """Raw records as floats, channels first, divided by a public constant.

    Guarantee: element by element, so no record moves another's picture.
    Assumes: `full_scale` was fixed without looking at the records.

    Args:
        shape: of one record as stored: (height, width), (height, width, channels) or (features,).
        full_scale: the largest value a feature can have, such as 255.

    Raises:
        BadInput: the shape has no sizes or too many, or the scale is not a number above 0.

    >>> AsPictures((28, 28), 255)(torch.zeros(5, 28, 28, dtype=torch.uint8)).shape
    torch.Size([5, 1, 28, 28])
    >>> AsPictures((32, 32, 3), 255).given
    (3, 32, 32)
    """

    def __init__(self, shape: tuple[int, ...], full_scale: float) -> None:
        super().__init__()
        if not 1 <= len(shape) <= 3 or min(shape) < 1:
            raise BadInput(
                f"records of shape {tuple(shape)} are neither pictures nor rows of features",
                where="records",
                why="a network is given channels, height and width, or a row",
                remedy="give (height, width), (height, width, channels) or (features,)",
            )
        if not (math.isfinite(full_scale) and full_scale > 0):
            raise BadInput(
                "the full scale must be a number above 0",
                where="full_scale",
                why="every feature is divided by it",
                remedy="give the largest value a feature can have, such as 255",
            )
        self.shape = tuple(shape)
        self.full_scale = float(full_scale)

    @property
    def given(self) -> tuple[int, ...]:
        """The shape a network is given: (channels, height, width), or (features,)."""
        if len(self.shape) == 3:
            height, width, channels = self.shape
            return channels, height, width
        return (1, *self.shape) if len(self.shape) == 2 else self.shape

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x.to(torch.float32) / self.full_scale
        if len(self.shape) == 3:
            return scaled.permute(0, 3, 1, 2).contiguous()
        return scaled.unsqueeze(1) if len(self.shape) == 2 else scaled
