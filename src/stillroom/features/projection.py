"""From a record's feature grid to the row a linear layer sees: directions, half whitening, norm 1.

Half whitening divides each direction by the square root of its standard deviation: noise hurts
less where all directions are about as long. The directions are fitted on public pictures, or on
pictures drawn from a sketch that came through the gate; sensitive records are refused by type.

Whatever is done to one record must not depend on its company, so directions lie on a grid too and
every product is an exact integer in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import PublicPictures
from stillroom.errors import BadInput, NotSanitised

Rows = npt.NDArray[np.float32]
Grid = npt.NDArray[np.int16]
Reals = npt.NDArray[np.float64]

GRID_BITS = 13
"""A record's features have norm 2^13 or so: what 16 bits hold. Rows are made to fit later."""
DIRECTION_BITS = 14
_ROW_BITS = 20
BIAS = 0.1
NEARLY_ONE = 1 - 1e-6
_BLOCK = 4096


def unit_rows(features: Reals) -> Rows:
    """Rows of norm at most 1 with a constant beside them, each from its own features alone.

    >>> unit_rows(np.array([[3.0, 4.0]])).astype(float).round(3).tolist()
    [[0.597, 0.796, 0.1]]
    """
    largest = np.maximum(np.abs(features).max(axis=1, initial=0.0, keepdims=True), 1e-300)
    whole = np.rint(features / largest * (1 << _ROW_BITS)).astype(np.int64)
    # Integers add up to the same in any order.
    length = np.sqrt((whole * whole).sum(axis=1, keepdims=True))
    scaled = whole * (np.sqrt(1 - BIAS**2) / np.maximum(length, 1.0))
    constant = np.full((len(features), 1), BIAS)
    rows: Rows = (np.concatenate([scaled, constant], axis=1) * NEARLY_ONE).astype(np.float32)
    return rows


def plain_rows(grid: Grid) -> Rows:
    """The rows of records given as integer features, all of them kept."""
    return _by_blocks(grid, lambda block: block)


def _by_blocks(grid: Grid, turned: Callable[[Reals], Reals]) -> Rows:
    """Block by block: in double precision all rows at once would not fit."""
    starts = range(0, max(1, len(grid)), _BLOCK)
    blocks = (grid[start : start + _BLOCK].astype(np.float64) for start in starts)
    return np.concatenate([unit_rows(turned(block)) for block in blocks])


@dataclass(frozen=True, eq=False)
class Projection:
    """The longest directions of some pictures' features, half whitened.

    Args:
        mean: of the features, in grid units.
        directions: one per column, each of norm 1 times its scale.
    """

    mean: Reals
    directions: Reals

    @property
    def components(self) -> int:
        """How many directions are kept."""
        return int(self.directions.shape[1])

    def rows(self, grid: Grid) -> Rows:
        """The rows of records given as integer features."""
        # Whole numbers below 2^14 times 2^14 and some: exact below 2^53, in any order.
        longest = float(np.sqrt((self.directions**2).sum(axis=0)).max()) or 1.0
        directions = np.trunc(self.directions * ((1 << DIRECTION_BITS) / longest))
        mean = np.rint(self.mean)
        return _by_blocks(grid, lambda block: (block - mean) @ directions)


def check_components(components: int, features: int, pictures: int) -> None:
    """Refuse more directions than there can be.

    Raises:
        BadInput: there are too few features or pictures.
    """
    if not 1 <= components <= min(features, pictures - 1):
        raise BadInput(
            f"{components} directions of {features} features of {pictures} pictures",
            where="features.components",
            why="there are no more directions than features, or than pictures to fit them on",
            remedy="ask for fewer components, or fit on more pictures",
        )


def fit_projection(
    extract: Callable[[npt.NDArray[Any]], Grid], pictures: PublicPictures, components: int
) -> Projection:
    """Half-whitened principal directions of public pictures.

    Guarantee: nothing sensitive is looked at; only `PublicPictures` are accepted.

    Args:
        extract: gives the feature grid of pictures.
        pictures: what to fit on.
        components: how many directions to keep.

    Raises:
        NotSanitised: the pictures were not declared public and did not come through the gate.
        BadInput: there are too few of them.
    """
    if not isinstance(pictures, PublicPictures):
        raise NotSanitised(
            f"directions were to be fitted on a {type(pictures).__name__}",
            where="features.fitted_on",
            why="directions fitted on sensitive records tell about them, and nobody paid for it",
            remedy="fit on a public data set, or on samples of a sketch",
        )
    features = extract(pictures.x).astype(np.float32)
    check_components(components, features.shape[1], len(features))
    mean = features.mean(axis=0, dtype=np.float64)
    features -= mean.astype(np.float32)
    values, vectors = _principal(features, components)
    least = max(float(values[0]) * 1e-9, 1e-300)
    return Projection(mean, vectors * np.maximum(values, least) ** -0.25)


def _principal(features: Rows, components: int) -> tuple[Reals, Reals]:
    """The largest variances of centred rows, and their directions, one per column.

    Found from products of columns, or of rows where there are fewer of them: pictures in colour
    have more features than there are pictures.
    """
    from scipy.linalg import eigh

    wide = len(features) < features.shape[1]
    products = features @ features.T if wide else features.T @ features
    last = len(products) - 1
    values, vectors = eigh(
        products.astype(np.float64) / len(features),
        subset_by_index=[last - components + 1, last],
        overwrite_a=True,
    )
    values, vectors = values[::-1], vectors[:, ::-1]
    if wide:
        vectors = features.T @ vectors.astype(np.float32)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-30)
    return values, vectors
