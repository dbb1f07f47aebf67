"""Commands run under `watch.py`: what they told the network, and what they left on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import stillroom
from processes import with_tests

PACKAGE = Path(stillroom.__file__).parent
CACHES = (".pyc", ".nbi", ".nbc")
"""What Python and numba keep beside sources, whoever runs them first."""

# What a user has decided decides for the commands as well; here nobody has.
DECISIONS = ("XDG_", "STILLROOM_", "ORT_", "RAY_", "DASK_", "NUMBA_", "TORCH", "MPL", "JOBLIB_")


@dataclass(frozen=True)
class Seen:
    """What came of a command: paths below its own folder begin with here/ or home/."""

    code: int
    printed: str
    sent: list[str]
    written: set[str]


def watched(folder: Path, *command: object, **environment: str) -> Seen:
    """Run a command in `folder`/here with a fresh home; skip where that cannot be watched."""
    if fault := _cannot():
        pytest.skip(f"no namespace of its own for a process here: {fault}")
    places = {name: folder / name for name in ("here", "home")}
    for place in places.values():
        place.mkdir(exist_ok=True)
    before, installed = _files(folder), _installed()
    report = folder / "report.json"
    own = {k: v for k, v in with_tests().items() if not k.startswith(DECISIONS)}
    own |= {"HOME": str(places["home"]), "TMPDIR": "/tmp", **environment}
    done = subprocess.run(
        _under_watch(report, folder, *map(str, command)),
        cwd=places["here"],
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout
    told = json.loads(report.read_text())
    report.unlink()
    new = {str(path.relative_to(folder)) for path in _files(folder) - before}
    new |= {str(path) for path in _installed() - installed}
    return Seen(told["code"], done.stdout, told["sent"], new | set(told["written"]))


def _under_watch(report: Path, folder: Path, *command: str) -> list[str]:
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    program = [sys.executable, str(Path(__file__).with_name("watch.py")), str(report)]
    needed = {folder, Path(sys.prefix), Path(sys.base_prefix), PACKAGE.parent}
    needed |= {Path(__file__).parents[1], *(Path(p) for p in sys.path if os.path.isdir(p))}
    kept = map(str, sorted(path.resolve() for path in needed))
    return ["unshare", *rights, "--net", "--mount", *program, *kept, "--", *command]


@cache
def _cannot() -> str:
    """Why a process cannot be given a network and folders of its own here; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder).resolve() / "report.json"
        try:
            done = subprocess.run(
                _under_watch(report, report.parent, sys.executable, "-c", ""),
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            return str(error)
        return "" if report.exists() else done.stderr.strip().rpartition("\n")[2]


def _files(folder: Path) -> set[Path]:
    return {Path(place, name) for place, _, names in os.walk(folder) for name in names}


def _installed() -> set[Path]:
    found = _files(Path(sys.prefix)) | _files(PACKAGE)
    return {path for path in found if CACHES[0] not in path.name and path.suffix not in CACHES}
