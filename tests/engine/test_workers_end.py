"""Workers end with the process that started them, however that one ends."""

from __future__ import annotations

import importlib.util
import os
import select
import signal
import subprocess

import pytest

from processes import started, with_tests

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

ENDS = {
    "a command, SIGTERM": (COMMAND, os.kill, signal.SIGTERM, 143),
    "a command, SIGHUP": (COMMAND, os.kill, signal.SIGHUP, 129),
    "a command, Ctrl-C": (COMMAND, os.killpg, signal.SIGINT, 130),
    "a command, kill -9": (COMMAND, os.kill, signal.SIGKILL, -9),
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
