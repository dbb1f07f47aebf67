"""From raw records to logits as torch layers, for a model that is handed over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.features.projection import BIAS, GRID_BITS, NEARLY_ONE, Projection

_SHORTEST = 1e-12


class LinearOverFeatures(nn.Module):
    """A feature network, its projection and a linear layer.

    The arithmetic is that of the integer grids without their rounding, which is finer than what a
    score depends on.

    Args:
        features: from raw records to feature tables.
        shortest: the norm below which features are left short.
        projection: to fewer directions; None for the features as they are.
        weights: one row per class, one column per feature and one for the constant.
    """

    def __init__(
        self,
        features: nn.Module,
        shortest: float,
        projection: Projection | None,
        weights: npt.NDArray[np.float32],
    ) -> None:
        super().__init__()
        self.features = features
        self._shortest = shortest
        self.mean: Tensor | None
        self.directions: Tensor
        if projection is None:
            self.mean = None
        else:
            directions = projection.directions / np.abs(projection.directions).max()
            self.register_buffer("mean", _single(projection.mean / (1 << GRID_BITS)))
            self.register_buffer("directions", _single(directions))
        self.layer = nn.Linear(weights.shape[1] - 1, len(weights))
        with torch.no_grad():
            self.layer.weight.copy_(_single(weights[:, :-1]))
            self.layer.bias.copy_(_single(weights[:, -1] * (BIAS * NEARLY_ONE)))

    def forward(self, x: Tensor) -> Tensor:
        rows = _unit(self.features(x).flatten(1), self._shortest)
        if self.mean is not None:
            # In double precision: what is left of the mean may be short, and its errors would grow.
            away = (rows - self.mean).double() @ self.directions.double()
            rows = _unit(away, _SHORTEST).float()
        logits: Tensor = self.layer(rows * (float(np.sqrt(1 - BIAS**2)) * NEARLY_ONE))
        return logits


def _single(values: npt.NDArray[np.floating]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def _unit(rows: Tensor, shortest: float) -> Tensor:
    return rows / torch.sqrt((rows * rows).sum(dim=1, keepdim=True)).clamp(min=shortest)
