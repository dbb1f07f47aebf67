"""What roads over pictures need."""

from __future__ import annotations

from fractions import Fraction

import pytest

from methods.pictures import NETWORKS
from stillroom.methods import costs


@pytest.fixture
def networks(tmp_path, monkeypatch):
    """A module of one's own, found on the path."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_networks.py").write_text(NETWORKS)
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def quick(monkeypatch):
    """Noise that is fixed, for tests that are not about the price."""
    monkeypatch.setattr(costs, "smallest_sigma", lambda lines, *given: Fraction(20))
