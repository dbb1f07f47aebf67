"""Models on shards: each a function of its own records, and what they say of weights."""

from __future__ import annotations

import numpy as np
import pytest

from stillroom.data import Dataset, digits
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.features import pixels
from stillroom.models.flat_weights import flatten
from stillroom.models.weight_training import WeightTraining
from stillroom.parameters import KeptWeights, ParameterGrid
from stillroom.private.head_models import HeadPlan, HeadShards
from stillroom.private.parameter_collection import CollectionPlan, NetworkShards
from stillroom.private.shard_models import ShardModels
from stillroom.vocabulary import Pair, Sealed, Unit

HERE = Engine("serial")
FEW = digits().select(np.arange(150))
WIDTH = 65
PLAN = HeadPlan(models=70, key="a test", shard_cap=6, steps=2, learning_rate=3.0)
START = np.zeros(10 * WIDTH, dtype=np.float32)
TRAINING = WeightTraining(
    "linear", (8, 8), 10, 16.0, places=60, epochs=2, batch=16, learning_rate=0.01
)
NETS = CollectionPlan(TRAINING, 4, "a test")
NET_START = flatten(TRAINING.built())


def heads(data=FEW, plan=PLAN, whitening=None):
    scale = np.eye(WIDTH, dtype=np.float32) if whitening is None else whitening
    return HeadShards(data, pixels, scale, plan)


def networks(folder, data=FEW, plan=NETS):
    return NetworkShards(data, plan, len(NET_START), folder=folder, engine=HERE)


def rows_of(shards, start=START, number=0):
    return np.concatenate([np.array(rows) for rows in shards._differences(start, number)])


def with_one_more(data, picture, label):
    return Dataset(
        np.concatenate([data.x, picture[None]]), np.append(data.y, label), data.classes,
        ids=(*data.ids, "newcomer"),
    )  # fmt: skip


# -- one record, one model ------------------------------------------------------------------


@pytest.mark.parametrize("picture", [FEW.x[3], 0 * FEW.x[3], 1e30 + FEW.x[3]])
def test_a_record_more_changes_one_head_and_no_bit_of_the_others(picture):
    named = Dataset(FEW.x, FEW.y, FEW.classes, ids=[f"r{i}" for i in range(len(FEW))])
    more = with_one_more(named, picture, 3)
    before, after = rows_of(heads(named)), rows_of(heads(more))
    changed = (before != after).any(axis=1)
    assert before.shape == (70, 650)
    assert changed.sum() <= 1


def test_a_record_less_changes_one_network(tmp_path):
    without = FEW.select(np.arange(1, len(FEW)))
    before = rows_of(networks(tmp_path / "a"), NET_START)
    after = rows_of(networks(tmp_path / "b", without), NET_START)
    assert (before != after).any(axis=1).sum() == 1


def test_a_head_is_gradient_descent_on_its_shard():
    alone = HeadPlan(models=1, key="a test", shard_cap=200, steps=1, learning_rate=2.0)
    (found,) = rows_of(heads(plan=alone))
    rows = pixels(FEW.x)
    targets = np.eye(10)[FEW.y]
    wanted = 2.0 * (targets - 0.1).T @ rows / len(FEW)
    assert found.reshape(10, WIDTH) == pytest.approx(wanted, abs=1e-5)


def test_whitened_rows_are_what_heads_see():
    scale = np.diag(np.linspace(0.5, 2, WIDTH)).astype(np.float32)
    alone = HeadPlan(models=1, key="a test", shard_cap=200, steps=1, learning_rate=2.0)
    (found,) = rows_of(heads(plan=alone, whitening=scale))
    wanted = 2.0 * (np.eye(10)[FEW.y] - 0.1).T @ (pixels(FEW.x) @ scale) / len(FEW)
    assert found.reshape(10, WIDTH) == pytest.approx(wanted, abs=1e-5)


def test_a_cap_drops_the_surplus_by_hash():
    capped = HeadPlan(models=1, key="a test", shard_cap=20)
    again = HeadPlan(models=1, key="another", shard_cap=20)
    assert not np.array_equal(rows_of(heads(plan=capped)), rows_of(heads(plan=again)))


def test_an_empty_shard_stays_at_the_start(tmp_path):
    nobody = FEW.select(np.arange(0))
    assert not rows_of(heads(nobody)).any()
    assert not rows_of(networks(tmp_path, nobody), NET_START).any()


def test_persons_share_a_shard():
    owners = [f"p{i // 3}" for i in range(len(FEW))]
    data = Dataset(FEW.x, FEW.y, FEW.classes, ids=FEW.ids, persons=owners)
    without = data.select(np.arange(3, len(FEW)))
    shards = heads(data)
    assert shards.unit is Unit.PERSON
    assert (rows_of(shards) != rows_of(heads(without))).any(axis=1).sum() == 1


