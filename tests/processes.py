"""Processes that tests start: ended and reaped whatever happens, also when an assertion fails.

One that is left behind fails some innocent test later, when its pipes are collected as garbage.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""First line of a child that is to be interrupted.

A suite started in the background of a shell script, or by some runners, has SIGINT ignored; its
children inherit that, and Python then leaves the signal ignored. The handler set here also gives
the child's own workers the usual behaviour: only "ignored" survives the start of a program.
"""


COMMAND = "import sys; from stillroom.cli import main; sys.argv[0] = 'stillroom'; main()"
"""The command, as `stillroom` starts it."""


def stillroom(place: Path, *words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with its exit code and what it said."""
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=place, env=env, capture_output=True, text=True
    )


def with_tests() -> dict[str, str]:
    """This environment, in which children find the modules of the tests as well."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def started(code: str, *words, **options) -> Iterator[subprocess.Popen]:
    """A Python program that can be interrupted, in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE + code, *map(str, words)],
        start_new_session=True,
        **options,
    )
    with process:  # closes its pipes and reaps it
        try:
            yield process
        finally:
            # A killed parent leaves its workers behind; they are ours to end.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
