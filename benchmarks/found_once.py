"""What all draws of a benchmark have in common is found once per machine: features, graphs.

Only for benchmarks on published data sets: what is kept tells the records.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import joblib

from stillroom.features import feature_map
from stillroom.features.extraction import Extractor
from stillroom.features.projection import fit_projection
from stillroom.methods.votes import queries
from stillroom.public.neighbour_graph import neighbour_graph


def find_once(folder: Path) -> None:
    """From now on features, their directions and public neighbours are looked up first.

    Args:
        folder: where they are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    grid, fit, graph = Extractor.grid, fit_projection, neighbour_graph

    def kept_grid(self: Extractor, x: Any, **options: Any) -> Any:
        return _kept(folder, ("grid", self.digest, x), lambda: grid(self, x, **options))

    def kept_fit(extract: Any, pictures: Any, components: int) -> Any:
        asked = ("fit", extract.__self__._extractor.digest, pictures.x, components)
        return _kept(folder, asked, lambda: fit(extract, pictures, components))

    def kept_graph(*asked: Any) -> Any:
        return _kept(folder, ("graph", *asked), lambda: graph(*asked))

    remembered: tuple[tuple[Any, str, Any], ...] = (
        (Extractor, "grid", kept_grid),
        (feature_map, "fit_projection", kept_fit),
        (queries, "neighbour_graph", kept_graph),
    )
    for place, name, kept in remembered:
        setattr(place, name, kept)


def _kept(folder: Path, asked: tuple[Any, ...], find: Callable[[], Any]) -> Any:
    file = folder / f"{joblib.hash(asked)}.joblib"
    if file.exists():
        return joblib.load(file)
    found = find()
    with NamedTemporaryFile(dir=folder, delete=False) as begun:
        joblib.dump(found, begun)
    Path(begun.name).replace(file)
    return found
