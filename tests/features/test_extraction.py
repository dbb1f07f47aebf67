"""Extraction: a record's features are its own to the bit, on an exact grid, and kept once made."""

from __future__ import annotations

import sys
from math import isqrt

import numpy as np
import pytest
import torch

from features.enlarged import loud, moved_by_company, pictures
from stillroom.data import digits
from stillroom.engine import Engine
from stillroom.errors import BadInput, NumericalDoubt
from stillroom.features import extraction
from stillroom.features.extraction import Extractor
from stillroom.features.projection import GRID_BITS
from stillroom.models import build

SERIAL = Engine("serial")


@pytest.fixture(scope="module")
def x():
    return pictures(60)[0]


@pytest.fixture(scope="module")
def scattering():
    return Extractor("scattering", (16, 16), 16.0)


BACKBONES = """
import torch
from torch import nn

class Mixing(nn.Module):
    def forward(self, pictures):
        return (pictures - pictures.mean(dim=0)).flatten(1)

def mean():
    return nn.Sequential(nn.AvgPool2d(4), nn.Flatten())

def pooled():
    torch.manual_seed(5)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(6),
                         nn.Flatten())

def unpooled():
    return nn.Conv2d(3, 8, 3)

def scalars():
    return nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (-1,)))

class Pair(nn.Module):
    def forward(self, pictures):
        return pictures, pictures

class Sorted(nn.Module):
    def forward(self, pictures):
        return torch.linalg.svdvals(pictures).flatten(1)

def word():
    return "a backbone"

def broken():
    raise OSError("no weights here")
"""


@pytest.fixture
def backbones(tmp_path, monkeypatch):
    (tmp_path / "own_backbones.py").write_text(BACKBONES)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_backbones"
    sys.modules.pop("own_backbones", None)


def too_long(row):
    """Whether it is longer than 2^13 and half a unit a feature; exact, in Python's integers."""
    square = sum(int(value) ** 2 for value in row)
    return square > (2**GRID_BITS + isqrt(len(row)) // 2 + 1) ** 2


def test_the_grid_is_never_longer_than_it_says(scattering, x):
    wild = np.concatenate([x, loud(x), np.zeros_like(x[:1]), np.full_like(x[:1], 255)])
    grid = scattering.grid(wild, engine=SERIAL)
    assert grid.dtype == np.int16
    assert grid.shape == (len(wild), 81 * 16)
    assert not any(map(too_long, grid))
    assert (np.linalg.norm(grid[: len(x)].astype(float), axis=1) > 0.99 * 2**GRID_BITS).all()
    assert any(map(too_long, grid + np.int16(60)))


@pytest.mark.parametrize("values", [[8192.0], [3e38, -3e38], [-1e-30, 1e-20], [1 / 3] * 4096])
def test_rounding_lengthens_by_half_a_unit_a_feature(values):
    grid = extraction._on_grid(np.array([values], np.float32), 1e-6)
    assert not too_long(grid[0])
    assert (np.sign(grid[0]) * np.sign(values) >= 0).all()  # nothing has wrapped around


def test_a_record_has_its_features_to_itself(scattering, x):
    assert moved_by_company(lambda some: scattering.grid(some, engine=SERIAL), x[:20]) == []


def test_a_twin_normed_over_the_batch_is_caught(scattering, x):
    """Pooled normalisation: the same features, centred and scaled over whoever is there."""

    def pooled(some):
        grid = scattering.grid(some, engine=SERIAL).astype(np.float64)
        return (grid - grid.mean(axis=0)) / (grid.std(axis=0) + 1)

    assert {"alone", "one removed", "with loud ones"} <= set(moved_by_company(pooled, x[:20]))


def test_workers_change_nothing(scattering, x, monkeypatch):
    one = scattering.grid(x, engine=SERIAL)
    monkeypatch.setattr(extraction, "CHUNK", 17)
    assert np.array_equal(scattering.grid(x, engine=SERIAL), one)
    assert np.array_equal(scattering.grid(x, engine=Engine("loky", workers=2)), one)


def test_features_that_change_are_noticed(scattering, x, monkeypatch):
    honest, calls = extraction._extract, []

    def drifting(payload):
        calls.append(1)
        return {"grid": honest(payload)["grid"] + np.int16(len(calls) > 1)}

    monkeypatch.setattr(extraction, "_extract", drifting)
    with pytest.raises(NumericalDoubt, match="computed again"):
        scattering.grid(x[:5], engine=SERIAL)


def test_what_is_no_number_is_nothing(scattering, x):
    wild = np.repeat(x[:1].astype(np.float32), 4, axis=0)
    wild[0, 3, 3] = np.nan
    wild[1, 3, 3] = np.inf
    wild[2] = np.float32(3e38)
    grid = scattering.grid(wild, engine=SERIAL)
    assert not grid[:3].any()
    assert grid[3].any()
    assert scattering.grid(wild[:0], engine=SERIAL).shape == (0, 81 * 16)


def test_the_graph_is_the_network(scattering, x):
    """On blank pictures too: rounding there is not blown up to the size of a feature."""
    blank = [np.zeros_like(x[:1]), np.full_like(x[:1], 7), np.full_like(x[:1], 16)]
    given = np.concatenate([x[:20], *blank])
    with torch.no_grad():
        table = scattering.network(torch.from_numpy(given)).flatten(1).double().numpy()
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit = table / np.maximum(lengths, scattering.shortest)
    grid = scattering.grid(given, engine=SERIAL) / 2**GRID_BITS
    assert np.abs(grid - unit).max() < 2.0 / 2**GRID_BITS


def test_a_backbone_by_its_path(backbones, x):
    extractor = Extractor(f"{backbones}:pooled", (16, 16), 16.0, size=20)
    assert extractor.layout == (8 * 9, 1)
    assert not extractor.network.training
    assert moved_by_company(lambda some: extractor.grid(some, engine=SERIAL), x[:8]) == []
    # A colour picture of three equal channels is the grey one.
    colour = Extractor(f"{backbones}:pooled", (16, 16, 3), 16.0, size=20)
    assert np.array_equal(
        colour.grid(np.repeat(x[:8, :, :, None], 3, axis=3), engine=SERIAL),
        extractor.grid(x[:8], engine=SERIAL),
    )


def test_a_backbone_that_mixes_records_cannot(backbones, x):
    """Each record comes alone, so there is nobody to mix with."""
    extractor = Extractor(f"{backbones}:Mixing", (16, 16), 16.0, size=16)
    assert not extractor.grid(x[:4], engine=SERIAL).any()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_package:network", "cannot be made"),
        ("own_backbones:no_such_callable", "cannot be made"),
        ("own_backbones:broken", "no weights here"),
        ("own_backbones:word", "no torch module but a str"),
        ("own_backbones:unpooled", "no row of features"),
        ("own_backbones:scalars", "cannot be computed|no row of features"),
        ("own_backbones:Pair", "cannot be computed"),
        ("own_backbones:Sorted", "cannot be written as ONNX"),
    ],
)
def test_backbones_that_cannot_be_used(backbones, name, says):
    extractor = Extractor(name, (16, 16), 16.0, size=16)
    with pytest.raises(BadInput, match=says) as caught:
        extractor.grid(np.zeros((1, 16, 16)), engine=SERIAL)
    assert caught.value.where == name
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("own_backbones:mean", (16, 16)), "needs a size"),
        (("scattering", (16, 16), 16.0, 32), "needs a size"),
        (("scatering", (16, 16)), "no features 'scatering'"),
        (("scattering", (8, 8)), "12x12"),
        (("scattering", (16, 11, 3)), "12x12"),
        (("scattering", (16, 16, 2)), "12x12"),
        (("scattering", (64,)), "12x12"),
    ],
)
def test_extractors_that_do_not_fit(given, says):
    with pytest.raises(BadInput, match=says):
        Extractor(*given)


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("part-*")}


