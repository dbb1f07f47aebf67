"""Eight processes share one ledger and die by kill -9 at every step; the ledger stays true."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Iterable
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest

from drawing import drawn
from stillroom.errors import BudgetExhausted
from stillroom.gate import Budget, ConfidentVotes, Gate, Ledger, NoisyVotes
from stillroom.gate.accounting import price
from stillroom.gate.entropy import Entropy
from stillroom.gate.ledger import verify
from stillroom.gate.ledger.budget import fits, share_spent
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import RECORD, Bounded

PROCESSES = 8
RESERVATIONS = 1000
VOTES = NoisyVotes(teachers=5, classes=3, sigma=25)
QUIET = NoisyVotes(teachers=5, classes=3, sigma=200)
"""So much noise that the budget outlasts every life."""
BUDGET = Budget(epsilon=8.0, delta=1e-5)
STEPS = (
    "before a row",
    "after a row",
    "before the known head",
    "after the known head",
    "before the noise",
    "after the noise",
    "before the commit",
    "after the commit",
)
PASSAGES = (1, 2, 3, 4, 20, 60)
"""Where in a life: at its first rows and heads, one by one, and in the middle of its work."""


class Diary:
    """Lines in a file that survive the death of their writer; one write a line."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._path = path

    def note(self, *words) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())

    def count(self, word: str) -> int:
        return self._path.read_text().count(word)

    def lines(self):
        return [line.split() for line in self._path.read_text().splitlines()]


class Doom:
    """Kills its process, without a word, at the n-th passage of one step."""

    def __init__(self, step: str, passage: int, diary: Diary) -> None:
        self._step, self._left, self._diary = step, passage, diary

    def at(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                self._diary.note("died", STEPS.index(step))
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner, name: str, before: str, after: str) -> None:
        real = getattr(owner, name)

        def doomed(*args, **kwargs):
            self.at(before)
            result = real(*args, **kwargs)
            self.at(after)
            return result

        setattr(owner, name, doomed)


def work(path: Path, diary: Diary, votes: NoisyVotes, step: str, passage: int) -> None:
    """Reserve and draw until enough was tried, or dead."""
    doom = Doom(step, passage, diary)
    doom.around(Store, "append", "before a row", "after a row")
    doom.around(Register, "advance", "before the known head", "after the known head")
    doom.around(Ledger, "commit_draw", "before the commit", "after the commit")
    real = Entropy.octets

    def witnessed(entropy: Entropy, count: int) -> bytes:
        """Notes every use of noise, outside the ledger."""
        doom.at("before the noise")
        drawn = real(entropy, count)
        diary.note("drew", way.block)
        doom.at("after the noise")
        return drawn

    # The real class and no other, for any other's noise is priced at infinity.
    Entropy.octets = witnessed
    gate = Gate(Ledger.open(path), ids=[path.parent.name])
    while diary.count("tried") < RESERVATIONS:
        diary.note("tried")
        try:
            way = gate.reserve(votes, 1)
        except BudgetExhausted:
            diary.note("refused")
            continue
        # Of its own, for the processes share the recipe and would share answers.
        question = b"%d" % way.block
        way.answer(question, lambda: Bounded(np.array([[3, 1, 1]]), votes.sensitivity))


def race(
    path: Path, diary: Diary, dooms: Iterable[tuple[str, int]], votes: NoisyVotes = VOTES
) -> Counter[int]:
    """Eight processes at a time, each with its doom, until none is left; count how they ended."""
    fork = multiprocessing.get_context("fork")  # children inherit the arithmetic
    ended: Counter[int] = Counter()
    coming, living = iter(dooms), {}
    try:
        while True:
            while len(living) < PROCESSES and (doom := next(coming, None)):
                child = fork.Process(target=work, args=(path, diary, votes, *doom))
                child.start()
                living[child.sentinel] = child
            if not living:
                return ended
            for sentinel in wait(list(living)):
                living[sentinel].join()
                child = living.pop(sentinel)
                ended[child.exitcode] += 1
                child.close()
    finally:
        for child in living.values():
            child.kill()
            child.join()
            child.close()


def at_random(diary: Diary):
    """Dooms without end, until enough was tried."""
    chance = random.Random(1)
    while diary.count("tried") < RESERVATIONS:
        yield chance.choice(STEPS), chance.randint(1, max(PASSAGES))


def begun(folder: Path, votes: NoisyVotes = VOTES) -> tuple[Path, Diary]:
    path = folder / "ledger.sqlite"
    ledger = Ledger.create(path, ids=[folder.name])
    ledger.set_budget(BUDGET, reason="crashes")
    price(votes.lines(1), RECORD).epsilon(1e-5)
    ledger.close()
    return path, Diary(folder / "diary")


