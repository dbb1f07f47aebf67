"""How long a sketch takes here, from a look at its records to samples, on made-up pictures."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stillroom.gate import Budget, Gate, Ledger
from stillroom.sources.trials import made_up, made_up_data, seconds_of

if TYPE_CHECKING:
    from stillroom.sources.sketch_section import SketchSection

FEW = 128


@dataclass(frozen=True)
class SketchTrial:
    """A sketch of made-up pictures.

    Args:
        text: the section, as JSON.
        shape: of a picture.
        classes: how many there are.
        full_scale: the value of white.
    """

    text: str
    shape: tuple[int, ...]
    classes: int
    full_scale: float

    @cached_property
    def section(self) -> SketchSection:
        """The numbers of the sketch."""
        from stillroom.sources.sketch_section import SketchSection

        return SketchSection.model_validate_json(self.text)

    def records(self, count: int) -> Any:
        """Made-up pictures, ready for its sums."""
        from stillroom.private import sketch_records

        return sketch_records(
            made_up_data(count, self.shape, self.classes, self.full_scale),
            basis=self.section.basis(self.shape),
            full_scale=self.full_scale,
            clip=self.section.clip,
        )

    def drawn(self, records: Any) -> Any:
        """The mixture, through a gate of its own."""
        requests = self.section.requests(self.shape, self.classes)
        ledger = Ledger.in_memory(ids=["made up"], purpose="benchmark")
        ledger.set_budget(Budget(epsilon=10**6, delta=1e-5), reason="a trial on made-up records")
        wishes = {r.name: (r.at(Fraction(1000)), r.count) for r in requests}
        passages = Gate(ledger, ids=["made up"]).reserve_all(wishes, recipe="a trial")
        return self.section.draw(passages, records)


@lru_cache(maxsize=4)
def _mixture(sketch: SketchTrial) -> Any:
    return sketch.drawn(sketch.records(FEW))


@dataclass(frozen=True)
class SketchLooked:
    """One record on a sketch's basis and grid."""

    sketch: SketchTrial

    def seconds(self) -> float:
        """On a block of made-up pictures."""
        return seconds_of(lambda: self.sketch.records(1024)) / 1024


@dataclass(frozen=True)
class SketchSums:
    """One record's part of all sums of a sketch."""

    sketch: SketchTrial

    def seconds(self) -> float:
        """Of the second moments, which take longest, and as long again for the rest."""
        records = self.sketch.records(1024)
        means = np.zeros((self.sketch.classes, records.basis.count))
        return 1.5 * seconds_of(lambda: records.second_moment(means)) / 1024


@dataclass(frozen=True)
class SketchDrawn:
    """A sketch drawn and fitted, whatever the number of records."""

    sketch: SketchTrial

    def seconds(self) -> float:
        """Of few made-up pictures, once."""
        records = self.sketch.records(FEW)
        return seconds_of(lambda: self.sketch.drawn(records), first=True)


@dataclass(frozen=True)
class SketchSamples:
    """One picture drawn from a sketch."""

    sketch: SketchTrial

    def seconds(self) -> float:
        """Of a few hundred."""
        mixture, part = _mixture(self.sketch), self.sketch.section
        options = {"scale": part.spread, "sharpen": part.sharpen, "warp": part.warp}
        return seconds_of(lambda: mixture.sample(0, 256, **options)) / 256


@dataclass(frozen=True)
class SketchAsked:
    """What a sketch's mixture says of one picture."""

    sketch: SketchTrial

    def seconds(self) -> float:
        """Of a few hundred."""
        from stillroom.public.mixture_network import MixtureNetwork

        network = MixtureNetwork(_mixture(self.sketch), self.sketch.full_scale)
        some = made_up(256, self.sketch.shape, self.sketch.full_scale)
        return seconds_of(lambda: network.of_records(some)) / 256
