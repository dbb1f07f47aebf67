"""Which entity holds which record of one data set: a stand-in for records that were never pooled.

An entity is found by the keyed hash of the record's own id and, where entities differ, by its own
class: one record more or less moves no other.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from stillroom.data.dataset import Dataset
from stillroom.data.split import shards
from stillroom.errors import check_ranges
from stillroom.randomness import uniforms
from stillroom.vocabulary import Integers

PLACES = 1 << 53
_ORDER = b"stillroom/dealing/1\0"
_LEAST = 1e-12


@dataclass(frozen=True)
class Dealing:
    """How records are dealt to entities; all of it public.

    Args:
        count: how many entities.
        largest: the most records of one; a surplus is left out by hash order.
        smallest: about the fewest, where entities differ in size and classes; None deals evenly.
        concentration: where they differ: of the Dirichlet law of an entity's classes.
        deal_seed: of these sizes and classes.

    Raises:
        BadInput: a number is out of range.
    """

    count: int
    largest: int
    smallest: int | None = None
    concentration: float = 0.3
    deal_seed: int = 0

    def __post_init__(self) -> None:
        checks = {"count": self.count >= 2, "largest": self.largest >= 1}
        checks["smallest"] = self.smallest is None or 1 <= self.smallest <= self.largest
        check_ranges("Dealing", {**checks, "concentration": self.concentration > 0})

    def members(self, data: Dataset, key: str) -> list[Integers]:
        """The positions of each entity's records, in hash order.

        Args:
            data: the records.
            key: a public key.
        """
        key = f"{key}/entities"
        if self.smallest is None:
            holder = shards(data.units, self.count, key)
        else:
            shares = self._shares(len(data.classes))
            place = shards(data.units, PLACES, key) / PLACES
            holder = np.array(
                [
                    np.searchsorted(shares[label], where, side="right")
                    for label, where in zip(data.y, place, strict=True)
                ],
                dtype=np.int64,
            )
        secret = key.encode("utf-8", "surrogatepass")
        order = [
            hmac.digest(secret, _ORDER + name.encode("utf-8", "surrogatepass"), "sha256")
            for name in data.ids
        ]
        members: list[list[int]] = [[] for _ in range(self.count)]
        for position in sorted(range(len(order)), key=order.__getitem__):
            members[holder[position]].append(position)
        return [np.array(own[: self.largest], dtype=np.int64) for own in members]

    def _shares(self, classes: int) -> npt.NDArray[np.float64]:
        """Of each class, which entities have how much of it, added up from the first on."""
        assert self.smallest is not None
        spread = uniforms(self.deal_seed, "sizes of entities", size=(self.count, 1))
        sizes = self.smallest * (self.largest / self.smallest) ** spread
        raw = uniforms(self.deal_seed, "classes of entities", size=(self.count, classes))
        gammas = np.maximum(gammaincinv(self.concentration, raw), _LEAST)
        parts = sizes * gammas / gammas.sum(axis=1, keepdims=True)
        ends: npt.NDArray[np.float64] = np.cumsum(parts / parts.sum(axis=0), axis=0).T
        ends[:, -1] = 1.0
        return ends
