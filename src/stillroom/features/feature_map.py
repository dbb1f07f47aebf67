"""From records as they are stored to the rows that a linear layer sees, and back out as layers."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stillroom.data import PublicPictures
from stillroom.durable import write_whole
from stillroom.engine import CORES, Engine
from stillroom.errors import NumericalDoubt
from stillroom.features.fixed import FEATURES
from stillroom.features.projection import (
    Grid,
    Projection,
    Rows,
    check_components,
    fit_projection,
    plain_rows,
)
from stillroom.features.table import TableFeatures

if TYPE_CHECKING:
    from torch import nn

Progress = Callable[[int, int], None]
CHECKED = 64
"""Records whose features are computed twice, before anything is paid for."""
FEW = 1000
"""Records that are not worth waking other cores for."""


class FeatureMap:
    """Features that are fixed, public, or brought to directions fitted on public pictures.

    Guarantee: a record's row depends on that record and on public or sanitised things alone.
    Assumes: the auxiliary network and all numbers are public.

    Args:
        name: of fixed features, "scattering", "auxiliary", or a backbone's package.module:callable.
        shape: of one record as stored.
        full_scale: the largest value a feature of a record can have.
        size: the side a backbone's pictures are brought to.
        components: how many directions are kept; None for all features as they are. Fixed features
            have none.
        engine: where features are computed.
        auxiliary: with the name "auxiliary": a network trained on public records.
        fitted_on: how many pictures the directions will be fitted on.
        table: with the name "table": the features of a table.
        cache: a folder for slow features; they are as sensitive as their records.

    Raises:
        BadInput: the features do not fit the records, or there are too few pictures.

    >>> features = FeatureMap("pixels", (8, 8))
    >>> features.width, features.rows(np.zeros((3, 8, 8))).shape
    (65, (3, 65))
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        full_scale: float = 255.0,
        size: int | None = None,
        components: int | None = None,
        engine: Engine = CORES,
        auxiliary: nn.Module | None = None,
        fitted_on: int = 0,
        table: TableFeatures | None = None,
        cache: Path | None = None,
    ) -> None:
        self.table = table
        """Those of a table; None of pictures."""
        self._function = table or FEATURES.get(name)
        self.name, self._components, self._engine = name, components, engine
        self._cache = cache if size is not None or auxiliary is not None else None
        self._projection: Projection | None = None
        self._looked_at: list[tuple[npt.NDArray[Any], Grid]] = []
        self._extractor = None
        if self._function is not None:
            self.width = int(self._function(np.zeros((1, *shape), np.float32)).shape[1])
            return
        from stillroom.features.extraction import Extractor  # torch is heavy, and pixels need none

        self._extractor = Extractor(name, shape, full_scale, size, auxiliary)
        columns = math.prod(self._extractor.layout)
        _ = self._extractor.graph  # what cannot be written down is found before anything is paid
        if components is not None:
            check_components(components, columns, fitted_on)
        self.width = (columns if components is None else components) + 1
        """Columns of a row: one per feature or direction, and one for a constant."""

    @property
    def fixed(self) -> bool:
        """Whether the features are a function by name that needs no network."""
        return self._extractor is None

    def fit(self, pictures: PublicPictures | None, keep: Path) -> None:
        """Find the directions that features are brought to, where directions are wanted.

        Args:
            pictures: public ones, or samples of a sketch.
            keep: a file for the directions; a run that goes on finds the same ones there. Its name
                must tell apart whatever they depend on.

        Raises:
            NotSanitised: the pictures are not known to be public.
        """
        if self._components is None:
            return
        if not keep.exists():
            assert pictures is not None
            fitted, file = fit_projection(self._grid, pictures, self._components), io.BytesIO()
            np.savez(file, mean=fitted.mean, directions=fitted.directions)
            write_whole(keep, file.getvalue())
        with np.load(keep) as arrays:
            self._projection = Projection(arrays["mean"], arrays["directions"])

    def look(self, x: npt.NDArray[Any], on_done: Progress = lambda done, total: None) -> None:
        """Compute the features of records that will be used, some of them twice (K10).

        Raises:
            NumericalDoubt: a record's features differ when they are computed again.
        """
        fixed = self._function
        if fixed is None:
            self._looked_at.append((x, self._grid(x, on_done)))
            return
        rows, some = fixed(x), range(0, len(x), max(1, len(x) // CHECKED))
        if not all(np.array_equal(fixed(x[i : i + 1])[0], rows[i], equal_nan=True) for i in some):
            raise NumericalDoubt(
                "a record's features differ when they are computed alone",
                where=self.name,
                why="one record could then move the rows of others, which nobody paid for",
                remedy="report it, with the processor and the version of numpy",
            )

    def rows(self, x: npt.NDArray[Any]) -> Rows:
        """Feature rows of records, each from its own record alone; those looked at are at hand."""
        if self._function is not None:
            return self._function(x)
        grids = (grid for seen, grid in self._looked_at if seen is x)
        grid = next(grids, None)
        grid = self._grid(x) if grid is None else grid
        return plain_rows(grid) if self._projection is None else self._projection.rows(grid)

    def layers(self, weights: npt.NDArray[np.float32]) -> nn.Module:
        """Features, directions and a linear layer as one torch module, from stored records.

        Args:
            weights: one row per class, one column per column of a row.
        """
        from stillroom.features.layers import LinearOverFeatures

        assert self._extractor is not None
        network, shortest = self._extractor.network, self._extractor.shortest
        return LinearOverFeatures(network, shortest, self._projection, weights)

    def _grid(self, x: npt.NDArray[Any], on_done: Progress = lambda done, total: None) -> Grid:
        assert self._extractor is not None
        few = len(x) < FEW
        engine, cache = (Engine("serial"), None) if few else (self._engine, self._cache)
        return self._extractor.grid(x, engine=engine, cache=cache, on_done=on_done)

    def __repr__(self) -> str:
        return f"FeatureMap({self.name!r}, width={self.width})"
