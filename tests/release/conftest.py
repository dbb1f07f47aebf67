"""A bundle to look at, and a copy of it to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from release.making import make
from stillroom.release import write_bundle


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    write_bundle(make(folder), folder / "bundle")
    return folder / "bundle"


@pytest.fixture
def bundle(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "bundle"))
