"""Directions: fitted on public pictures only, half white, and rows that know no company."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from features.enlarged import loud, moved_by_company, pictures
from stillroom.data import Dataset, PublicPictures
from stillroom.engine import Engine
from stillroom.errors import BadInput, NotSanitised
from stillroom.features.extraction import Extractor
from stillroom.features.layers import LinearOverFeatures
from stillroom.features.projection import fit_projection, unit_rows
from stillroom.randomness import normals

SERIAL = Engine("serial")


@pytest.fixture(scope="module")
def extractor():
    return Extractor("scattering", (16, 16), 16.0)


@pytest.fixture(scope="module")
def grids(extractor):
    """Of 300 public pictures and of 120 others."""
    return np.split(extractor.grid(pictures(420)[0], engine=SERIAL), [300])


def fitted(grid, components):
    """As if the grid were that of public pictures."""
    return fit_projection(lambda x: grid, PublicPictures(grid, "a test"), components)


@pytest.fixture(scope="module")
def projection(grids):
    return fitted(grids[0], 20)


def test_rows_have_norm_one_at_most(projection, grids):
    wild = np.concatenate([grids[1], np.zeros_like(grids[1][:1]), -grids[1][:1]])
    cases = [
        projection.rows(wild),
        unit_rows(wild.astype(np.float64)),
        unit_rows(np.array([[1e-320, 0.0], [1e300, -1e300], [0.0, 0.0]])),
    ]
    for rows in cases:
        lengths = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
        assert np.isfinite(rows).all()
        assert (lengths <= 1).all()
        assert np.allclose(rows[:, -1], 0.1, atol=1e-6)
    assert (np.linalg.norm(cases[0], axis=1) > 1 - 1e-5).all()
    assert projection.rows(wild[:0]).shape == (0, 21)


@pytest.mark.parametrize("columns", [40, 900], ids=["fewer than rows", "more than rows"])
def test_directions_are_those_of_a_decomposition(columns):
    drawn = normals(4, "grid", size=(200, columns)) * np.linspace(3, 1, columns)
    grid = np.rint(100 * drawn).astype(np.int16)
    centred = grid - grid.mean(axis=0)
    _, lengths, known = np.linalg.svd(centred, full_matrices=False)
    found = fitted(grid, 5)
    scaled = known[:5] * (lengths[:5, None] ** 2 / len(grid)) ** -0.25
    turned = np.abs(centred @ found.directions) - np.abs(centred @ scaled.T)
    assert np.abs(turned).max() < 1e-3 * np.abs(centred @ scaled.T).max()


def test_a_row_knows_no_company(projection, grids):
    assert moved_by_company(projection.rows, grids[1]) == []
    assert moved_by_company(lambda grid: unit_rows(grid.astype(np.float64)), grids[1]) == []


def test_a_twin_whitened_over_its_batch_is_caught(projection, grids):
    def pooled(grid):
        rows = projection.rows(grid)
        return rows / np.sqrt((rows**2).mean(axis=0))

    assert "one removed" in moved_by_company(pooled, grids[1])


def test_a_twin_in_floating_point_is_caught(projection, grids):
    """The same product without the grid: sums of another order are other sums."""

    def rounded(grid):
        away = grid.astype(np.float32) - projection.mean.astype(np.float32)
        return away @ projection.directions.astype(np.float32)

    assert moved_by_company(rounded, grids[1]) != []


def test_half_whitening(grids):
    """Along each direction the spread is the root of what it was: variance sqrt(eigenvalue)."""
    projection = fitted(grids[0], 30)
    features = grids[0].astype(np.float64)
    values = np.linalg.eigvalsh(np.cov(features.T, bias=True))[::-1][:30]
    along = (features - projection.mean) @ projection.directions
    assert along.var(axis=0) == pytest.approx(np.sqrt(values), rel=1e-3)
    off = np.corrcoef(along.T) - np.eye(30)
    assert np.abs(off).max() < 1e-3
    # Twins: left as they are, and wholly white.
    units = projection.directions * values**0.25
    assert np.linalg.norm(units, axis=0) == pytest.approx(np.ones(30), rel=1e-3)
    for power in (0, -0.5):
        twin = ((features - projection.mean) @ (units * values**power)).var(axis=0)
        assert not np.allclose(twin, np.sqrt(values), rtol=0.1)


@pytest.mark.parametrize("kind", ["dataset", "array", "tuple"])
def test_sensitive_records_are_refused_by_type(kind, grids):
    x, y = pictures(50)
    sensitive = Dataset(x, y, 10)
    given = {"dataset": sensitive, "array": x, "tuple": (x, "public, I swear")}[kind]
    looked = []
    with pytest.raises(NotSanitised, match="fitted on a") as caught:
        fit_projection(lambda some: looked.append(some) or grids[0], given, 5)
    assert looked == []
    assert "sketch" in caught.value.remedy


@pytest.mark.parametrize(("count", "components"), [(300, 0), (300, 1297), (20, 20), (1, 1)])
def test_too_many_components(grids, count, components):
    with pytest.raises(BadInput) as caught:
        fitted(grids[0][:count], components)
    assert caught.value.where == "features.components"


def test_pictures_that_are_all_the_same(grids):
    """No direction has any spread: rows are still rows."""
    projection = fitted(np.repeat(grids[0][:1], 9, axis=0), 4)
    rows = projection.rows(grids[1])
    assert np.isfinite(rows).all()
    assert (np.linalg.norm(rows.astype(np.float64), axis=1) <= 1).all()


@pytest.mark.parametrize("projected", [True, False])
def test_layers_score_as_rows_do(extractor, projection, grids, projected):
    rows = projection.rows(grids[1]) if projected else unit_rows(grids[1].astype(np.float64))
    weights = normals(3, "weights", size=(10, rows.shape[1])).astype(np.float32)
    layers = LinearOverFeatures(
        extractor.network, extractor.shortest, projection if projected else None, weights
    )
    with torch.no_grad():
        logits = layers(torch.from_numpy(pictures(420)[0][300:])).numpy()
    wanted = rows @ weights.T
    off = np.linalg.norm(logits - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    # Rows are rounded to their grid: by a third of a unit a feature, some 10 of 8192 in all.
    assert np.median(off) < (1e-3 if projected else 2e-3)
    assert off.max() < 5e-3
    assert (logits.argmax(axis=1) == wanted.argmax(axis=1)).mean() > 0.98


def test_layers_know_no_company_up_to_rounding(extractor, projection):
    x, weights = pictures(20)[0], normals(3, "weights", size=(10, 21)).astype(np.float32)
    layers = LinearOverFeatures(extractor.network, extractor.shortest, projection, weights)
    with torch.no_grad():
        alone = layers(torch.from_numpy(x))
        beside = layers(torch.from_numpy(np.concatenate([x, loud(x)])))[:20]
    assert torch.allclose(alone, beside, atol=1e-3)


def test_pictures_do_not_show_in_a_repr():
    assert repr(PublicPictures(np.zeros((2, 2)), "zeros")) == "PublicPictures(origin='zeros')"
