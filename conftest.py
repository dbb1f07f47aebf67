"""Every test has a home of its own, so that no test knows another's ledgers."""

import os

import pytest
from hypothesis import settings

# The same examples in every run: a suite that fails by chance is not believed when it is right.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
