"""Random shifts and mirror images of pictures, the same for all records of a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from stillroom.randomness import integers


@dataclass(frozen=True)
class Augment:
    """Random shifts and mirror images, one for all records of a step and view.

    It is drawn for the step and not for the record, so that no record sways what happens to
    another. Borders are filled by reflection.

    Args:
        key: the recipe's seed.
        shift: the farthest shift in each direction, in pixels.
        mirror: whether to turn left and right around, half of the time.
    """

    key: int
    shift: int = 0
    mirror: bool = False

    def __call__(self, pictures: torch.Tensor, step: int, view: int) -> torch.Tensor:
        """The pictures of one view, as many and as large as before."""
        far, (height, width) = self.shift, pictures.shape[-2:]
        names = ("augment", step, view)
        down, right = integers(self.key, *names, "shift", size=2, below=2 * far + 1).tolist()
        wide = F.pad(pictures, (far, far, far, far), mode="reflect") if far else pictures
        seen = wide[..., down : down + height, right : right + width]
        turned = self.mirror and bool(integers(self.key, *names, "mirror", size=1, below=2)[0])
        return seen.flip(-1) if turned else seen
