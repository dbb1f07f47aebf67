"""A method of another package goes all the way, without one line of this one changed."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

import processes
from outside.recipes import recipe_for
from processes import COMMAND, started
from stillroom.gate import Ledger

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe_for("labels", "trained"))
    return tmp_path


def environment(place, package=PACKAGE):
    paths = [str(package or ""), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "STILLROOM_HOME": str(place / "home"),
    }


def stillroom(place, *words, package=PACKAGE):
    return processes.stillroom(place, *words, env=environment(place, package))


def said(place, *words, package=PACKAGE):
    done = stillroom(place, *words, package=package)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(place):
    if not (place / "ledger.sqlite").exists():
        return 0
    ledger = Ledger.open(place / "ledger.sqlite", read_only=True)
    try:
        return ledger.head().seq
    finally:
        ledger.close()


def test_lines():
    code = (PACKAGE / "outside_labels.py").read_text().splitlines()
    assert len(code) <= 80


@pytest.mark.slow
def test_explained_and_priced(place):
    told = json.loads(said(place, "recipe", "explain", "recipe.toml", "--json"))
    keys = {line["key"] for line in told}
    assert {"labels.student", "training.steps"} <= keys
    assert not any(key.startswith(("rona.", "student.", "published.")) for key in keys)
    priced = json.loads(said(place, "release", "recipe.toml", "-o", "out", "--dry-run", "--json"))
    assert 4 < priced["epsilon"] <= 8
    assert priced["draws"] == {"gaussian-sum": 20}


@pytest.mark.slow
def test_released_after_a_kill_verified_and_shown(place):
    assert stillroom(place, "release", "recipe.toml", "-o", "out").returncode == 2  # no budget yet
    said(place, "ledger", "budget", "set", "ledger.sqlite", "--epsilon", "9", "--reason", "a test")
    before = rows(place)
    words = ("release", "recipe.toml", "-o", "out")
    with started(COMMAND, *words, cwd=place, env=environment(place)) as process:
        limit = time.monotonic() + 120
        while rows(place) <= before + 9 and process.poll() is None:  # in the middle of the steps
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    certificate = json.loads(said(place, *words, "--json"))
    assert certificate["epsilon"] <= 8
    report = json.loads(said(place, "verify", "out", "--json"))
    assert report["reserved"] == report["drawn"] == 20
    assert report["method"] == {"name": "labels", "package": "outside-labels", "version": "1.0"}
    assert report["recipe"] == "comes to what the certificate says"
    assert "labels" in (place / "out" / "card.html").read_text()
    # A stranger without the package checks all but the recipe, and is told so.
    report = json.loads(said(place, "verify", "out", "--json", package=None))
    missing = "method labels of outside-labels 1.0 is not installed here"
    assert report["recipe"] == f"not compared: {missing}"
    said(place, "card", "out", "-o", "card.html")
    assert (place / "card.html").read_bytes() == (place / "out" / "card.html").read_bytes()


def test_without_its_package_the_recipe_is_not_read(place):
    done = stillroom(place, "recipe", "explain", "recipe.toml", package=None)
    assert done.returncode == 2
    assert "there is no method 'labels'" in done.stderr
