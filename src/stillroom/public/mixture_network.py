"""A mixture of Gaussians per class as a torch module: scores that one may differentiate through."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.public.mixture import LEAST_VARIANCE, Mixture

_CHUNK = 1024


class MixtureNetwork(nn.Module):
    """From stored pictures to the log-likelihood of each class, classes alike.

    What lies outside the mixture's directions counts as noise of the smallest variance inside.

    Guarantee: made of sanitised values and public numbers only.

    Args:
        mixture: the mixture.
        full_scale: the value of white.
    """

    def __init__(self, mixture: Mixture, full_scale: float) -> None:
        super().__init__()
        variances, axes = np.linalg.eigh(mixture.covariances)
        variances = np.maximum(variances, LEAST_VARIANCE)
        weights = np.maximum(mixture.weights, 1e-9)
        shares = weights / weights.sum(axis=1, keepdims=True)
        constants = np.log(shares) - 0.5 * np.log(variances).sum(axis=1)[:, None]
        self._rest = float(variances.min(axis=1).mean())
        self._full_scale = full_scale
        self.basis, self.directions = _fixed(mixture.basis.matrix.T), _fixed(mixture.directions)
        self.centres, self.constants = _fixed(mixture.centres), _fixed(constants)
        self.whitening = _fixed(axes / np.sqrt(variances)[:, None, :])

    def forward(self, x: Tensor) -> Tensor:
        """One score per class, centred per record."""
        grey = (x.double().flatten(1) / self._full_scale).clamp(0, 1)
        away = (grey @ self.basis)[:, None, None, :] - self.centres
        inside = away @ self.directions
        whitened = torch.einsum("nckd,cde->ncke", inside, self.whitening)
        outside = (away.square().sum(3) - inside.square().sum(3)).clamp(min=0) / self._rest
        scores = torch.logsumexp(self.constants - (whitened.square().sum(3) + outside) / 2, dim=2)
        return (scores - scores.mean(1, keepdim=True)).float()

    def of_records(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The scores of records, as numpy arrays."""
        with torch.no_grad():
            parts = [self(some) for some in torch.split(torch.from_numpy(np.array(x)), _CHUNK)]
        return torch.cat(parts).double().numpy()


def _fixed(values: npt.NDArray[np.float64]) -> nn.Parameter:
    return nn.Parameter(
        torch.from_numpy(np.ascontiguousarray(values)).double(), requires_grad=False
    )
