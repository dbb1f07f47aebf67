"""Every test has a home of its own, so that no test knows another's ledgers."""

import os

import pytest
from hypothesis import settings

# One worker per core, and one thread per worker: more would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The same examples in every run: a suite that fails by chance is not believed when it is right.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
