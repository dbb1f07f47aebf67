"""A feature map: rows of each record alone, directions that are kept, layers that agree with it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from features.enlarged import pictures
from stillroom.data import PublicPictures, digits
from stillroom.engine import Engine
from stillroom.errors import BadInput, NotSanitised, NumericalDoubt
from stillroom.features import FEATURES, feature_map
from stillroom.features.feature_map import FeatureMap

X = pictures(60)[0]
SERIAL = Engine("serial")


def scattering(**more):
    return FeatureMap("scattering", (16, 16), full_scale=16.0, engine=SERIAL, **more)


@pytest.mark.parametrize("name", FEATURES)
def test_fixed_features_are_themselves(name):
    features, x = FeatureMap(name, (8, 8)), digits().x[:40]
    assert features.fixed
    features.look(x)
    assert np.array_equal(features.rows(x), FEATURES[name](x))
    assert features.width == features.rows(x).shape[1]


def test_fixed_features_need_no_torch():
    program = (
        "import sys, numpy as np\n"
        "from stillroom.features.feature_map import FeatureMap\n"
        "features = FeatureMap('edges', (8, 8))\n"
        "features.look(np.ones((3, 8, 8))); features.rows(np.ones((3, 8, 8)))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_features_that_look_at_their_company_are_found(monkeypatch):
    honest = FEATURES["pixels"]
    monkeypatch.setitem(FEATURES, "pixels", lambda x: honest(x - x.mean(axis=0)))
    with pytest.raises(NumericalDoubt):
        FeatureMap("pixels", (8, 8)).look(digits().x[:40])


def test_rows_are_as_wide_as_announced(tmp_path):
    whole, narrow = scattering(), scattering(components=5, fitted_on=60)
    narrow.fit(PublicPictures(X, "made up"), tmp_path / "directions.npz")
    assert not whole.fixed
    assert whole.rows(X).shape == (60, whole.width)
    assert narrow.rows(X).shape == (60, narrow.width) == (60, 6)
    assert np.linalg.norm(narrow.rows(X), axis=1).max() <= 1


def test_directions_are_fitted_once(tmp_path):
    keep = tmp_path / "directions.npz"
    first, again, other = (scattering(components=5, fitted_on=60) for _ in range(3))
    first.fit(PublicPictures(X, "made up"), keep)
    assert keep.stat().st_mode & 0o777 == 0o600
    again.fit(None, keep)
    assert np.array_equal(again.rows(X), first.rows(X))
    other.fit(PublicPictures(X[:30], "made up"), tmp_path / "other.npz")
    assert not np.array_equal(other.rows(X), first.rows(X))


def test_directions_of_sensitive_records_are_refused(tmp_path):
    with pytest.raises(NotSanitised):
        scattering(components=5, fitted_on=60).fit(digits(), tmp_path / "directions.npz")
    assert not (tmp_path / "directions.npz").exists()


def test_more_directions_than_pictures_are_refused_at_once():
    for fitted_on in (0, 5):
        with pytest.raises(BadInput, match="directions"):
            scattering(components=5, fitted_on=fitted_on)
    with pytest.raises(BadInput, match="no features"):
        FeatureMap("unknown", (16, 16))


def test_what_was_looked_at_is_not_computed_again(monkeypatch):
    features, told = scattering(), []
    features.look(X, on_done=lambda done, total: told.append((done, total)))
    assert told[-1] == (1, 1)
    before = features.rows(X)
    monkeypatch.setattr(FeatureMap, "_grid", lambda *given: pytest.fail("computed again"))
    assert np.array_equal(features.rows(X), before)
    with pytest.raises(pytest.fail.Exception):
        features.rows(X.copy())


def test_slow_features_are_kept_and_few_are_not(tmp_path, monkeypatch):
    trunk = nn.Sequential(nn.Flatten(), nn.Linear(256, 7))
    features = FeatureMap(
        "auxiliary", (16, 16), full_scale=16.0, engine=SERIAL, auxiliary=trunk, cache=tmp_path
    )
    features.rows(X)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(feature_map, "FEW", 10)
    features.rows(X)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert features.width == 8


@pytest.mark.parametrize("components", [None, 5])
def test_the_layers_give_the_scores_of_the_rows(components, tmp_path):
    features = scattering(components=components, fitted_on=60)
    features.fit(PublicPictures(X, "made up"), tmp_path / "directions.npz")
    weights = np.linspace(-1, 1, 3 * features.width).reshape(3, -1).astype(np.float32)
    with torch.no_grad():
        found = features.layers(weights)(torch.from_numpy(X.astype(np.float32))).numpy()
    assert found == pytest.approx(features.rows(X) @ weights.T, abs=5e-3)
