"""The public side of votes: features, which records are alike, and what is asked."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from stillroom.data import Dataset
from stillroom.features.feature_map import FeatureMap
from stillroom.private.entity_votes import Queries
from stillroom.public.neighbour_graph import neighbour_graph
from stillroom.public.query_groups import group
from stillroom.public.selection import farthest
from stillroom.randomness import order
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.methods.votes import VotesRecipe


class PublicPart:
    """Public records, their features, and the questions about them.

    Args:
        recipe: the recipe.
        records: public ones; their labels are not looked at.
        features: public features.
    """

    def __init__(self, recipe: VotesRecipe, records: Dataset, features: FeatureMap) -> None:
        self._recipe, self.x = recipe, records.x
        self.rows: npt.NDArray[np.float32] = np.asarray(features.rows(records.x), dtype=np.float32)
        self.speaker = self._speakers()
        """For each record the question that speaks for it, such as its group; -1 for none."""

    @cached_property
    def graph(self) -> csr_matrix:
        """Of public records that are alike by their features."""
        return neighbour_graph(self.rows, self._recipe.student.neighbours)

    def _speakers(self) -> Integers:
        part, size = self._recipe.votes, len(self.x)
        if part.selection == "groups":
            return group(self.rows, part.questions, seed=part.query_seed)
        places = order(part.query_seed, "queries", size=size)[: part.questions]
        if part.selection == "k-centre":
            places = farthest(self.rows, part.questions, seed=part.query_seed)
        speaker = np.full(size, -1, dtype=np.int64)
        speaker[places] = np.arange(len(places))
        return speaker

    def queries(self) -> Queries:
        """What entities are asked: a record or the mean of a group, smoothed over neighbours."""
        part, size = self._recipe.votes, len(self.x)
        spoken = np.flatnonzero(self.speaker >= 0)
        asked = self.speaker[spoken]
        share = 1 / np.bincount(asked, minlength=part.questions)[asked]
        mixing = sparse.csr_array((share, (asked, spoken)), shape=(part.questions, size))
        if part.smoothing:
            # Half its own and half its neighbours': as teachers would smooth their own scores.
            degrees = np.asarray(self.graph.sum(axis=1)).ravel()
            step = sparse.diags_array(0.5 / degrees) @ sparse.csr_array(self.graph)
            for _ in range(part.smoothing):
                mixing = (0.5 * mixing + mixing @ step).tocsr()
        inputs = self.rows if part.teacher == "ridge" else self.x
        mixing.sort_indices()
        return Queries(np.asarray(inputs), mixing.astype(np.float32))

    def of_answered(self, answered: Integers) -> Integers:
        """For each record the place of its question among those that were answered; -1 for none."""
        place = np.full(self._recipe.votes.questions + 1, -1, dtype=np.int64)
        place[answered] = np.arange(len(answered))
        found: Integers = place[self.speaker]
        return found
