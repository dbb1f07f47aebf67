"""The features of a recipe: from stored records to the rows a linear layer looks at."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import PublicPictures
from stillroom.engine import Engine
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

CHECKED = 64
"""Records whose features are computed twice, before anything is paid for."""
FEW = 1000
"""Records that are not worth waking other cores for."""


class FeatureMap:
    """Features that are fixed, by a public network, or brought to directions of public pictures.

    Guarantee: a record's row depends on that record and public things alone; `look` checks it.

    Args:
        name: of fixed features; "scattering"; "auxiliary"; or package.module:callable.
        shape: of one record.
        full_scale: the largest value a pixel can have.
        size: for a backbone: the side its pictures are brought to.
        components: how many directions are kept; None for all features as they are.
        engine: where to compute.
        cache: keeps slow features, which are as sensitive as their records.
        auxiliary: for "auxiliary": a network trained on public records, from pictures to features.
        pictures: public pictures to fit directions on; None where they are drawn from a sketch.
        drawn: how many pictures a sketch will give.

    Raises:
        BadInput: the features, or what their directions are fitted on, do not fit the records.

    >>> FeatureMap("pixels", (8, 8), engine=Engine("serial")).width
    65
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        full_scale: float = 255.0,
        size: int | None = None,
        components: int | None = None,
        engine: Engine,
        cache: Path | None = None,
        auxiliary: Any = None,
        pictures: PublicPictures | None = None,
        drawn: int = 0,
    ) -> None:
        self.name, self.shape = name, shape
        self.projection: Projection | None = None
        self._components, self._engine, self._pictures = components, engine, pictures
        # Networks are slow, so their features are kept.
        self._cache = cache if size is not None or name == "auxiliary" else None
        self._looked: tuple[npt.NDArray[Any], Grid] | None = None
        self.extractor: Any = None
        if name not in FEATURES:
            from stillroom.features.extraction import Extractor

            self.extractor = Extractor(name, shape, full_scale, size, auxiliary)
            features = math.prod(self.extractor.layout)
            _ = self.extractor.graph
            if components is not None:
                count = drawn if pictures is None else len(pictures.x)
                check_components(components, features, count)

    @property
    def width(self) -> int:
        """Numbers of a row, one of them for a constant."""
        if self._components is not None:
            return self._components + 1
        if self.extractor is not None:
            return int(math.prod(self.extractor.layout)) + 1
        return int(FEATURES[self.name](np.zeros((1, *self.shape), np.float32)).shape[1])

    def look(
        self, x: npt.NDArray[Any], on_done: Callable[[int, int], None] = lambda done, total: None
    ) -> None:
        """Compute the features of records before anything is paid for, and some of them twice.

        Raises:
            NumericalDoubt: a record's features differ when they are computed again, or alone.
        """
        if self.extractor is not None:
            self._looked = (x, self._grid(x, on_done))
            return
        features, some = FEATURES[self.name], range(0, len(x), max(1, len(x) // CHECKED))
        rows = features(x)
        if not all(
            np.array_equal(features(x[i : i + 1])[0], rows[i], equal_nan=True) for i in some
        ):
            raise NumericalDoubt(
                "a record's features differ when they are computed alone",
                where=self.name,
                why="one record could then move the rows of others, which nobody paid for",
                remedy="report it, with the processor and the version of numpy",
            )

    def fit(self, drawn: PublicPictures | None, kept: Path | None) -> None:
        """Find the directions that features are brought to, where the recipe wants some.

        Args:
            drawn: pictures of a sketch, where no public ones were given.
            kept: a file that keeps them, so that a run goes on with the same ones.
        """
        if self._components is None:
            return
        if kept is None or not kept.exists():
            pictures = drawn if self._pictures is None else self._pictures
            assert pictures is not None
            self.projection = fit_projection(self._grid, pictures, self._components)
        if kept is not None:
            if self.projection is not None:
                draft = kept.with_suffix(".draft.npz")
                np.savez(draft, mean=self.projection.mean, directions=self.projection.directions)
                os.replace(draft, kept)
            with np.load(kept) as arrays:
                self.projection = Projection(arrays["mean"], arrays["directions"])

    def rows(self, x: npt.NDArray[Any]) -> Rows:
        """The rows of records, each from its own record alone."""
        if self.extractor is None:
            return FEATURES[self.name](x)
        known = self._looked is not None and self._looked[0] is x
        grid = self._looked[1] if known and self._looked is not None else self._grid(x)
        return plain_rows(grid) if self.projection is None else self.projection.rows(grid)

    def _grid(
        self, x: npt.NDArray[Any], on_done: Callable[[int, int], None] = lambda done, total: None
    ) -> Grid:
        few = len(x) < FEW
        grid: Grid = self.extractor.grid(
            x,
            engine=Engine("serial") if few else self._engine,
            cache=None if few else self._cache,
            on_done=on_done,
        )
        return grid
