"""An ensemble that is asked again after a crash: equal bytes, and what is lost stays lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from processes import with_tests
from sources.ensemble.ensembles import (
    GATED,
    HINTED,
    LITTLE,
    NOISE,
    PLAN,
    Source,
    again,
    changed,
    drawn,
    paid,
    wishes,
)
from stillroom.errors import BadInput
from stillroom.gate.ledger import verify
from stillroom.sources.teachers import VOTES

AGREED = changed(GATED, threshold="1/30", votes=30)
"""All agree on everything: the cap ends it, in the second question."""
SECTIONS = {"hinted": HINTED, "gated": AGREED}

DOOMED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from sources.ensemble import test_replay
from sources.ensemble.ensembles import SERIAL, TEACHERS, Source
from stillroom.data import Split, digits
from stillroom.gate import Gate, Ledger
from stillroom.private import Ensemble

path, kind, moment, number, given, said = sys.argv[1:]
split = Split.by_fraction(digits(), key="rona", public="1/4", test=0)
teachers = Ensemble.train(split.sensitive, None, TEACHERS, engine=SERIAL)
passages = Gate(Ledger.open(path), ids=split.sensitive.ids).reopen("this run")
source = Source(test_replay.SECTIONS[kind], teachers, passages, split)
honest, count = Ledger.commit_draw, 0

def commit(self, block, draw, answers, *rest):
    global count
    count += 1
    if count == int(number) and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    honest(self, block, draw, answers, *rest)
    with open(said, "ab") as file:
        file.write(answers.tobytes())
    if count == int(number):
        os.kill(os.getpid(), signal.SIGKILL)

Ledger.commit_draw = commit
test_replay.ask(source, split.public.x[:60], np.load(given).values())
"""


class Whole(Source):
    """Keeps what the gate says, to the bit."""

    def __init__(self, *given):
        super().__init__(*given)
        self.said = b""

    def _ask(self, *given):
        found = super()._ask(*given)
        self.said += b"".join(noisy.value.tobytes() for noisy in found)
        return found


def ask(source, x, hinted):
    """Hints where there are some, and votes in two rounds: chunks of 25 and 15, 25 and 15, 20."""
    told = [source.hints(*hinted)] if source._hints else []
    return [*told, *(part for some in (x[:40], x[40:]) for part in scores(source, some))]


def scores(source, x):
    told = source.scores(x)
    return told.answered, told.values


@pytest.mark.parametrize(
    ("kind", "moment", "number", "lost"),
    [
        ("hinted", "after", 1, (0, 0)),  # in the middle of the hints
        ("hinted", "before", 2, (0, 15)),
        ("hinted", "after", 3, (0, 0)),  # in the middle of the votes
        ("hinted", "before", 3, (25, 0)),
        ("hinted", "before", 5, (20, 0)),
        ("gated", "after", 1, (0, 0)),
        ("gated", "before", 1, (25, 0)),
        ("gated", "before", 2, (15, 0)),
    ],
)
def test_a_killed_run_goes_on_with_equal_bytes(
    split, ensemble, ledger, x, hinted, tmp_path, kind, moment, number, lost
):
    section = SECTIONS[kind]
    paid(ledger, split, wishes(section, NOISE if kind == "hinted" else LITTLE))
    given, said = tmp_path / "hinted.npz", tmp_path / "said"
    np.savez(given, *hinted)
    words = (ledger.path, kind, moment, number, given, said)
    command = [sys.executable, "-c", DOOMED, *map(str, words)]
    done = subprocess.run(command, env=with_tests(), timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    before = said.read_bytes() if said.exists() else b""
    runs = []
    for _ in range(2):
        source = Whole(section, ensemble, again(ledger, split), split)
        runs.append((ask(source, x, hinted), source.said))
        assert source.said.startswith(before)
    # What was answered after the crash is replayed as well.
    (first, bytes_of_first), (second, bytes_of_second) = runs
    assert bytes_of_first == bytes_of_second
    assert (bytes_of_first == before) == ((number, lost) in ((5, (20, 0)), (2, (15, 0))))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    if kind == "hinted":
        targets, *told = first
        assert (len(targets), sum(map(len, told[::2]))) == (40 - lost[1], 60 - lost[0])
        assert (drawn(ledger), drawn(ledger, 1), source.left) == (60, 40, 0)
    else:
        # A lost question has used up as many answers of the cap as it could have given.
        answered = [row.body["answered"] for row in ledger.store.rows("kind = 'commit'")]
        earlier = 0 if number == 1 else answered[0]
        assert sum(map(len, first[::2])) == sum(answered)
        assert sum(answered) + min(lost[0], 30 - earlier) == 30
        assert source.left == 0
    verify(ledger)


def test_a_lost_answer_stays_lost(split, ensemble, ledger, x):
    passages = paid(ledger, split, wishes(PLAN, NOISE))
    source = Source(PLAN, ensemble, passages, split)
    first = source.scores(x[:25]).values
    passages[VOTES]._begin(25)  # a crash between the row and the answer
    for _ in range(2):
        source = Source(PLAN, ensemble, again(ledger, split), split)
        assert source.left == 35
        assert np.array_equal(source.scores(x[:25]).values, first)
        assert source.left == 10, "new ones, and then those that wait to be asked for again"
        told = source.scores(x)
        assert (len(told.answered), source.left) == (35, 0)
        assert drawn(ledger) == 60
    assert np.array_equal(told.values[:25].argmax(axis=1), first.argmax(axis=1))


def other_queries(x):
    """All that a continued run may ask otherwise in its first question."""
    changed_pixel = x.copy()
    changed_pixel[3, 0, 0] += 1
    return {
        "another order": x[::-1],
        "another pixel": changed_pixel,
        "later ones": x[1:],
        "fewer": x[:20],
        "another type": x.astype(np.float64),
        "groups": x,
    }


@pytest.mark.parametrize("kind", other_queries(np.zeros((60, 8, 8))))
def test_a_continued_run_that_asks_otherwise_is_refused(split, ensemble, ledger, x, kind):
    """Nothing is drawn, and no answer is taken for an answer to something else."""
    source = Source(PLAN, ensemble, paid(ledger, split, wishes(PLAN, NOISE)), split)
    values = source.scores(x[:40]).values
    source = Source(PLAN, ensemble, again(ledger, split), split)
    other = other_queries(x)[kind]
    groups = np.arange(60) // 2 if kind == "groups" else None
    with pytest.raises(BadInput, match="another question than it did before"):
        source.scores(other, groups)
    assert drawn(ledger) == 40
    assert np.array_equal(source.scores(x[:40]).values, values), "they are still there"
    assert (source.left, drawn(ledger)) == (20, 40)


def test_teachers_of_another_section_are_another_question(split, ensemble, ledger, x):
    source = Source(PLAN, ensemble, paid(ledger, split, wishes(PLAN, NOISE)), split)
    source.scores(x[:40])
    warm = Source(changed(PLAN, temperature=3.0), ensemble, again(ledger, split), split)
    with pytest.raises(BadInput, match="another question than it did before"):
        warm.scores(x[:40])
    assert drawn(ledger) == 40
