"""The public side of votes: features, which records are alike, and what is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.features.feature_map import FeatureMap

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe


class PublicPart:
    """Public records, their features and neighbours, and the questions about them.

    Args:
        recipe: the recipe.
        records: public ones; their labels are not looked at.
        features: public features.
    """

    def __init__(self, recipe: VotesRecipe, records: Dataset, features: FeatureMap) -> None:
        self.recipe, self.x = recipe, records.x
        self.rows: npt.NDArray[np.float32] = np.asarray(features.rows(records.x), dtype=np.float32)
