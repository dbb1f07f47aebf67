"""A mixture of Gaussians for each class, and pictures drawn from it; see `mixture_fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput
from stillroom.features.basis import Basis, Reals
from stillroom.public.retouch import sharpened, warped
from stillroom.randomness import integers, normals, uniforms
from stillroom.vocabulary import Integers

LEAST_VARIANCE = 1e-3
"""No direction is thinner: what is below is noise."""

BLOCK = 4096

_TABLES = ("weights", "centres", "directions", "covariances", "outside")


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians around some centres for each class, in a public basis, to draw pictures from.

    Guarantee: made of sanitised values and public numbers only, so every sample is free.

    Args:
        weights: (classes, centres), how often a centre is drawn; negative ones never.
        centres: (classes, centres, coefficients).
        directions: (coefficients, directions), along which the samples spread.
        covariances: (classes, directions, directions).
        basis: of the coefficients.
        outside: (coefficients, any), what all classes spread alike beyond the directions, one
            column per direction, as long as its standard deviation; None for nothing.

    >>> blank = Mixture(np.ones((2, 1)), np.zeros((2, 1, 4)), np.eye(4), np.ones((2, 4, 4)),
    ...                 Basis(5, 5, 4))
    >>> pictures, classes = blank.sample(7, 3)
    >>> pictures.shape, len(classes)
    ((3, 5, 5), 3)
    """

    weights: Reals
    centres: Reals
    directions: Reals
    covariances: Reals
    basis: Basis
    outside: Reals | None = None

    def __post_init__(self) -> None:
        classes, near, kept = self.centres.shape if self.centres.ndim == 3 else (0, 0, 0)
        size = self.directions.shape[1] if self.directions.ndim == 2 else 0
        if self.outside is None:
            object.__setattr__(self, "outside", np.zeros((kept, 0)))
        expected = {
            "weights": (classes, near),
            "centres": (classes, near, self.basis.count),
            "directions": (kept, size),
            "covariances": (classes, size, size),
        }
        for name, shape in expected.items():
            _check(name, getattr(self, name), shape)
        _check("outside", self._others, (kept, self._others.shape[-1] if self._others.ndim else 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture."""
        return self.basis.shape

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it as plain arrays by name, for a file; `of` reads them."""
        size = (self.basis.height, self.basis.width, self.basis.count, self.basis.chroma)
        named = {name: np.array(getattr(self, name)) for name in _TABLES}
        return {**named, "basis": np.array(size, dtype=np.int64)}

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Mixture:
        """The mixture that has these arrays.

        Raises:
            BadInput: they are not those of a mixture.

        >>> blank = Mixture(np.ones((2, 1)), np.zeros((2, 1, 4)), np.eye(4), np.ones((2, 4, 4)),
        ...                 Basis(5, 5, 4))
        >>> sorted(Mixture.of(blank.arrays()).arrays())
        ['basis', 'centres', 'covariances', 'directions', 'outside', 'weights']
        """
        try:
            height, width, count, chroma = (int(number) for number in arrays["basis"])
            tables = {name: np.array(arrays[name], dtype=np.float64) for name in _TABLES}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                "these arrays are not a mixture",
                where="mixture",
                why=f"they need numbers named basis, {', '.join(_TABLES)}",
                remedy="give the arrays of one mixture, unchanged",
            ) from error
        return cls(**tables, basis=Basis(height, width, count, chroma))

    def sample(
        self,
        seed: int,
        count: int,
        *,
        scale: tuple[float, float] = (1.0, 1.2),
        sharpen: float = 0.0,
        warp: float = 0.0,
        among: Sequence[int] | None = None,
    ) -> tuple[npt.NDArray[np.float32], Integers]:
        """Pictures in [0, 1] and the classes they were drawn for, all classes alike.

        Args:
            seed: of the draws; the same one gives the same pictures.
            count: how many.
            scale: between which factors the spread of a picture is widened.
            sharpen: the share of the pictures whose contrast is raised.
            warp: the share of the pictures that are mildly turned, stretched and bent.
            among: the classes that are drawn; all, where it is None.

        Raises:
            BadInput: the count or a share is out of range.
        """
        if count < 0 or not (0 <= sharpen <= 1 and 0 <= warp <= 1):
            raise BadInput(
                "a number of samples below 0, or a share outside [0, 1]",
                where="sample",
                why="there is no such part of the samples",
                remedy="give a count of at least 0 and shares such as 0.5",
            )
        wanted = np.arange(len(self.weights)) if among is None else np.array(among, dtype=np.int64)
        classes = wanted[integers(seed, "mixture", "class", size=count, below=len(wanted))]
        chosen = uniforms(seed, "mixture", "centre", size=count)
        near = (chosen[:, None] >= self._cumulative()[classes]).sum(axis=1)
        wide = scale[0] + (scale[1] - scale[0]) * uniforms(seed, "mixture", "scale", size=count)
        spread = normals(seed, "mixture", "spread", size=(count, self.directions.shape[1]))
        spread *= wide[:, None]
        for which, shape in enumerate(self._roots()):
            spread[classes == which] = spread[classes == which] @ shape.T
        pictures = np.empty((count, *self.basis.shape), dtype=np.float32)
        for start in range(0, count, BLOCK):
            part = slice(start, start + BLOCK)
            places = self.centres[classes[part], near[part]]
            places = places + spread[part] @ self.directions.T
            if self._others.shape[1]:
                size = (len(places), self._others.shape[1])
                places += normals(seed, "mixture", "outside", start, size=size) @ self._others.T
            drawn = self.basis.inverse(places)
            drawn = sharpened(np.clip(drawn, 0.0, 1.0), seed, start, sharpen)
            pictures[part] = warped(drawn, seed, start, warp)
        return pictures, classes

    @property
    def _others(self) -> Reals:
        assert self.outside is not None
        return self.outside

    def _cumulative(self) -> Reals:
        """The upper ends of the centres' shares, but the last; even where no weight is left."""
        weights = np.maximum(self.weights, 0.0)
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
        shares: Reals = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        return shares

    def _roots(self) -> Reals:
        variances, axes = np.linalg.eigh(self.covariances)
        roots: Reals = axes * np.sqrt(np.maximum(variances, 0.0))[:, None, :]
        return roots


def _check(name: str, values: Reals, shape: tuple[int, ...]) -> None:
    empty = 0 in (shape[:1] if name == "outside" else shape)
    if values.shape != shape or empty or not np.isfinite(values).all():
        raise BadInput(
            f"{name} cannot be those of a mixture",
            where=name,
            why=f"finite numbers of shape {shape} are needed",
            remedy="give the arrays of one mixture, unchanged",
        )