# -- what they say --------------------------------------------------------------------------


def test_the_sum_is_that_of_clipped_latents():
    shards, latents = heads(), KeptWeights(650, np.arange(0, 650, 7))
    rows = rows_of(shards)[:, ::7].astype(np.float64)
    clip, steps = 0.05, 5000
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = (rows * np.minimum(1, clip / np.maximum(lengths, 1e-12))).sum(axis=0) * (steps / clip)
    told = shards.latent_sum(START, 0, latents, clip, steps)
    assert (lengths > clip).any()
    assert told.open_bounded()[0] == pytest.approx(wanted, abs=len(rows) + 1)
    assert told.sensitivity.bounds[Pair.parse("record/change")] == 4 * steps**2


def test_entries_are_points_of_the_grid_one_column_per_model():
    grid, latents = ParameterGrid(0.1, 11, 0.02), KeptWeights(650, np.array([3, 77]))
    told = heads().latent_entries(START, 0, latents, grid)
    rows = rows_of(heads())[:, [3, 77]]
    assert told.open_bounded().tolist() == grid.nearest(rows).T.tolist()
    assert told.shape == (2, 70)
    one_row = told.in_one_row()
    assert one_row.shape == (1, 140)
    assert one_row.sensitivity == told.sensitivity


class Broken(ShardModels):
    """Three models: one is no number, one is beyond all bounds."""

    def _differences(self, start, number):
        yield np.array([[np.nan, 1, 1], [0.5, 0, 0], [3e38, -3e38, 0]], dtype=np.float32)


def test_a_model_that_is_no_number_counts_as_the_start():
    shards, latents = Broken(3, 3, Unit.RECORD), KeptWeights(3, np.arange(3))
    told = shards.latent_sum(START, 0, latents, 1.0, 100).open_bounded()[0]
    assert told.tolist() == [50 + 70, -70, 0]
    entries = shards.latent_entries(START, 0, latents, ParameterGrid(1.0, 5, 0.3)).open_bounded()
    assert entries.tolist() == [[2, 3, 4], [2, 2, 0], [2, 2, 2]]


def test_features_that_are_no_numbers_are_left_out():
    """A record whose features are none changes its own head, and nobody is told."""

    def rows(x):
        found = pixels(x)
        found[5] = np.nan
        return found

    broken = HeadShards(FEW, rows, np.eye(WIDTH, dtype=np.float32), PLAN)
    assert np.isfinite(rows_of(broken)).all()
    assert (rows_of(broken) != rows_of(heads())).any(axis=1).sum() == 1


@pytest.mark.parametrize("steps", [0, 2**25])
def test_a_ball_that_cannot_be_checked(steps):
    with pytest.raises(BadInput):
        heads().latent_sum(START, 0, KeptWeights(650, np.arange(3)), 1.0, steps)


# -- rounds of networks ---------------------------------------------------------------------


def test_rounds_order_records_anew_and_leave_one_matrix(tmp_path):
    shards = networks(tmp_path)
    first, second = rows_of(shards, NET_START, 0), rows_of(shards, NET_START, 1)
    assert not np.array_equal(first, second)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cut_off_collection_goes_on(tmp_path, monkeypatch):
    from stillroom.private import parameter_collection

    whole = rows_of(networks(tmp_path / "whole"), NET_START)
    honest, trained = parameter_collection.train_unit, []

    def dying(training, start, payload):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(int(payload["number"]))
        return honest(training, start, payload)

    monkeypatch.setattr(parameter_collection, "train_unit", dying)
    with pytest.raises(KeyboardInterrupt):
        rows_of(networks(tmp_path / "cut"), NET_START)
    trained.clear()
    assert np.array_equal(rows_of(networks(tmp_path / "cut"), NET_START), whole)
    assert trained == [2, 3]


def test_sealed_records_are_opened_here_alone(tmp_path):
    assert np.array_equal(rows_of(heads(Sealed(FEW))), rows_of(heads()))
    assert "hidden" in repr(heads())
    assert "0." not in repr(networks(tmp_path))


@pytest.mark.parametrize("numbers", [{"models": 0}, {"shard_cap": 0}, {"steps": 0}, {"key": ""}])
def test_heads_need_numbers_in_range(numbers):
    with pytest.raises(BadInput):
        HeadPlan(**{"models": 2, "key": "k", "shard_cap": 3, **numbers})


def test_one_model_is_no_collection():
    with pytest.raises(BadInput, match="a collection of 1 models"):
        CollectionPlan(TRAINING, 1, "a test")
