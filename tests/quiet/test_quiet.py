"""No command asks or tells anything outside, and none writes where SECURITY does not say."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from quiet.watching import watched

pytest.importorskip("onnxruntime")
STILLROOM = Path(sys.executable).parent / "stillroom"
EXAMPLE = Path(__file__).parents[2] / "examples" / "direct.toml"

LOUD = """
import socket, sys
from pathlib import Path
try: socket.getaddrinfo("someone.example", 443)
except OSError: pass
for family, host in ((socket.AF_INET, "192.0.2.9"), (socket.AF_INET6, "2001:db8::9")):
    with socket.socket(family) as line:
        try: line.connect((host, 443))
        except OSError: pass
for place in (Path.home(), Path("/tmp"), Path.cwd(), Path("/dev/shm")):
    (place / "left").touch()
"""


def test_the_watch_sees_lookups_connections_and_files(tmp_path):
    seen = watched(tmp_path, sys.executable, "-c", LOUD)
    assert seen.code == 0, seen.printed
    assert seen.sent[:2] == ["asked for someone.example", "sent to 192.0.2.9:443"]
    assert seen.written == {"home/left", "/tmp/left", "here/left", "/dev/shm/left"}


def quiet(seen):
    """What it wrote elsewhere than it was told to, once it is clear that it told nobody."""
    assert seen.code == 0, seen.printed
    assert seen.sent == []
    # Where the package's own folder cannot be written to, numba keeps compiled kernels there.
    expected = ("here/", "home/.cache/numba/")
    return {path for path in seen.written if not path.startswith(expected)}


def test_demo_and_predict_are_quiet(tmp_path):
    assert quiet(watched(tmp_path, STILLROOM, "demo", "-o", "model")) == set()
    made = {path.parent.name for path in (tmp_path / "here").rglob("*") if path.is_file()}
    assert made == {"model", "model.run"}
    assert quiet(watched(tmp_path, STILLROOM, "predict", "model", "digits")) == set()


FIRST = "import stillroom, onnxruntime"
LATE = "import onnxruntime, warnings; warnings.simplefilter('error'); import stillroom"


def test_whoever_imports_the_package_has_silenced_onnxruntime(tmp_path):
    assert quiet(watched(tmp_path, sys.executable, "-c", FIRST)) == set()
    told = watched(tmp_path, sys.executable, "-c", LATE)
    assert told.code == 1
    assert "onnxruntime was imported before stillroom" in told.printed
    assert quiet(watched(tmp_path, sys.executable, "-c", LATE, ORT_DISABLE_TELEMETRY="1")) == set()


LONG = """
import sys, time
from pathlib import Path
import numpy as np
from stillroom.release.predict import predict
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    predict(Path("model"), np.zeros((256, 8, 8)))
    time.sleep(0.2)
"""
HELD = """
{}
import sys, time
time.sleep(float(sys.argv[1]))
"""
LONG_ENOUGH = 25
"""Seconds; onnxruntime 1.31 asks for its host after nine."""


@pytest.mark.slow
def test_release_and_a_long_predict_are_quiet_and_would_not_be_by_themselves(tmp_path):
    (tmp_path / "here").mkdir()
    shutil.copy(EXAMPLE, tmp_path / "here")
    release = [STILLROOM, "release", EXAMPLE.name, "-o", "model"]
    assert watched(tmp_path, *release).code != 0  # makes the ledger, which has no budget yet
    setting = ["budget", "set", "digits-ledger.sqlite", "--epsilon", 3, "--reason", "r"]
    budget = [STILLROOM, "ledger", *setting]
    for command in (budget, release):
        assert all(
            path.startswith("home/.local/share/stillroom/")
            for path in quiet(watched(tmp_path, *command))
        )
    assert quiet(watched(tmp_path, sys.executable, "-c", LONG, LONG_ENOUGH)) == set()
    assert quiet(watched(tmp_path, sys.executable, "-c", HELD.format(FIRST), LONG_ENOUGH)) == set()
    unasked = HELD.format("import onnxruntime")
    loud = watched(tmp_path, sys.executable, "-c", unasked, LONG_ENOUGH, ORT_DISABLE_TELEMETRY="0")
    assert any(told.startswith("asked for ") for told in loud.sent)
    assert any(path.startswith("home/.cache/") for path in loud.written)


WORK = """
import sys
from engine import tasks
from stillroom.engine import Engine, WorkItem, run_all

if __name__ == "__main__":
    units = [WorkItem("a", 0), WorkItem("b", 1)]
    results = run_all(tasks.listeners, units, engine=Engine(sys.argv[1], workers=2))
    print("reachable", [result["reachable"].tolist() for result in results])
"""


@pytest.mark.parametrize(
    ("kind", "package"),
    [
        ("loky", "joblib"),
        pytest.param("ray", "ray", marks=pytest.mark.slow),
        pytest.param("dask", "distributed", marks=pytest.mark.slow),
    ],
)
def test_engines_are_quiet_and_listen_for_this_machine_alone(kind, package, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (tmp_path / "work.py").write_text(WORK)
    seen = watched(tmp_path, sys.executable, tmp_path / "work.py", kind)
    assert quiet(seen) == set()
    assert "reachable [[], []]" in seen.printed
