"""Sheets of generated pictures in a run's folder."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stillroom.durable import write_whole
from stillroom.release.sections.samples import Sheet, drawable
from stillroom.sources import Setting


def show(setting: Setting, records: npt.NDArray[np.floating], name: str) -> None:
    """A sheet of sanitised records, in the units of the data; none where they are no pictures."""
    if not drawable(setting.facts.shape) or not len(records):
        return
    full_scale = setting.recipe.features.full_scale
    shown = np.clip(np.asarray(records) / full_scale, 0, 1).astype(np.float32)
    folder = setting.places.checkpoint / "samples"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{name}.png", Sheet.of(shown).png)
