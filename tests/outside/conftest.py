"""A package from outside, found as an installed one would be."""

from pathlib import Path

import pytest

from stillroom.methods import registry

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture
def outside(monkeypatch):
    """The package on the path; its entry point is then among those of the environment."""
    monkeypatch.syspath_prepend(PACKAGE)
    registry.method_named.cache_clear()
    yield "labels"
    registry.method_named.cache_clear()