def test_what_is_finished_is_not_run_again(backbones, x, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "CHUNK", 20)
    honest, runs = extraction._extract, []

    def counted(payload):
        runs.append(len(payload[2]))
        return honest(payload)

    monkeypatch.setattr(extraction, "_extract", counted)
    cache, path = tmp_path / "cache", f"{backbones}:pooled"

    def features(some):
        return Extractor(path, (16, 16), 16.0, size=20).grid(some, engine=SERIAL, cache=cache)

    first = features(x)
    assert runs == [20, 20, 20, 60]  # three parts, and the check
    made = files(cache)
    assert len(made) == 3
    runs.clear()
    told = []
    again = Extractor(path, (16, 16), 16.0, size=20).grid(
        x, engine=SERIAL, cache=cache, on_done=lambda done, total: told.append((done, total))
    )
    assert np.array_equal(again, first)
    assert runs == [60]  # the check alone
    assert told == [(3, 3)]
    assert files(cache) == made

    # Other records, another scale, another backbone: a folder each.
    for fewer in (x[:40], x[:40][::-1]):
        features(fewer)
    Extractor(path, (16, 16), 8.0, size=20).grid(x[:40], engine=SERIAL, cache=cache)
    assert len(list(cache.iterdir())) == 4
    own = tmp_path / "own_backbones.py"
    own.write_text(BACKBONES.replace("nn.ReLU()", "nn.Tanh()"))
    sys.modules.pop("own_backbones")
    changed = features(x)
    assert not np.array_equal(changed, first)
    assert len(list(cache.iterdir())) == 5


# -- a network of one's own, trained on public records --------------------------------------


def own(seed=0, model="mobile-10k", blocks=-1):
    return build(model, (1, 8, 8), 10, seed=seed)[:blocks].eval()


@pytest.mark.parametrize("model", ["mlp", "mobile-10k"])
def test_an_own_network_gives_each_record_its_own_features(model):
    """Small pictures too; and norms over the batch are those of the training by then."""
    records = digits().x[:40].astype(np.float32)
    extractor = Extractor("auxiliary", (8, 8), 16.0, own=own(model=model))
    grid = extractor.grid(records, engine=SERIAL)
    assert grid.shape == (40, extractor.layout[0] * extractor.layout[1])
    assert extractor.layout[1] == 1
    assert (grid != 0).any(axis=1).all()
    for i in (0, 7, 39):
        assert np.array_equal(extractor.grid(records[i : i + 1], engine=SERIAL)[0], grid[i])
    louder = records.copy()
    louder[1:] = 16 - louder[1:]
    moved = extractor.grid(louder, engine=SERIAL)
    assert np.array_equal(moved[0], grid[0])
    assert not np.array_equal(moved[1], grid[1])


def test_an_own_network_that_gives_maps_is_a_table():
    extractor = Extractor("auxiliary", (8, 8), 16.0, own=own(blocks=1))
    assert extractor.layout == (8, 16)


def test_other_weights_are_other_features():
    digests = [Extractor("auxiliary", (8, 8), 16.0, own=own(seed)).digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_an_own_network_shows_nothing_of_itself():
    assert "Sequential" not in repr(Extractor("auxiliary", (8, 8), 16.0, own=own()))


def test_without_a_network_there_are_no_own_features():
    with pytest.raises(BadInput):
        Extractor("auxiliary", (16, 16), 16.0)