def stays_true(path: Path, diary: Diary, votes: NoisyVotes = VOTES) -> tuple[Ledger, int]:
    """Check the ledger against the diary; return it and how many blocks were paid for."""
    after = Ledger.open(path)
    verify(after)
    rows = list(after.store.rows())
    blocks = {row.seq for row in rows if row.kind == "block"}
    rows_drawn = Counter(row.block for row in rows if row.kind == "draw")
    witnessed = Counter(int(line[1]) for line in diary.lines() if line[0] == "drew")
    # One answer uses the stream once: no noise without its row, no row without its block.
    assert witnessed.keys() <= rows_drawn.keys() <= blocks
    assert all(witnessed[block] <= rows_drawn[block] == 1 for block in witnessed)
    charged = price(votes.lines(len(blocks)), RECORD)
    drawn = price(votes.lines(len(witnessed)), RECORD)
    (standing,) = after.standing()
    assert drawn.epsilon(1e-5) <= charged.epsilon(1e-5) <= standing.epsilon <= BUDGET.epsilon
    assert share_spent(charged.curve, BUDGET) == pytest.approx(standing.share, rel=1e-9)
    return after, len(blocks)


@pytest.mark.slow
def test_eight_processes_and_kill_9_at_every_step(tmp_path):
    path, diary = begun(tmp_path)
    # While there is budget every block passes every step, so whoever is to die at the n-th
    # passage dies within n blocks. These few blocks fit, whoever is scheduled when.
    dooms = [(step, passage) for passage in PASSAGES for step in STEPS]
    assert race(path, diary, dooms) == {-signal.SIGKILL: len(dooms)}
    deaths = Counter(line[1] for line in diary.lines() if line[0] == "died")
    assert deaths == {str(step): len(PASSAGES) for step in range(len(STEPS))}
    # Then they go on dying, wherever it happens, until the budget is used up and beyond.
    assert race(path, diary, at_random(diary)).keys() <= {0, -signal.SIGKILL}
    words = Counter(line[0] for line in diary.lines())
    assert words["tried"] >= RESERVATIONS
    assert words["refused"] > 0

    after, blocks = stays_true(path, diary)
    # The budget was used up, and not one block more would have fitted.
    one_more = price(VOTES.lines(blocks + 1), RECORD).curve
    assert not fits(one_more, 3 * (blocks + 1), BUDGET)
    with pytest.raises(BudgetExhausted):
        Gate(after, ids=[tmp_path.name]).reserve(VOTES, 1)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path, counted):
    """Sixteen ledgers, each with eight processes that die at every step, early and late."""
    dooms = [(step, passage) for passage in range(1, 9) for step in STEPS]
    ended: Counter[int] = Counter()
    for number in range(16):
        folder = tmp_path / f"ledger {number}"
        folder.mkdir()
        path, diary = begun(folder, QUIET)
        ended += race(path, diary, dooms, QUIET)
        after, blocks = stays_true(path, diary, QUIET)
        Gate(after, ids=[folder.name]).reserve(QUIET, 1)  # the next run goes on
        after.close()
        assert blocks >= len(dooms) // 2
    counted("kills of processes that share a ledger", ended[-signal.SIGKILL])
    assert ended == {-signal.SIGKILL: 16 * len(dooms)}
    assert ended[-signal.SIGKILL] >= 1000


def dies(entropy, count):
    raise KeyboardInterrupt


def test_a_lost_draw_stays_charged_and_is_not_drawn_again(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=["a"])
    ledger.set_budget(BUDGET, reason="a crash")
    way = Gate(ledger, ids=["a"]).reserve(VOTES, 3)
    one = Bounded(np.array([[3, 1, 1]]), VOTES.sensitivity)
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "octets", dies)
        with pytest.raises(KeyboardInterrupt):
            drawn(way, one)
    drawn(way, one)
    drawn(way, one)
    with pytest.raises(BudgetExhausted, match="0 answers left"):
        drawn(way, one)
    rows = list(ledger.store.rows("block IS NOT NULL"))
    assert [row.kind for row in rows] == ["draw", "draw", "commit", "draw", "commit"]


def test_a_lost_confident_draw_counts_as_answered(tmp_path, monkeypatch):
    """Whether the lost questions were answered is not known, so all of them count."""
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=["a"])
    ledger.set_budget(Budget(50.0, 1e-5), reason="a crash")
    mechanism = ConfidentVotes(5, 3, 10, threshold=-500, threshold_sigma=5, most_answers=4)
    way = Gate(ledger, ids=["a"]).reserve(mechanism, 20)
    three = Bounded(np.tile([3, 1, 1], (3, 1)), mechanism.sensitivity)
    with monkeypatch.context() as patch:
        patch.setattr(Entropy, "octets", dies)
        with pytest.raises(KeyboardInterrupt):
            drawn(way, three)
    assert mechanism.answered(drawn(way, three).value) == 1
    assert mechanism.answered(drawn(way, three).value) == 0
