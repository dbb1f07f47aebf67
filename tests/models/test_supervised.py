"""Public trainings: done once, found again by all their numbers, the same on every engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from stillroom.data import digits
from stillroom.engine import Engine
from stillroom.models import supervised
from stillroom.models.augmentation import Views
from stillroom.models.supervised import SupervisedTraining, train_all

SERIAL = Engine("serial")


@pytest.fixture(scope="module")
def training():
    data = digits()
    return SupervisedTraining(
        model="linear",
        x=np.array(data.x[:80]),
        y=np.array(data.y[:80]),
        classes=10,
        full_scale=16.0,
        views=Views(count=2, shift=0.1),
        epochs=3,
        batch=16,
        learning_rate=0.01,
        start_seed=0,
    )


def state(network):
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


def test_a_training_is_done_once(tmp_path, training, monkeypatch):
    honest, done = supervised._train, []

    def noted(given):
        done.append(given.model)
        return honest(given)

    monkeypatch.setattr(supervised, "_train", noted)
    first = train_all([training, training], engine=SERIAL, folder=tmp_path)
    assert done == ["linear"]
    assert state(first[0]) == state(first[1])
    again = train_all([training], engine=SERIAL, folder=tmp_path)
    assert done == ["linear"]
    assert state(again[0]) == state(first[0])
    assert not again[0].training
    # In another folder it is trained again, to the same weights.
    (new,) = train_all([training], engine=SERIAL, folder=tmp_path / "other")
    assert done == ["linear", "linear"]
    assert state(new) == state(first[0])


@pytest.mark.parametrize(
    "change",
    [
        {"model": "mlp"},
        {"full_scale": 15.0},
        {"views": Views(count=2, shift=0.2)},
        {"epochs": 4},
        {"batch": 8},
        {"learning_rate": 0.02},
        {"start_seed": 1},
        {"x": "one pixel"},
        {"y": "one label"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_number_is_another_training(training, change):
    (name,) = change
    if name in "xy":
        array = getattr(training, name).copy()
        array.flat[11] += 1
        change = {name: array % 10}
    assert replace(training, **change).digest() != training.digest()
    assert replace(training).digest() == training.digest()


def test_the_same_bytes_as_other_records_are_another_training(training):
    flat = training.x.reshape(len(training.x), -1)
    other = training.x.view(f"i{training.x.itemsize}")
    assert other.dtype != training.x.dtype
    assert len({replace(training, x=x).digest() for x in (training.x, flat, other)}) == 3


def test_it_learns_and_keeps_its_order(tmp_path, training):
    longer = replace(training, epochs=12)
    found = train_all([longer, training, longer], engine=SERIAL, folder=tmp_path)
    assert state(found[0]) == state(found[2]) != state(found[1])
    x = training.scale(torch.from_numpy(training.x))
    with torch.no_grad():
        right = (found[0](x).argmax(1).numpy() == training.y).mean()
    assert right > 0.8


@pytest.mark.slow
def test_workers_change_nothing(tmp_path, training):
    trainings = [training, replace(training, start_seed=1, model="mlp")]
    alone = train_all(trainings, engine=SERIAL, folder=tmp_path / "one")
    told = []
    both = train_all(
        trainings,
        engine=Engine("loky", workers=2),
        folder=tmp_path / "two",
        on_done=lambda done, total: told.append((done, total)),
    )
    assert [state(network) for network in both] == [state(network) for network in alone]
    assert told[-1] == (2, 2)
