"""A parameter collection: models of one architecture, the rows of one matrix on disk.

Task parallelism (Mao et al. 2021): the same network is trained over and over, from one common
start, so that weights at one place mean the same in all models. In mode certified each model sees a
shard of its own. As published the models see neighbouring data sets: model i sees all records but
those of shard i, so that a record is in all models but one. The matrix is as sensitive as the
records.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from stillroom.data import Dataset
from stillroom.engine import CORES, Engine, WorkItem, run_all
from stillroom.engine.rows import RowStore
from stillroom.errors import BadInput
from stillroom.models.flat_weights import unflatten
from stillroom.models.weight_training import WeightTraining, train_unit
from stillroom.private.ensemble_plan import EnsemblePlan
from stillroom.private.parameter_slices import ParameterSlices, PublishedModel
from stillroom.private.plain import PlainTeacher
from stillroom.private.sealed import Records, opened
from stillroom.private.shard_models import Flat, Matrix, ShardModels
from stillroom.private.shard_training import digest_records, shard_members
from stillroom.vocabulary import Integers, Unit


@dataclass(frozen=True)
class CollectionPlan:
    """What is public about a collection, fixed before the records are read.

    Args:
        training: how one model is trained.
        models: how many.
        key: the public key that assigns ids to shards.
        shared: whether each model sees all records but its own shard, in place of it alone.

    Raises:
        BadInput: there are fewer than two models.
    """

    training: WeightTraining
    models: int
    key: str
    shared: bool = False

    def __post_init__(self) -> None:
        if self.models < 2:
            raise BadInput(
                f"a collection of {self.models} models",
                where="collection.models",
                why="there is no density of a single value: what leaves would be that model itself",
                remedy="train at least two, better hundreds",
            )

    def members(self, data: Dataset) -> list[Integers]:
        """The positions of each model's records, in hash order."""
        places = self.training.places
        cap = len(data) if self.shared else places
        sharding = EnsemblePlan(count=self.models, key=self.key, shard_cap=max(1, cap))
        own = shard_members(data, sharding)
        if not self.shared:
            return own
        whole = np.concatenate(own)
        return [whole[~np.isin(whole, left_out)][:places] for left_out in own]


class NetworkShards(ShardModels):
    """Networks on disjoint shards: trained for each round from where the last one ended.

    Args:
        records: the sensitive records; public ones train stand-ins.
        plan: the public constants; its models must not be shared.
        size: weights of a model.
        folder: for the matrix of each round; removed when the next one begins.
        engine: where the trainings run.
        on_done: told how many models are trained, and of how many.
    """

    def __init__(
        self,
        records: Records,
        plan: CollectionPlan,
        size: int,
        *,
        folder: Path,
        engine: Engine = CORES,
        on_done: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        assert not plan.shared  # a shared record would change every model
        self._data, self._plan = opened(records), plan
        unit = Unit.RECORD if self._data.persons is None else Unit.PERSON
        super().__init__(plan.models, size, unit)
        self._folder, self._engine, self._on_done = folder, engine, on_done
        self._last: Path | None = None

    def _differences(self, start: Flat, number: int) -> Iterator[Matrix]:
        matrix, kept = trained_rows(
            self._data, self._plan, start, number, self._folder, self._engine, self._on_done
        )
        if self._last is not None and self._last != kept:
            shutil.rmtree(self._last, ignore_errors=True)
        self._last = kept
        for row in matrix:
            yield (np.array(row) - start)[None]


class Collection(ParameterSlices):
    """A whole collection, in the clear: for the paper's algorithms alone.

    Guarantee: none of a model by itself; see `ParameterSlices` for slices of them.

    Args:
        records: the sensitive records.
        plan: the public constants.
        start: where all models start.
        folder: for the matrix; for its owner alone.
        engine: where the trainings run.
        on_done: told how many models are trained, and of how many.

    Raises:
        BadInput: the disk is too small, or a model's training has diverged. Nothing is paid for
            yet, so its owner may be told.
    """

    def __init__(
        self,
        records: Records,
        plan: CollectionPlan,
        start: Flat,
        *,
        folder: Path,
        engine: Engine = CORES,
        on_done: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        rows, _ = trained_rows(opened(records), plan, start, 0, folder, engine, on_done)
        for number, row in enumerate(rows):
            if not np.isfinite(row).all():
                raise BadInput(
                    f"model {number} of the collection has weights that are no finite numbers",
                    where="collection.learning_rate",
                    why="it has no place on any grid",
                    remedy="lower the rate; nothing is drawn yet",
                )
        super().__init__(rows, plan.models - 1 if plan.shared else 1)
        self._training = plan.training

    def published_model(
        self, layers: Sequence[slice], share: float, radius: float, width: int
    ) -> PublishedModel:
        """The model that DP-PGP publishes: the first."""
        return PublishedModel(np.array(self._rows[0]), layers, share, radius, width)

    def one_model(self) -> PlainTeacher:
        """The first model, as it was trained; for a benchmark on public test records."""
        network = self._training.built()
        unflatten(network, np.array(self._rows[0]))
        return PlainTeacher(network, self._training.pictures)


def trained_rows(
    data: Dataset,
    plan: CollectionPlan,
    start: Flat,
    number: int,
    folder: Path,
    engine: Engine,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Matrix, Path]:
    """The weights of all models, mapped from disk, and where they are; what is there is not run.

    Args:
        data: the records.
        plan: the public constants.
        start: where all models start.
        number: of the round.
        folder: holds a folder per plan, data and start.
        engine: where the trainings run.
        on_done: told how many models are trained, and of how many.

    Raises:
        BadInput: the models are not of one architecture, or the disk is too small.
    """
    key = _key(data, plan, start, number)
    kept = folder / key[:24]
    names = [f"model-{i:05d}" for i in range(plan.models)]
    store = RowStore(kept, key, names, len(start))

    def payload(i: int, own: Integers) -> dict[str, object]:
        return {"x": data.x[own], "y": data.y[own], "number": number * plan.models + i}

    units = [
        WorkItem(name, payload(i, own))
        for i, (name, own) in enumerate(zip(names, plan.members(data), strict=True))
    ]
    task = partial(train_unit, plan.training, start)
    run_all(task, units, engine=engine, keeper=store, on_done=on_done)
    return store.matrix, kept


def _key(data: Dataset, plan: CollectionPlan, start: Flat, number: int) -> str:
    """What rows belong to: other records, numbers or another start make another collection."""
    digest = hashlib.sha256(json.dumps([asdict(plan), number], sort_keys=True).encode())
    digest.update(start.tobytes())
    digest_records(digest, data)
    return digest.hexdigest()
