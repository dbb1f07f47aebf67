"""Public linear maps between the weights of a model and a few latent numbers.

A map is fitted on public or sanitised things before anything private is looked at. Its columns are
orthonormal, so a difference of weights is never longer as latents than it was as weights, and noise
on latents is as long in weights.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.vocabulary import Integers

Floats = npt.NDArray[np.floating]
Flat = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
TOGETHER = 1 << 16
"""Weights per product, so that no array is much larger than a model."""


class LatentMap(ABC):
    """From differences of weights to latents, and back.

    Args:
        size: weights of a model.
        latents: how many there are.
        arrays: all that the map depends on.
    """

    def __init__(self, size: int, latents: int, *arrays: npt.NDArray[np.generic]) -> None:
        self.size, self.latents = size, latents
        found = hashlib.sha256(f"{type(self).__name__} {size} {latents}".encode())
        for array in arrays:
            found.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
        self.digest = found.digest()
        """Part of the question that is asked by the map."""

    @abstractmethod
    def of(self, difference: Floats) -> Reals:
        """The latents of one model's difference, a vector; nothing else is looked at."""

    @abstractmethod
    def spread(self, latents: Floats) -> Flat:
        """The difference of weights that has these latents."""


class KeptWeights(LatentMap):
    """Some weights as they are; the others stay where they were.

    Args:
        size: weights of a model.
        kept: the places of those that move.

    >>> KeptWeights(4, np.array([1, 3])).of(np.array([9.0, 8.0, 7.0, 6.0])).tolist()
    [8.0, 6.0]
    """

    def __init__(self, size: int, kept: Integers) -> None:
        super().__init__(size, len(kept), kept)
        self._kept = kept

    def of(self, difference: Floats) -> Reals:
        return difference[self._kept].astype(np.float64)

    def spread(self, latents: Floats) -> Flat:
        found = np.zeros(self.size, dtype=np.float32)
        found[self._kept] = latents
        return found


class GroupedWeights(LatentMap):
    """One latent per group of weights, which move together: alike, or by signs.

    Args:
        group: of each weight, numbered from 0 without gaps; -1 for one that stays.
        signs: +1 or -1 of each weight; all +1 when left out.

    Raises:
        BadInput: a group has no weights, or the signs are none.

    >>> together = GroupedWeights(np.array([0, 0, 0, 0, 1]))
    >>> together.of(np.array([1.0, 2.0, 3.0, 2.0, 5.0])).tolist()
    [4.0, 5.0]
    >>> together.spread(np.array([4.0, 5.0])).tolist()
    [2.0, 2.0, 2.0, 2.0, 5.0]
    """

    def __init__(self, group: Integers, signs: Integers | None = None) -> None:
        inside = group >= 0
        sizes = np.bincount(group[inside])
        signs = np.ones(len(group), dtype=np.int64) if signs is None else signs
        if not (len(sizes) and sizes.all()) or not (
            signs.shape == group.shape and (np.abs(signs) == 1).all()
        ):
            raise BadInput(
                "the groups do not number the weights from 0 without gaps, or have other signs",
                where="latents",
                why="a group without weights has no mean",
                remedy="give one group per weight, -1 for none, and signs of -1 or 1",
            )
        super().__init__(len(group), len(sizes), group, signs)
        self._place = np.maximum(group, 0)
        self._weight = np.where(inside, signs / np.sqrt(sizes[self._place]), 0.0)

    def of(self, difference: Floats) -> Reals:
        found: Reals = np.zeros(self.latents)
        np.add.at(found, self._place, self._weight * difference)
        return found

    def spread(self, latents: Floats) -> Flat:
        moved: Flat = (self._weight * latents[self._place]).astype(np.float32)
        return moved


class Directions(LatentMap):
    """One latent per direction in the space of weights.

    Args:
        rows: orthonormal directions, one per row.

    Raises:
        BadInput: they are not orthonormal.
    """

    def __init__(self, rows: Flat) -> None:
        fits = rows.ndim == 2 and 0 < len(rows) <= rows.shape[1]
        if not fits or np.abs(rows @ rows.T - np.eye(len(rows))).max() > 1e-3:
            raise BadInput(
                "the directions are not orthonormal rows",
                where="latents",
                why="noise on latents would be longer, or shorter, in weights",
                remedy="orthonormalise them, and give one direction per row",
            )
        super().__init__(int(rows.shape[1]), len(rows), rows)
        self._rows = rows

    def of(self, difference: Floats) -> Reals:
        found: Reals = np.zeros(self.latents)
        for at in range(0, self.size, TOGETHER):
            part = slice(at, at + TOGETHER)
            found += self._rows[:, part].astype(np.float64) @ difference[part].astype(np.float64)
        return found

    def spread(self, latents: Floats) -> Flat:
        moved: Flat = (self._rows.T @ latents.astype(np.float32)).astype(np.float32)
        return moved
