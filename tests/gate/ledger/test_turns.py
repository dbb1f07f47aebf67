"""Two processes at one ledger, interleaved at every lock boundary: listed schedules, no clock."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from drawing import drawn
from gate.ledger.turns import play, schedules, stops_alone
from stillroom.gate import Budget, Gate, Ledger, NoisyVotes
from stillroom.gate.entropy import Entropy
from stillroom.gate.ledger import verify
from stillroom.gate.ledger.blocks import PricedBlock
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import Bounded

IDS = ["a", "b"]
VOTES = NoisyVotes(teachers=5, classes=3, sigma=100)
VALUE = Bounded(np.array([[3, 1, 1]]), VOTES.sensitivity)
SMALL, LARGE = Budget(0.01, 1e-5), Budget(2.0, 1e-5)

Prepare = Callable[[], Callable[[], object]]


class Stage:
    """A folder that is put back to its beginning before every schedule."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "played"
        self.diary = folder / "diary"
        self._kept = folder / "kept"
        self.folder.mkdir()
        self.path = self.folder / "ledger.sqlite"
        self.copy = self.folder / "copy.sqlite"

    def keep(self) -> None:
        shutil.copytree(self.folder, self._kept)

    def again(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder)
        self.diary.write_bytes(b"")

    def make_copies(self) -> None:
        for suffix in ("", ".key"):
            shutil.copy(f"{self.path}{suffix}", f"{self.copy}{suffix}")

    def played(
        self, first: Prepare, second: Prepare, every: int = 1
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """All schedules of two processes, or every n-th and those in which the second comes to
        its end in the middle of the first; and how the two ended."""
        self.keep()
        stops = []
        for player in (first, second):
            self.again()
            stops.append(stops_alone(player))
        for number, schedule in enumerate(schedules(max(stops))):
            if number % every == 0 or schedule[1] == max(stops):
                self.again()
                yield schedule, play(first, second, *schedule)

    def drew(self) -> int:
        return self.diary.read_bytes().count(b"drew\n")


@pytest.fixture
def stage(monkeypatch) -> Iterator[Stage]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.setenv("STILLROOM_HOME", f"{folder}/played/home")
        yield Stage(Path(folder))


def made(stage: Stage, budget: Budget = LARGE) -> Gate:
    PricedBlock({"votes": (VOTES, 2)}, "os", [1e-5])  # children inherit the arithmetic
    ledger = Ledger.create(stage.path, ids=IDS)
    ledger.set_budget(budget, reason="a test")
    return Gate(ledger, ids=IDS)


def gate_at(path: Path) -> Gate:
    """A gate that was open before: making one would be the first to meet the register."""
    gate = Gate.__new__(Gate)
    gate.ledger, gate._entropy = Ledger.open(path), Entropy()
    return gate


def reserving(path: Path) -> Prepare:
    def prepare() -> Callable[[], object]:
        gate = gate_at(path)
        return lambda: gate.reserve(VOTES, 2, recipe="a run")

    return prepare


def drawing(path: Path, diary: Path) -> Prepare:
    def prepare() -> Callable[[], object]:
        (way,) = gate_at(path).reopen("a run").values()
        real = Entropy.octets

        def witnessed(entropy: Entropy, count: int) -> bytes:
            with diary.open("ab", buffering=0) as file:
                file.write(b"drew\n")
            return real(entropy, count)

        # The real class and no other, for any other's noise is priced at infinity.
        Entropy.octets = witnessed
        return lambda: drawn(way, VALUE)

    return prepare


def rows(path: Path) -> Counter[str]:
    store = Store(path, read_only=True)
    counted = Counter(row.kind for row in store.rows())
    store.close()
    return counted


def only_one_went_on(stage: Stage, codes: tuple[int, int], kind: str) -> None:
    assert sorted(codes) == [0, 4]
    winner, loser = (stage.path, stage.copy) if codes[0] == 0 else (stage.copy, stage.path)
    assert (rows(winner)[kind], rows(loser)[kind]) == (1, 0)
    ledger = Ledger.open(winner)
    verify(ledger)
    assert Register().head(ledger.id) == ledger.head()
    ledger.close()


@pytest.mark.slow
def test_of_two_copies_only_one_reserves(stage):
    made(stage).ledger.close()
    stage.make_copies()
    seen = 0
    for _, codes in stage.played(reserving(stage.path), reserving(stage.copy)):
        only_one_went_on(stage, codes, "block")
        seen += 1
    assert seen >= 30


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_of_two_copies_of_a_paid_block_only_one_draws_and_commits(stage, every):
    gate = made(stage)
    gate.reserve(VOTES, 2, recipe="a run")
    gate.ledger.close()
    stage.make_copies()
    players = [drawing(path, stage.diary) for path in (stage.path, stage.copy)]
    seen = 0
    for _, codes in stage.played(*players, every=every):
        only_one_went_on(stage, codes, "commit")
        assert stage.drew() == 1
        seen += 1
    assert seen >= 100 // every


def creating(path: Path) -> Prepare:
    return lambda: lambda: Ledger.create(path, ids=IDS).close()


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", ["ledger.sqlite", "other.sqlite"], ids=["one place", "two"])
def test_of_two_first_runs_one_makes_the_ledger(stage, place, every):
    seen = 0
    second = stage.folder / place
    for _, codes in stage.played(creating(stage.path), creating(second), every=every):
        assert sorted(codes) == [0, 2]
        winner = stage.path if codes[0] == 0 else second
        made_here = {file.name for file in stage.folder.iterdir() if file.name != "home"}
        assert made_here == {winner.name, f"{winner.name}.key"}
        ledger = Ledger.open(winner)
        verify(ledger)  # with its key
        assert ledger.recognises(IDS)
        ledger.close()
        seen += 1
    assert seen >= 100 // every


def budgeting(path: Path) -> Prepare:
    def prepare() -> Callable[[], object]:
        ledger = Ledger.open(path)
        return lambda: ledger.set_budget(LARGE, reason="raised")

    return prepare


def test_a_reservation_meets_the_budget_before_or_after_it_is_raised(stage):
    made(stage, SMALL).ledger.close()
    codes_seen: Counter[tuple[int, int]] = Counter()
    for _, codes in stage.played(budgeting(stage.path), reserving(stage.path)):
        codes_seen[codes] += 1
        ledger = Ledger.open(stage.path)
        verify(ledger)  # each block against the budget of its time
        kinds = [row.kind for row in ledger.store.rows("kind IN ('budget', 'block')")]
        assert kinds == ["budget", "budget", *(["block"] if codes[1] == 0 else [])]
        ledger.close()
    assert codes_seen.keys() == {(0, 0), (0, 3)}
    assert sum(codes_seen.values()) >= 30
