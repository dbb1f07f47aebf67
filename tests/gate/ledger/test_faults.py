"""Every system call of a ledger's life fails once, and is the last one once; the ledger stays true.

Watched are the ledger, its key, its drafts and locks, and the register with its key, while a ledger
is made, gets a budget, admits records, reserves, draws and commits.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from drawing import drawn
from gate.ledger.tracing import ALL, CHANGING, SUPPORTED, Ended, traced
from stillroom.errors import StillroomError
from stillroom.gate import Budget, Gate, Ledger, NoisyVotes
from stillroom.gate.entropy import Entropy
from stillroom.gate.ledger import verify
from stillroom.gate.ledger.register import Register
from stillroom.vocabulary import Bounded

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="system calls are traced on Linux, x86-64")

IDS = ["a", "b"]
VOTES = NoisyVotes(teachers=5, classes=3, sigma=100)
BUDGET = Budget(2.0, 1e-5)
VALUE = Bounded(np.array([[3, 1, 1]]), VOTES.sensitivity)
REFUSED = (2, 4)
DREW = b"drew\n"


class Life:
    """A ledger in a folder of its own, which can be put back to the beginning of each stage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "watched"
        self.path = self.folder / "ledger.sqlite"
        self.diary = folder / "diary"
        self._kept = folder / "kept"

    def make(self) -> None:
        Ledger.create(self.path, ids=IDS).close()

    def budget(self) -> Callable[[], object]:
        ledger = Ledger.open(self.path)
        return lambda: ledger.set_budget(BUDGET, reason="a test")

    def admit(self) -> Callable[[], object]:
        ledger = Ledger.open(self.path)
        return lambda: Gate(ledger, ids=[*IDS, "a new one"])

    def reserve(self) -> Callable[[], object]:
        gate = Gate(Ledger.open(self.path), ids=IDS)
        return lambda: gate.reserve(VOTES, 2, recipe="a run")

    def draw(self) -> Callable[[], object]:
        (way,) = Gate(Ledger.open(self.path), ids=IDS).reopen("a run").values()
        real = Entropy.octets

        def witnessed(entropy: Entropy, count: int) -> bytes:
            with self.diary.open("ab", buffering=0) as diary:
                diary.write(DREW)
            return real(entropy, count)

        # The real class and no other, for any other's noise is priced at infinity.
        Entropy.octets = witnessed
        return lambda: drawn(way, VALUE)

    def begin(self, stage: str) -> None:
        """Make all that comes before a stage, and keep it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self._kept, ignore_errors=True)
        self.folder.mkdir()
        if stage != "create":
            self.make()
        for earlier in STAGES[1 : STAGES.index(stage)]:
            getattr(self, earlier)()()
        shutil.copytree(self.folder, self._kept)

    def again(self) -> None:
        """Back to the beginning of the stage."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder)
        self.diary.write_bytes(b"")

    def run(self, stage: str, **fault: int) -> Ended:
        """The stage in a child of its own, with a fault."""
        self.again()

        def prepare() -> Callable[[], int]:
            action = self.make if stage == "create" else getattr(self, stage)()

            def told() -> int:
                try:
                    action()
                except StillroomError as error:
                    return error.exit_code
                except BaseException:
                    traceback.print_exc()
                    return 1
                return 0

            return told

        return traced(prepare, self.folder, **fault)


STAGES = ("create", "budget", "admit", "reserve", "draw")


@pytest.fixture
def life(monkeypatch) -> Iterator[Life]:
    """In memory where there is such a folder: what a death leaves is the same, and it is quick."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.setenv("STILLROOM_HOME", f"{folder}/watched/home")
        yield Life(Path(folder))


def kinds(ledger: Ledger) -> Counter[str]:
    return Counter(row.kind for row in ledger.store.rows())


def check(life: Life, stage: str, code: int) -> None:
    """What holds after every fault."""
    drew = life.diary.read_bytes().count(DREW)
    if life.path.exists():
        ledger = Ledger.open(life.path)
        verify(ledger)  # with its key: the chain, the fingerprints, the draws and the prices
        assert ledger.recognises(IDS)
        rows = kinds(ledger)
        # Nothing is drawn without its row and its block on disk.
        assert drew <= rows["draw"] <= 1
        assert rows["commit"] <= drew
        seen = Register().head(ledger.id)
        assert seen is None or ledger.store.contains(seen)
        wanted = {"budget": "budget", "reserve": "block", "draw": "commit"}.get(stage)
        if code == 0 and wanted:
            assert rows[wanted] == 1  # what was said to be done is on disk
    else:
        assert stage == "create"
        assert code != 0
        assert drew == 0
        # Another may use these records: a ledger that never was holds none of them.
        ledger = Ledger.create(life.path, ids=IDS)
    goes_on(ledger)
    hidden = [file.name for file in life.folder.rglob(".*")]
    assert hidden == []


def goes_on(ledger: Ledger) -> None:
    """The next run finds what was paid for, or pays, and draws."""
    if not ledger.budgets():
        ledger.set_budget(BUDGET, reason="a test")
    gate = Gate(ledger, ids=IDS)
    paid = gate.reopen("a run") or gate.reserve_all({"wish 1": (VOTES, 2)}, recipe="a run")
    (way,) = paid.values()
    assert way.left == 2 - kinds(ledger)["draw"]
    drawn(way, VALUE)
    ledger.store.check_chain()
    ledger.close()


def every_fault(life: Life, stage: str, fails: set[str], *, quick: bool) -> Counter[str]:
    """Count how the stage ended under each fault, checked after every one.

    Args:
        life: the ledger.
        stage: what is done to it.
        fails: names of the calls that are to fail.
        quick: of equal calls in a row only the last one, and none on SQLite's shared memory, which
            is made anew whenever it is missing.
    """
    life.begin(stage)
    calm = life.run(stage)
    assert calm.code == 0
    check(life, stage, 0)
    ended: Counter[str] = Counter()
    for number, call in enumerate(calm.calls):
        repeated = call in calm.calls[number + 1 : number + 2]
        if quick and (repeated or "-shm" in call.file):
            continue
        if call.name in fails:
            failed = life.run(stage, fails=number)
            assert failed.code in (0, *REFUSED), f"{stage}: call {number}, {call}"
            check(life, stage, failed.code)
            ended["went on" if failed.code == 0 else "refused"] += 1
        if call.name in CHANGING:
            died = life.run(stage, dies=number)
            assert died.code == -signal.SIGKILL
            check(life, stage, died.code)
            ended["died"] += 1
    print(stage, dict(ended))
    return ended


def _marked(stage):
    """The two that take longest are slow tests."""
    return pytest.param(stage, marks=pytest.mark.slow if stage in ("create", "admit") else ())


@pytest.mark.parametrize("stage", [_marked(stage) for stage in STAGES])
def test_every_change_on_disk_fails_once_and_is_the_last_once(life, stage):
    ended = every_fault(life, stage, CHANGING, quick=True)
    assert ended["refused"] >= 8
    assert ended["died"] >= 10


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_every_system_call_fails_once_and_is_the_last_once(life, stage, counted):
    ended = every_fault(life, stage, ALL, quick=False)
    counted("system calls of a ledger that failed once", ended["refused"] + ended["went on"])
    counted("system calls of a ledger that were the last", ended["died"])
    assert ended["refused"] > 60
    assert ended["died"] > 20
