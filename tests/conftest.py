"""Loaded before all tests."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module

import pytest

# It tells onnxruntime to report nothing, which must come before some test loads that.
import_module("stillroom")


@pytest.fixture
def networks(tmp_path, monkeypatch):
    """A module of one's own, found on the path."""
    from methods.pictures import NETWORKS

    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_networks.py").write_text(NETWORKS)
    monkeypatch.syspath_prepend(folder)


@pytest.fixture(autouse=True)
def no_trials(monkeypatch, request):
    """How long work takes is tried in the tests of that alone: a trial takes a second or two."""
    if "test_estimate" not in request.node.nodeid:
        monkeypatch.setattr("stillroom.sources.trials._tried", lambda trial: 1e-3)


@pytest.fixture
def quick(monkeypatch):
    """Noise that is fixed, for tests that are not about the price."""
    fix_noise(monkeypatch, 20)


@pytest.fixture
def quick_exporter(monkeypatch):
    """For tests in which the ONNX file is only carried along."""
    from quick_onnx import use_quick_exporter

    use_quick_exporter(monkeypatch)


@pytest.fixture
def small(monkeypatch):
    """Noise that is fixed, no measured speed, and the exporter that takes no seconds."""
    from quick_onnx import use_quick_exporter
    from stillroom.methods.rona import job, published_job

    fix_noise(monkeypatch, 4)
    for module in (job, published_job):
        monkeypatch.setattr(module, "report", lambda *given: None)
    use_quick_exporter(monkeypatch)


def fix_noise(monkeypatch, scale):
    """Noise that was not sought costs something else than the recipe asks for: not compared."""
    from stillroom.pipeline import pricing, release
    from stillroom.release import verify_bundle

    monkeypatch.setattr(pricing, "smallest_sigma", lambda lines, *given: Fraction(scale))
    monkeypatch.setattr(release, "verify", verify_bundle)
