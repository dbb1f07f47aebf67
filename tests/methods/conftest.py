"""What roads over pictures need."""

from __future__ import annotations

from fractions import Fraction

import pytest

from methods.pictures import NETWORKS
from quick_onnx import use_quick_exporter
from stillroom.methods import costs, road
from stillroom.methods.rona import from_ensemble as rona_from_ensemble
from stillroom.methods.rona import from_plain as rona_from_plain
from stillroom.methods.rona import from_teacher as rona_from_teacher
from stillroom.release import verify_bundle


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
    fix_noise(monkeypatch, 20)


def fix_noise(monkeypatch, scale):
    """Noise that was not sought costs something else than the recipe asks for: not compared."""
    monkeypatch.setattr(costs, "smallest_sigma", lambda lines, *given: Fraction(scale))
    monkeypatch.setattr(road, "verify", verify_bundle)


@pytest.fixture
def small(monkeypatch):
    """Noise that is fixed, no measured speed, and the exporter that takes no seconds."""
    fix_noise(monkeypatch, 4)
    for module in (rona_from_teacher, rona_from_ensemble, rona_from_plain):
        monkeypatch.setattr(module, "report", lambda *given: None)
    use_quick_exporter(monkeypatch)
