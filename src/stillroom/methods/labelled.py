"""Which public records have labels that may be used."""

from __future__ import annotations

import numpy as np

from stillroom.data import Dataset, shards
from stillroom.recipe import Recipe

PLACES = 10**6


def labelled_part(recipe: Recipe, public: Dataset) -> Dataset:
    """The recipe's share of the public records, by keyed hash of their units."""
    place = shards(public.units, PLACES, f"{recipe.data.key}/labelled")
    return public.select(np.flatnonzero(place < int(recipe.data.labelled_share * PLACES)))
