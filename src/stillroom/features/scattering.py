"""A fixed scattering transform of two orders, as strided convolutions.

Bruna and Mallat 2013, with one small Morlet bank used on the picture and on its half: wavelet
moduli of the first and second order, averaged over a seventh (an eighth) of the picture's side.
Nothing is fitted; each group of maps is normalised within its own record.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ORIENTATIONS = 8
_SIDE = 9
_SIGMA, _FREQUENCY, _SLANT = 0.8, 3 * math.pi / 4, 0.5
_FLOOR = 1e-6
"""Keeps the root differentiable; a thousandth is below one step of eight bits."""
MAPS = 1 + 2 * ORIENTATIONS + ORIENTATIONS**2
_GROUP = 3
"""Maps normalised together, within a record."""


class Scattering(nn.Module):
    """Pictures (N, C, H, W) to 81 maps per channel, a quarter as long, each group of norm 1.

    Guarantee: a picture's maps depend on that picture alone.

    Args:
        channels: of a picture.

    >>> Scattering()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 81, 7, 7])
    """

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        self._groups = channels * MAPS // _GROUP
        real, imaginary = morlet_bank()
        self.real: Tensor
        self.imaginary: Tensor
        self.average: Tensor
        self.register_buffer("real", real)
        self.register_buffer("imaginary", imaginary)
        self.register_buffer("average", gaussian_window())

    def maps(self, pictures: Tensor) -> Tensor:
        """The averaged moduli, before normalisation."""
        count, channels, high, wide = pictures.shape
        single = pictures.reshape(count * channels, 1, high, wide)
        half = F.avg_pool2d(single, 2)
        first = F.avg_pool2d(self._modulus(single), 2)
        coarse = self._modulus(half)
        second = self._modulus(first)
        whole = torch.cat([half, first, coarse, second], dim=1)
        padded = F.pad(whole, (2, 2, 2, 2), mode="reflect")
        window = self.average.expand(whole.shape[1], 1, -1, -1)
        averaged = F.conv2d(padded, window, stride=2, groups=whole.shape[1])
        return averaged.reshape(count, channels * averaged.shape[1], *averaged.shape[2:])

    def forward(self, pictures: Tensor) -> Tensor:
        return F.group_norm(self.maps(pictures), self._groups)

    def _modulus(self, maps: Tensor) -> Tensor:
        """Each map through each wavelet, and the length of the complex answer."""
        count, depth, high, wide = maps.shape
        edge = _SIDE // 2
        padded = F.pad(maps, (edge,) * 4, mode="reflect").reshape(
            count * depth, 1, high + 2 * edge, wide + 2 * edge
        )
        real, imaginary = F.conv2d(padded, self.real), F.conv2d(padded, self.imaginary)
        modulus = torch.sqrt(real * real + imaginary * imaginary + _FLOOR)
        return modulus.reshape(count, depth * ORIENTATIONS, high, wide)


def morlet_bank() -> tuple[Tensor, Tensor]:
    """Eight oriented Morlet wavelets of mean zero: real and imaginary parts."""
    reach = torch.arange(_SIDE, dtype=torch.float64) - _SIDE // 2
    down, across = torch.meshgrid(reach, reach, indexing="ij")
    waves = []
    for turn in range(ORIENTATIONS):
        angle = math.pi * turn / ORIENTATIONS
        along = across * math.cos(angle) + down * math.sin(angle)
        aside = -across * math.sin(angle) + down * math.cos(angle)
        window = torch.exp(-(along**2 + (_SLANT * aside) ** 2) / (2 * _SIGMA**2))
        wave = window * torch.exp(1j * _FREQUENCY * along)
        wave = wave - window * (wave.sum() / window.sum())
        waves.append(wave / window.sum())
    bank = torch.stack(waves)[:, None]
    return bank.real.float(), bank.imag.float()


def gaussian_window(side: int = 5, sigma: float = 0.8) -> Tensor:
    """A low-pass window whose weights add up to one."""
    reach = torch.arange(side, dtype=torch.float64) - side // 2
    line = torch.exp(-(reach**2) / (2 * sigma**2))
    window = line[:, None] * line[None, :]
    return (window / window.sum()).float()[None, None]
