"""How long features take here, and the directions that they are brought to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stillroom.data import PublicPictures
from stillroom.engine import Engine
from stillroom.sources.trials import made_up, seconds_of

if TYPE_CHECKING:
    from stillroom.features.feature_map import FeatureMap
    from stillroom.features.table import TableFeatures

FEW = 128
TRIED = 600
"""Features of which directions are found in a trial."""


@dataclass(frozen=True)
class FeatureTrial:
    """A recipe's features of made-up records.

    Args:
        name: of the features.
        shape: of a record.
        full_scale: the largest value of a pixel.
        size: a backbone's side.
        auxiliary: the network they come from, where they are a public network's own.
        classes: how many there are.
        table: the features of a table, where the records are its rows.
    """

    name: str
    shape: tuple[int, ...]
    full_scale: float
    size: int | None
    auxiliary: str | None
    classes: int
    table: TableFeatures | None = None

    @property
    def map(self) -> FeatureMap:
        """The features as a recipe's run makes them, but for their directions."""
        return _made(self)

    def made(self) -> FeatureMap:
        """The same, made anew."""
        from stillroom.features.feature_map import FeatureMap

        return FeatureMap(
            self.name,
            self.shape,
            full_scale=self.full_scale,
            size=self.size,
            engine=Engine("serial"),
            auxiliary=self._network(),
            table=self.table,
        )

    def _network(self) -> Any:
        if self.auxiliary is None:
            return None
        from stillroom.models import AsPictures, build

        given = AsPictures(self.shape, self.full_scale).given
        network: Any = build(self.auxiliary, given, self.classes, seed=0).eval()
        return network[:-1]


@lru_cache(maxsize=8)
def _made(features: FeatureTrial) -> FeatureMap:
    return features.made()


@dataclass(frozen=True)
class FeatureRows:
    """The features of one record."""

    features: FeatureTrial

    def seconds(self) -> float:
        """On a few made-up records, one by one or together as the features are computed."""
        features = self.features.map
        size = FEW * 16 if features.fixed else 16
        some = made_up(size, self.features.shape, self.features.full_scale)
        return seconds_of(lambda: features.rows(some)) / size


@dataclass(frozen=True)
class FeatureAnswers:
    """What a linear model over features says of one record, many of them at once."""

    features: FeatureTrial

    def seconds(self) -> float:
        """Its features, which take nearly all of the time."""
        features, shape = self.features.map, self.features.shape
        some = made_up(FEW, shape, self.features.full_scale)
        if features.fixed:
            return seconds_of(lambda: features.rows(some)) / FEW
        import torch

        layers = features.layers(np.zeros((self.features.classes, features.width), np.float32))
        x = torch.from_numpy(some)
        with torch.no_grad():
            return seconds_of(lambda: layers(x)) / FEW


@dataclass(frozen=True)
class FeaturesMade:
    """Features by a network, made ready: it is written down as a graph."""

    features: FeatureTrial

    def seconds(self) -> float:
        """Once, as in a run."""
        return seconds_of(self.features.made, first=True)


@dataclass(frozen=True)
class Directions:
    """The directions of pictures' features, and the rows of records that are brought to them.

    Args:
        columns: features of a picture.
        components: directions that are kept.
    """

    columns: int
    components: int

    def seconds(self) -> float:
        """One record brought to its directions."""
        from stillroom.features.projection import Projection

        made = np.zeros((FEW, self.columns), np.int16)
        turn = Projection(np.zeros(self.columns), np.zeros((self.columns, self.components)))
        return seconds_of(lambda: turn.rows(made)) / FEW


@dataclass(frozen=True)
class PlainRows:
    """The row of one record whose features are all kept.

    Args:
        columns: features of a picture.
    """

    columns: int

    def seconds(self) -> float:
        """Of a few made-up features."""
        from stillroom.features.projection import plain_rows

        made = np.ones((FEW, self.columns), np.int16)
        return seconds_of(lambda: plain_rows(made)) / FEW


@dataclass(frozen=True)
class DirectionsFitted:
    """Directions found from pictures' features.

    Args:
        columns: features of a picture.
        components: directions that are kept.
        pictures: how many there are.
    """

    columns: int
    components: int
    pictures: int

    def seconds(self) -> float:
        """Of fewer features: the time grows with the cube of them."""
        from stillroom.features.projection import fit_projection

        side = min(self.columns, self.pictures)
        tried = min(side, TRIED)
        some = made_up(2 * tried, (tried,)).astype(np.int16)
        kept = max(1, self.components * tried // side)
        kept = min(kept, tried - 1)
        public = PublicPictures(some, "made up")
        once = seconds_of(lambda: fit_projection(lambda x: x, public, kept))
        larger = max(self.columns, self.pictures) / (2 * tried)
        return once * (side / tried) ** 2 * max(1.0, (side / tried + larger) / 2)
