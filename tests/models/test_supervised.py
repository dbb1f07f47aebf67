"""Public trainings: done once, found again by all their numbers, the same on every engine."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from stillroom.data import digits
from stillroom.engine import Engine
from stillroom.models import checkpoints, supervised
from stillroom.models.augmentation import Views
from stillroom.models.checkpoints import Checkpoint
from stillroom.models.supervised import SupervisedTraining, train_all
from stillroom.models.training import NetworkTraining

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

    def noted(folder, given):
        done.append(given.model)
        return honest(folder, given)

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
    assert told[-1] == (6, 6)


def dropping(given, classes):
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(int(np.prod(given)), classes))


def test_a_training_that_is_cut_off_goes_on_to_the_same_bytes(tmp_path, training, monkeypatch):
    monkeypatch.setitem(sys.modules, "own_networks", SimpleNamespace(dropping=dropping))
    training = replace(training, model="own_networks:dropping")
    (whole,) = train_all([training], engine=SERIAL, folder=tmp_path / "whole")
    monkeypatch.setattr(checkpoints, "OFTEN", 0.0)
    honest, epochs = NetworkTraining.learn, []

    def learn(self, *words):
        epochs.append(self.done)
        if len(epochs) == 3:
            raise KeyboardInterrupt
        honest(self, *words)

    monkeypatch.setattr(NetworkTraining, "learn", learn)
    folder = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        train_all([training], engine=SERIAL, folder=folder)
    (kept,) = folder.glob("*.state")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    (again,) = train_all([training], engine=SERIAL, folder=folder)
    assert epochs == [0, 1, 2, 2]  # the first two are not made again
    assert state(again) == state(whole)
    assert not [*folder.glob("*.state"), *folder.glob("*.passes")]


@pytest.mark.parametrize("spoilt", [b"", b"no state", "another"])
def test_a_state_that_cannot_be_used_is_not(tmp_path, training, spoilt):
    (whole,) = train_all([training], engine=SERIAL, folder=tmp_path / "whole")
    folder, name = tmp_path / "spoilt", training.digest()[:32]
    folder.mkdir()
    if spoilt == "another":
        Checkpoint(folder / f"{name}.state", "another's").keep_now({"done": 2})
    else:
        (folder / f"{name}.state").write_bytes(spoilt)
    (again,) = train_all([training], engine=SERIAL, folder=folder)
    assert state(again) == state(whole)


def test_passes_are_told_while_others_train(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LOOK", 0.01)
    told, both = [], threading.Event()

    def on_step(done, total):
        told.append((done, total))
        if done == 5:
            both.set()

    with checkpoints.watched(tmp_path, {"a": 3, "b": 4}, on_step):
        checkpoints.tell_passes(tmp_path, "a", 3)
        checkpoints.tell_passes(tmp_path, "b", 2)
        assert both.wait(30)
    assert told[-1] == (5, 7)
    assert not list(tmp_path.iterdir())
