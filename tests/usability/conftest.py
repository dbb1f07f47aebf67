"""Bundles that many rows look at are made once."""

from __future__ import annotations

import pytest

from stillroom.pipeline.release import release
from stillroom.release.keys import make_keys
from stillroom.vocabulary import Budget
from usability.world import RECIPE, VISITS, World


@pytest.fixture(scope="session")
def bundles(tmp_path_factory):
    """A signed bundle of digits, and one of a table."""
    folder = tmp_path_factory.mktemp("bundles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STILLROOM_HOME", str(folder / "home"))
        (folder / "recipe.toml").write_text(RECIPE)
        key, _ = make_keys(folder / "release.key")
        release(folder / "recipe.toml", folder / "digits", sign_with=key, budget=Budget(1.0, 1e-5))
        World(folder, folder, patch).visits()
        (folder / "visits.toml").write_text(f'ledger = "visits.sqlite"\n{VISITS}')
        release(folder / "visits.toml", folder / "visits", budget=Budget(1.0, 1e-5))
    return folder


@pytest.fixture
def world(tmp_path, bundles, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return World(folder, bundles, monkeypatch)
