"""A release of entities, killed while they vote: it goes on, and nobody is asked twice."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

import processes
from methods.votes.test_pipeline import text
from processes import COMMAND, started
from stillroom.gate import Ledger

pytestmark = pytest.mark.slow

ENTITIES, QUERIES = 9, 60
RELEASE = ("release", "r.toml", "-o", "out")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "r.toml").write_text(text("dropouts = 2"))
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "STILLROOM_HOME": str(place / "home")}


def stillroom(place, *words):
    return processes.stillroom(place, *words, env=environment(place))


def answered(place: Path) -> list[int]:
    """How many answers each entity has begun."""
    found = []
    for path in sorted((place / "ledgers").glob("*.sqlite")):
        ledger = Ledger.open(path, read_only=True)
        try:
            rows = ledger.store.rows("kind = 'draw'")
            found.append(sum(row.body["count"] for row in rows))
        finally:
            ledger.close()
    return found


@pytest.mark.parametrize("after", [1, 4, ENTITIES])
def test_killed_when_some_have_voted(place, after):
    assert stillroom(place, *RELEASE).returncode == 2  # no budgets yet
    budget = ("ledger", "budget", "set", "ledgers", "--epsilon", "20", "--reason", "a test")
    assert stillroom(place, *budget).returncode == 0
    with started(COMMAND, *RELEASE, cwd=place, env=environment(place)) as process:
        limit = time.monotonic() + 120
        while sum(map(bool, answered(place))) < after and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    before = answered(place)
    assert sum(map(bool, before)) >= after
    done = stillroom(place, *RELEASE)
    assert done.returncode == 0, done.stderr
    assert answered(place) == [QUERIES] * ENTITIES
    report = json.loads(stillroom(place, "verify", "out", "--json").stdout)
    # What was lost in the moment of the kill counts as drawn, and its entity as vanished.
    assert report["reserved"] == report["drawn"] == QUERIES * ENTITIES
    # The budget is used up: a second release is refused and draws nothing.
    assert stillroom(place, "release", "r.toml", "-o", "second").returncode == 3
    assert answered(place) == [QUERIES] * ENTITIES
