"""The installed command, run as a user runs it: seconds, seconds of processor time, and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STILLROOM = Path(sys.executable).with_name("stillroom")


@dataclass(frozen=True)
class Taken:
    """What a command took.

    Args:
        seconds: from its start to its end; other work on the machine makes them more.
        cpu_seconds: of all its processes, user and system.
        peak_mb: the most memory of its largest process.
        lines: what it said on stderr, each with the seconds since its start.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: int
    lines: tuple[tuple[float, str], ...]


def taken_by(words: Sequence[object], home: Path, to: Path, code: int = 0) -> Taken:
    """Run `stillroom` with these words.

    Args:
        words: of the command.
        home: its data home.
        to: the file for what it prints.
        code: how it should end.

    Raises:
        RuntimeError: it ended otherwise.
    """
    lines: list[tuple[float, str]] = []
    start = time.perf_counter()
    with (
        to.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-S", __file__, STILLROOM, *map(str, words)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "STILLROOM_HOME": str(home)},
        ) as child,
    ):
        assert child.stderr is not None
        for line in child.stderr:
            lines.append((round(time.perf_counter() - start, 1), line.rstrip()))
    seconds, used = time.perf_counter() - start, json.loads(lines.pop()[1])
    if used["code"] != code:
        said = "\n".join(line for _, line in lines)
        raise RuntimeError(f"stillroom {' '.join(map(str, words))}: {said}")
    return Taken(seconds, used["cpu_seconds"], used["peak_mb"], tuple(lines))


def _run_and_report() -> None:
    """Run what is named, and say on stderr what it took.

    In a small process of its own: memory of whoever starts a program counts as the program's.
    """
    child = subprocess.Popen(sys.argv[1:])
    _, status, used = os.wait4(child.pid, 0)
    told = {
        "code": os.waitstatus_to_exitcode(status),
        "cpu_seconds": used.ru_utime + used.ru_stime,  # with those of processes it has waited for
        "peak_mb": round(used.ru_maxrss / 1024),
    }
    print(json.dumps(told), file=sys.stderr)


if __name__ == "__main__":
    _run_and_report()
