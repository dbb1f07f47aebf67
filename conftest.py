"""Every test has a home of its own, so that no test knows another's ledgers."""

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
