"""Every test has a home of its own, so that no test knows another's ledgers."""

import os
from collections import Counter

import pytest
from hypothesis import settings

# One worker per core, and one thread per worker: more would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The same examples in every run: a suite that fails by chance is not believed when it is right.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture
def counted(record_property):
    """Tells how many faults of a kind a test went through; the last lines add them up."""
    return lambda what, number: record_property(f"counted {what}", number)


def pytest_terminal_summary(terminalreporter):
    counts = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, number in report.user_properties:
            if name.startswith("counted "):
                counts[name.removeprefix("counted ")] += number
    for what, number in sorted(counts.items()):
        terminalreporter.line(f"{number:,} {what}")


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
