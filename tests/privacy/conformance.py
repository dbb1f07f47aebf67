"""What every mechanism must pass, and what every broken twin of one must fail.

`check_law`, `check_price`, `check_grid` and `check_rows` take a `Case` and raise for a mechanism
that does not do what it charges for. `check_law` rejects a right mechanism with a probability of
at most 1e-7; the others never do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from drawing import drawn
from stillroom.gate import Budget, Gate, Ledger, Mechanism
from stillroom.gate.accounting import pairs_of, price
from stillroom.gate.entropy import Entropy
from stillroom.gate.passage import Passage
from stillroom.vocabulary import Bounded, Pair

FALSE_ALARM = 1e-7
DRAWS = 60_000
DELTAS = (1e-3, 1e-5, 1e-8)

Worlds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A mechanism, a value, and the truth about it from first principles.

    Args:
        mechanism: the mechanism under test, or a twin.
        value: one row.
        statistic: answers -> integers whose law is known.
        law: the exact probabilities of the statistic, for the mechanism as it is described.
        worlds: for each pair, the joint laws of one noisy row (before any post-processing) in two
            worlds that differ as far as the pair allows.
        passage: the way through the gate; a twin may have a broken one.
        draws: how many are compared with the law.
    """

    mechanism: Mechanism
    value: np.ndarray
    statistic: Callable[[np.ndarray], np.ndarray]
    law: dict[int, float]
    worlds: Callable[[Pair], Worlds]
    passage: type[Passage] = Passage
    draws: int = DRAWS

    @property
    def is_sum(self) -> bool:
        return self.mechanism.one_row


def new_ledger(folder: Path) -> Ledger:
    """A ledger that lets anything pass: what is checked here is the mechanism."""
    name = f"{len(list(folder.glob('*.sqlite')))}.sqlite"
    ledger = Ledger.create(folder / name, ids=["a"], purpose="audit")
    ledger.set_budget(Budget(1e9, 1e-5), reason="conformance")
    return ledger


def answers_of(case: Case, ledger: Ledger, rows: int, entropy: Entropy | None = None) -> np.ndarray:
    """`rows` answers to the case's value by the real door."""
    gate = Gate(ledger, ids=["a"], entropy=entropy)
    way = gate.reserve(case.mechanism, rows, accept_infinite=True)
    way.__class__ = case.passage
    proven = case.mechanism.sensitivity
    if not case.is_sum:
        return drawn(way, Bounded(np.repeat(case.value, rows, axis=0), proven)).value
    answers = []
    for _ in range(rows):
        secret = way.poisson() if way.mechanism.rate < 1 else None
        kept = 1 if secret is None else int(secret.open_secret(1)[0])
        answers.append(drawn(way, Bounded(case.value * kept, proven, secret)).value)
    return np.concatenate(answers)


def check_law(case: Case, folder: Path) -> None:
    """The noise really drawn has the law that is described: chi-square, so too much fails too."""
    if case.is_sum:
        # Sums pass the door one by one; their sampler is tested on many rows at once.
        answers = case.mechanism.draw(Entropy(), np.repeat(case.value, case.draws, axis=0), 1)
    else:
        answers = answers_of(case, new_ledger(folder), case.draws)
    seen = case.statistic(answers)
    bins = [x for x, p in case.law.items() if p * case.draws >= 20]
    expected = np.array([case.law[x] * case.draws for x in bins])
    observed = np.array([(seen == x).sum() for x in bins])
    # Everything else goes into one more bin, never expected to be quite empty.
    expected = np.append(expected, max(case.draws - expected.sum(), 1.0))
    observed = np.append(observed, case.draws - observed.sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    p = stats.chi2.sf(statistic, len(expected))
    assert p > FALSE_ALARM, f"the noise does not have its law (p = {p:.1e})"


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    """The exact delta at epsilon between two laws on the same outcomes."""
    return float(np.maximum(first - np.exp(epsilon) * second, 0).sum())


def check_price(case: Case, folder: Path) -> None:
    """What is charged covers what really happens, for every pair that is claimed."""
    lines = case.mechanism.lines(1)
    assert pairs_of(lines), "nothing is claimed"
    for pair in pairs_of(lines):
        first, second = case.worlds(pair)
        for delta in DELTAS:
            epsilon = price(lines, pair).epsilon(delta)
            for one, other in ((first, second), (second, first)):
                true = hockey_stick(one, other, epsilon)
                assert true <= delta * (1 + 1e-9), f"{pair}: delta {true:.2e} at {epsilon:.3f}"


def check_grid(case: Case, folder: Path) -> None:
    """Answers are integers on one public grid, whatever the data are."""
    for value in (case.value, (case.value + 1) % 7, (3 * case.value + 2) % 7):
        answers = case.mechanism.draw(Entropy(), np.repeat(value, 4000, axis=0), 4000)
        assert answers.dtype == np.int64, "the answers are not integers"
        steps = np.abs(answers - answers[0]).ravel()
        assert np.gcd.reduce(steps) == 1, "the grid depends on the data"


class WatchedEntropy(Entropy):
    """Randomness that refuses to be used while no draw is open in the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.uses = 0

    def octets(self, count: int) -> bytes:
        rows = list(self.ledger.store.rows("kind IN ('draw', 'commit')"))
        open_draws = sum(1 if row.kind == "draw" else -1 for row in rows)
        assert open_draws == 1, "noise was drawn without its row"
        self.uses += 1
        return super().octets(count)


def check_rows(case: Case, folder: Path) -> None:
    """No noise without its row on disk, and as many answers as the rows say."""
    ledger = new_ledger(folder)
    entropy = WatchedEntropy(ledger)
    answers = answers_of(case, ledger, 5, entropy)
    draws = list(ledger.store.rows("kind = 'draw'"))
    assert entropy.uses > 0
    assert sum(row.body["count"] for row in draws) == len(answers) == 5
    commits = [row.body["draw"] for row in ledger.store.rows("kind = 'commit'")]
    assert commits == [row.seq for row in draws]


CHECKS = (check_law, check_price, check_grid, check_rows)
