"""Ledgers without a file, and sealed records whose ids only the gate sees."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource

import numpy as np
import pytest

from stillroom.data import Dataset
from stillroom.errors import BadInput, BudgetExhausted, DoesNotVerify, WrongData
from stillroom.gate import Budget, Gate, Ledger, NoisyVotes
from stillroom.gate.ledger import export, verify
from stillroom.gate.ledger.exports import rows_of_export
from stillroom.gate.ledger.verify import verify_rows
from stillroom.vocabulary import Bounded, Sealed

VOTES = NoisyVotes(teachers=5, classes=3, sigma=40)
ONE = Bounded(np.array([[3, 1, 1]]), VOTES.sensitivity)
BUDGET = Budget(1.0, 1e-5)


def in_memory(**told) -> Ledger:
    ledger = Ledger.in_memory(**{"ids": ["a", "b"], "purpose": "audit", **told})
    ledger.set_budget(BUDGET, reason="a test")
    return ledger


def sealed(*ids, persons=None) -> Sealed:
    pictures = np.arange(2 * len(ids)).reshape(-1, 2)
    classes = [0] * len(ids)
    return Sealed(Dataset(pictures, classes, classes=("x", "y"), ids=ids, persons=persons))


def spend(ledger: Ledger) -> list:
    """The same work on any ledger, and what it wrote, without what is random."""
    gate = Gate(ledger, ids=["a", "c"])
    way = gate.reserve_all({"votes": (VOTES, 3)}, recipe="a run")["votes"]
    way.answer(b"one", lambda: ONE)
    again = Gate(ledger, ids=["a"]).reopen("a run")["votes"]
    again.answer(b"one", pytest.fail)
    again.answer(b"two", lambda: ONE)
    with pytest.raises(BudgetExhausted):
        gate.reserve(VOTES, 1000)
    with pytest.raises(WrongData):
        Gate(ledger, ids=["d"])
    random = ("nonce", "digest", "answers", "question", "ledger")
    return [
        (row.kind, row.block, {k: v for k, v in row.body.items() if k not in random})
        for row in ledger.store.rows()
    ]


def test_it_does_all_that_a_file_does(tmp_path):
    on_disk = Ledger.create(tmp_path / "l.sqlite", ids=["a", "b"], purpose="audit")
    on_disk.set_budget(BUDGET, reason="a test")
    ledger = in_memory()
    assert spend(ledger) == spend(on_disk)
    assert ledger.standing() == on_disk.standing()
    verify(ledger)
    verify_rows(rows_of_export(export(ledger), "here"), "here")
    with pytest.raises(DoesNotVerify, match="append-only"), ledger.store.transaction():
        ledger.store._connect().execute("DELETE FROM rows")


def test_it_touches_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    spend(in_memory())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("purpose", ["release", "fun"])
def test_nothing_is_released_from_memory(purpose):
    with pytest.raises(BadInput) as caught:
        Ledger.in_memory(ids=["a"], purpose=purpose)
    assert caught.value.remedy


def test_many_share_nothing_and_closing_frees_them():
    many = [f"record {n}" for n in range(2000)]
    peaks = []
    for number in range(40):
        ledger = in_memory(ids=many)
        way = Gate(ledger, ids=many).reserve(VOTES, 3)
        way.answer(b"one", lambda: ONE)
        assert way.left == 2
        ledger.close()
        with pytest.raises(BadInput, match="closed"):
            ledger.head()
        if number in (10, 39):
            gc.collect()
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[1] - peaks[0] < 2048  # kilobytes; so many such ledgers take far more


def test_it_belongs_to_its_process():
    ledger = in_memory()

    def elsewhere():
        try:
            ledger.set_budget(Budget(2.0, 1e-5), reason="in a child")
        except BadInput:
            os._exit(7)

    child = multiprocessing.get_context("fork").Process(target=elsewhere)
    child.start()
    child.join()
    assert child.exitcode == 7
    assert ledger.budgets() == [BUDGET]


def test_sealed_records_are_known_to_the_gate_alone(tmp_path):
    sensitive, test = sealed("a", "b", persons=["p", "q"]), sealed("c", persons=["q"])
    for ledger in (
        Ledger.create(tmp_path / "l.sqlite", sensitive, test, unit="person"),
        Ledger.in_memory(sensitive, test, unit="person", purpose="benchmark"),
    ):
        assert ledger.store.query("SELECT COUNT(*) FROM members") == [(5,)]
        assert not ledger.ids_from_content
        Gate.of(ledger, sensitive, test)
        assert ledger.protects(["x"], sealed("c", "d"))
        assert ledger.protects(["x", "a"])
        assert not ledger.protects(["x"], sealed("d"))
        with pytest.raises(WrongData):
            Gate.of(ledger, sealed("d"))
        verify(ledger)
    with pytest.raises(WrongData):
        Ledger.create(tmp_path / "second.sqlite", sealed("d", "c"))


def test_sealed_records_named_by_their_content_stay_so_where_none_are_left():
    content = Dataset(np.eye(2), [0, 1], classes=("x", "y"))
    for part in (content, content.select([])):
        assert Ledger.in_memory(Sealed(part), purpose="audit").ids_from_content


def test_a_ledger_of_nobody_is_refused(tmp_path):
    with pytest.raises(BadInput, match="nobody"):
        Ledger.create(tmp_path / "l.sqlite")
    with pytest.raises(BadInput, match="nobody"):
        Gate.of(in_memory())


def test_a_ledger_that_knows_only_its_own_compares_ids_and_one_that_knows_more_does_not():
    """The short way must never miss a record that was there once and is gone."""
    own, ledger = sealed("a", "b"), in_memory()
    assert ledger.recognises(["x", "b"], own=own)
    assert not ledger.recognises(["x"], own=own)
    ledger.admit(["a", "b", "gone"])
    assert ledger.recognises(["gone"], own=own)
    assert not ledger.recognises(["x"], own=own)
