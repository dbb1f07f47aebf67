"""What the tests of the published algorithm run in."""

from __future__ import annotations

import pytest

from methods.dpdfd.published_worlds import World


@pytest.fixture
def world(tmp_path):
    return lambda plan, **more: World(tmp_path, plan, **more)
