"""A hostile file, and a runner that lets nothing it does outlive it.

The runner is one process that has loaded everything and forks once per case: a case may hang, fill
the memory or die without harm to the next. Started as a file it serves cases; imported it asks.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

MOST_MEGABYTES = 1000
MOST_SECONDS = 10
"""Of processor time, which does not depend on what else the machine does."""
_MOST_WAITING = 120
_ROOM = 4 << 30


@dataclass(frozen=True)
class Case:
    """One hostile file and how `stillroom` must end on it.

    Args:
        name: unique in its module.
        build: makes files in an empty folder, returns the command line after `stillroom`.
        code: the exit code it must end with.
        says: a word its error message must hold.
    """

    name: str
    build: Callable[[Path], list[str]]
    code: int
    says: str = ""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Args:
        code: its exit code; None where a signal or a limit ended it.
        said: what it wrote to both streams.
        seconds: processor time, children included.
        megabytes: the largest process of it.
    """

    code: int | None
    said: str
    seconds: float
    megabytes: float


class Runner:
    """Runs commands of `stillroom`, each in a fork of one warm process.

    Args:
        warm: commands that load what the cases need, run within that process.
    """

    def __init__(self, *warm: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ask({"warm": list(warm)})

    def run(self, words: list[str], folder: Path) -> Ended:
        """Run one command with `folder` as its place and home."""
        return Ended(**self._ask({"words": words, "folder": str(folder)}))

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _ask(self, request: dict) -> dict:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def check(case: Case, ended: Ended) -> None:
    """What holds for every hostile file."""
    assert "Traceback" not in ended.said, ended.said
    assert "internal fault" not in ended.said, ended.said
    assert "Interrupted" not in ended.said, ended.said
    assert ended.code == case.code, ended
    assert case.says in ended.said, ended.said
    if case.code:
        assert "what to do:" in ended.said, ended.said
    assert ended.seconds <= MOST_SECONDS, ended
    assert ended.megabytes <= MOST_MEGABYTES, ended


def _serve() -> None:
    from stillroom.cli import run

    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as said:
            if "warm" in request:
                for words in request["warm"]:
                    _quietly(run, words, said)
                answer = {}
            else:
                answer = asdict(_forked(run, request["words"], request["folder"], said))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _quietly(run: Callable[[list[str]], int], words: list[str], said) -> int:
    """Run a command in this process, both streams into a file."""
    kept = [os.dup(1), os.dup(2)]
    try:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        return run(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, before in zip((1, 2), kept, strict=True):
            os.dup2(before, stream)
            os.close(before)


def _forked(run: Callable[[list[str]], int], words: list[str], folder: str, said) -> Ended:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.chdir(folder)
        os.environ["STILLROOM_HOME"] = str(Path(folder) / "home")
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS + 1, MOST_SECONDS + 2))
        resource.setrlimit(resource.RLIMIT_AS, (_ROOM, _ROOM))
        code = 99
        try:
            code = _quietly(run, words, said)
        finally:
            os._exit(code)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(_MOST_WAITING)
    _, status, used = os.wait4(child, 0)
    signal.alarm(0)
    said.seek(0)
    return Ended(
        code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        said=said.read(100_000).decode(errors="replace"),
        seconds=used.ru_utime + used.ru_stime,
        megabytes=used.ru_maxrss / 1024,
    )


if __name__ == "__main__":
    _serve()
