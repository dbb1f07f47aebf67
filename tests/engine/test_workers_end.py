"""Workers end with the process that started them, however that one ends."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from processes import COMMAND as COMMAND_LINE
from processes import started, stillroom, with_tests

LIMIT = 60
"""Seconds after which a worker is taken for one that stays."""

COMPUTING = """
import sys
witness, kind = sys.argv[1:]
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
from functools import partial
from engine import tasks
from stillroom.engine import Engine, WorkItem, run_all

def compute():
    run_all(
        partial(tasks.compute_for_ever, witness),
        [WorkItem("a", 0), WorkItem("b", 0)],
        engine=Engine(kind, workers=2),
    )
"""
LIBRARY = COMPUTING + "compute()\n"
COMMAND = (
    COMPUTING + "from stillroom import cli; cli._run = lambda words: compute()\n" + "cli.main()\n"
)

NEVER_LOADED = """
loading = [WorkItem(name, tasks.NeverLoaded(witness)) for name in "ab"]
def compute"""
LOADING = COMMAND.replace("\ndef compute", NEVER_LOADED).replace(
    '[WorkItem("a", 0), WorkItem("b", 0)]', "loading"
)

ENDS = {
    "a command, SIGTERM": (COMMAND, os.kill, signal.SIGTERM, 143),
    "a command, SIGHUP": (COMMAND, os.kill, signal.SIGHUP, 129),
    "a command, Ctrl-C": (COMMAND, os.killpg, signal.SIGINT, 130),
    "a command, kill -9": (COMMAND, os.kill, signal.SIGKILL, -9),
    "a command, kill -9 while workers load": (LOADING, os.kill, signal.SIGKILL, -9),
    "a command, SIGTERM while workers load": (LOADING, os.kill, signal.SIGTERM, 143),
    "the library, SIGTERM": (LIBRARY, os.kill, signal.SIGTERM, -15),
}


KINDS = [
    ("loky", "joblib"),
    pytest.param("ray", "ray", marks=pytest.mark.slow),
    pytest.param("dask", "distributed", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("code", "strike", "blow", "ends"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("kind", "package"), KINDS)
def test_all_workers_end(kind, package, code, strike, blow, ends, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    witness = tmp_path / "witness"
    os.mkfifo(witness)
    reader = os.open(witness, os.O_RDONLY | os.O_NONBLOCK)
    options = {"env": with_tests(), "stderr": subprocess.PIPE, "text": True}
    try:
        with started(code, witness, kind, **options) as process:
            for _ in range(2):
                assert next_word(reader) == b"x"
            strike(process.pid, blow)
            # The pipe ends when nobody holds it any more.
            assert next_word(reader) == b""
            told = process.communicate(timeout=LIMIT)[1]
            assert process.returncode == ends, told
            assert "Traceback" not in told
    finally:
        os.close(reader)


def next_word(reader):
    found, _, _ = select.select([reader], [], [], LIMIT)
    assert found, "a worker computes on"
    return os.read(reader, 1)


RECIPE = """method = "rona"
purpose = "benchmark"
[data]
source = "digits"
public = "1/2"
test_is_public = true
declared_size = 700
[features]
name = "pixels"
full_scale = 16
[engine]
workers = 2
[rona]
student = "mlp"
auxiliary = "mlp"
self_epochs = 5000
auxiliary_epochs = 5000
hint_epochs = 1
hint_layer = 1
guided_layer = 1
[privacy]
epsilon = 3
"""


@pytest.mark.slow
@pytest.mark.parametrize(("blow", "ends"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_the_installed_command_leaves_no_process(tmp_path, blow, ends):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    env = {**with_tests(), "STILLROOM_HOME": str(tmp_path / "home")}
    words = ["release", str(tmp_path / "recipe.toml"), "-o", str(tmp_path / "out")]
    assert stillroom(tmp_path, *words, env=env).returncode == 2
    budget = ["--epsilon", "3", "--reason", "a test"]
    made = ["ledger", "budget", "set", str(tmp_path / "ledger.sqlite"), *budget]
    assert stillroom(tmp_path, *made, env=env).returncode == 0
    with started(COMMAND_LINE, *words, env=env, stderr=subprocess.PIPE) as process:
        wait_for(lambda: len(list((tmp_path / "home").rglob("*.passes"))) == 2, process)
        assert len(session_of(process.pid)) > 2
        process.send_signal(blow)
        process.wait(LIMIT)
        wait_for(lambda: session_of(process.pid) in ([], [process.pid]), None)
        assert process.returncode == ends


def session_of(leader):
    """The processes of a session that are alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[3]) == leader and words[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def wait_for(happened, process):
    until = time.monotonic() + LIMIT
    while not happened():
        assert time.monotonic() < until, "it does not happen"
        assert process is None or process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.05)
