"""Queries moved to where student and teacher disagree, by the gradient through both.

Fang et al. 2019 train a generator to find such pictures; a few steps from a query that already
looks like something cost less. The step is kept to low frequencies: the high ones would show the
student grain that no picture has.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from stillroom.features.basis import Basis


class Refinement:
    """Steps along the gradient of the distance of a student's and a teacher's centred logits.

    Args:
        teacher: from stored records to logits; sanitised.
        student: the same; in eval mode.
        shape: of one record: (height, width), or with channels as a third axis.
        full_scale: the value of white.
        frequencies: how many of the lowest are moved.
    """

    def __init__(
        self,
        teacher: nn.Module,
        student: nn.Module,
        shape: tuple[int, ...],
        full_scale: float,
        frequencies: int,
    ) -> None:
        self._teacher, self._student, self._full_scale = teacher, student, full_scale
        height, width = shape[:2]
        kept = Basis(height, width, min(frequencies, height * width))
        self._low = torch.from_numpy(kept.matrix.copy()).float()
        self._dim = math.prod(shape)

    def moved(self, x: Tensor, length: Tensor, steps: int) -> Tensor:
        """The queries, each moved by its own length, and clipped to the range of the records.

        Args:
            x: queries in stored units.
            length: of each one's whole way: root mean square over its pixels, as a share of white.
            steps: how many steps the way is cut into.
        """
        far = length * (self._full_scale * math.sqrt(self._dim) / steps)
        for _ in range(steps):
            way = self._low_frequencies(self._gradient(x))
            norm = way.flatten(1).norm(dim=1).clamp(min=1e-20)
            shape = (-1, *(1,) * (x.ndim - 1))
            x = (x + way * (far / norm).reshape(shape)).clamp(0, self._full_scale)
        return x

    def _gradient(self, x: Tensor) -> Tensor:
        asked = x.detach().clone().requires_grad_()
        apart = centred(self._teacher(asked)) - centred(self._student(asked))
        (gradient,) = torch.autograd.grad(apart.abs().sum(), asked)
        return gradient

    def _low_frequencies(self, way: Tensor) -> Tensor:
        planes = way.flatten(1, 2).reshape(len(way), self._low.shape[1], -1)
        coefficients = torch.einsum("kp,npc->nkc", self._low, planes)
        return torch.einsum("kp,nkc->npc", self._low, coefficients).reshape(way.shape)


def centred(logits: Tensor) -> Tensor:
    """Logits less their mean, which a softmax does not see."""
    return logits - logits.mean(1, keepdim=True)
