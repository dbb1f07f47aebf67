"""A linear layer per shard over public features: trained side by side, in steps of equal shape.

Every shard has `shard_cap` places, filled with blank rows of weight zero, and shards are taken a
fixed number at a time. So all products have one shape, and no shard's last bits depend on what is
in another (E1b).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.engine.workers import one_thread
from stillroom.errors import check_ranges
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.sealed import Records, opened
from stillroom.private.shard_models import Flat, Matrix, ShardModels
from stillroom.private.shard_training import Rows, shard_members
from stillroom.vocabulary import Unit

TOGETHER = 64
"""Shards per product."""


@dataclass(frozen=True)
class HeadPlan:
    """What is public about heads on shards, fixed before the records are read.

    Args:
        models: how many shards.
        key: the public key that assigns ids to shards.
        shard_cap: the most records of a shard; the surplus is dropped by hash order.
        steps: gradient steps of a head on its own shard, per round.
        learning_rate: the length of such a step.

    Raises:
        BadInput: a number is out of range.
    """

    models: int
    key: str
    shard_cap: int
    steps: int = 1
    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        checks = {name: getattr(self, name) >= 1 for name in ("models", "shard_cap", "steps")}
        checks["learning_rate"] = 0 < self.learning_rate < float("inf")
        check_ranges("HeadPlan", {**checks, "key": bool(self.key)})


class HeadShards(ShardModels):
    """Linear layers on disjoint shards, each a function of its own records and of public things.

    Args:
        records: the sensitive records; public ones train stand-ins.
        rows: public features, one row per record, each from its own record alone.
        whitening: a public matrix that rows are multiplied by.
        plan: the public constants.
    """

    def __init__(
        self, records: Records, rows: Rows, whitening: npt.NDArray[np.float32], plan: HeadPlan
    ) -> None:
        data = opened(records)
        self._plan, self._classes, self._width = plan, len(data.classes), whitening.shape[1]
        unit = Unit.RECORD if data.persons is None else Unit.PERSON
        super().__init__(plan.models, self._classes * self._width, unit)
        self._fill(data, rows(data.x), whitening)

    def _fill(self, data: Dataset, rows: npt.NDArray[np.floating], whitening: Matrix) -> None:
        """Records at the places of their shards; blank ones beside them."""
        plan = self._plan
        sharding = EnsemblePlan(count=plan.models, key=plan.key, shard_cap=plan.shard_cap)
        groups = -(-plan.models // TOGETHER)
        shape = (groups * TOGETHER, plan.shard_cap)
        self._x = np.zeros((*shape, self._width), dtype=np.float32)
        self._targets = np.zeros((*shape, self._classes), dtype=np.float32)
        self._there = np.zeros((*shape, 1), dtype=np.float32)
        # To refuse a record would tell of it; left out, it changes its own head only (K10).
        usable = np.isfinite(rows).all(axis=1)
        with one_thread():
            for shard, members in enumerate(shard_members(data, sharding)):
                own = members[usable[members]]
                places = slice(0, len(own))
                self._there[shard, places] = 1.0
                self._targets[shard, places] = np.eye(self._classes, dtype=np.float32)[data.y[own]]
                blank = np.zeros((plan.shard_cap, rows.shape[1]), dtype=np.float32)
                blank[places] = rows[own]
                self._x[shard] = blank @ whitening
        self._sizes = np.maximum(self._there.sum(axis=1, keepdims=True), 1.0)

    def _differences(self, start: Flat, number: int) -> Iterator[Matrix]:
        import torch

        plan = self._plan
        at_start = torch.from_numpy(start.reshape(self._classes, self._width).T.copy())
        for first in range(0, plan.models, TOGETHER):
            some = slice(first, first + TOGETHER)
            x, targets, there, sizes = (
                torch.from_numpy(part[some])
                for part in (self._x, self._targets, self._there, self._sizes)
            )
            with one_thread(), torch.no_grad():
                heads = at_start.expand(TOGETHER, -1, -1).clone()
                for _ in range(plan.steps):
                    missing = (targets - torch.softmax(torch.bmm(x, heads), 2)) * there
                    heads += plan.learning_rate * torch.bmm(x.transpose(1, 2), missing) / sizes
                moved = (heads - at_start).transpose(1, 2).reshape(TOGETHER, self.size)
            yield moved.numpy()[: plan.models - first]
