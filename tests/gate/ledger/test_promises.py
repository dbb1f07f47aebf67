"""Whom a ledger protects, and which budgets it can have."""

from __future__ import annotations

import pytest

from stillroom.errors import BadInput, BudgetExhausted, DoesNotVerify
from stillroom.gate import Budget, Gate, Ledger, NoisyCounts
from stillroom.gate.ledger import verify
from stillroom.gate.ledger.blocks import PricedBlock
from stillroom.gate.ledger.verify import verify_rows
from stillroom.vocabulary import Pair, Unit

IDS = ["r1", "r2"]
PERSON, CHANGED_PERSON, RECORD = map(
    Pair.parse, ("person/add-or-remove", "person/change", "record/add-or-remove")
)
COUNTS = NoisyCounts(sigma=20, width=3, unit=Unit.PERSON)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "l.sqlite", ids=IDS, persons=["p"], unit="person")
    made.set_budget(Budget(2.0, 1e-5, PERSON), reason="first")
    return made


def paid(ledger):
    Gate(ledger, ids=IDS, persons=["p"]).reserve(COUNTS, 1)
    return ledger


def test_a_budget_that_no_block_can_meet_is_refused_and_nothing_is_lost(ledger):
    """It once stopped every later release, and nothing could take it back."""
    with pytest.raises(BadInput, match="can meet a budget for record/add-or-remove") as caught:
        ledger.set_budget(Budget(2.0, 1e-5, RECORD), reason="a forgotten flag")
    assert "person/add-or-remove" in caught.value.remedy
    assert ledger.budgets() == [Budget(2.0, 1e-5, PERSON)]
    verify(paid(ledger))


def test_another_budget_can_be_taken_back(ledger):
    ledger.set_budget(Budget(0.1, 1e-5, CHANGED_PERSON), reason="too little")
    with pytest.raises(BudgetExhausted, match="person/change"):
        paid(ledger)
    ledger.unset_budget(CHANGED_PERSON, reason="changes are not promised")
    verify(paid(ledger))
    assert ledger.budgets() == [Budget(2.0, 1e-5, PERSON)]
    (row,) = ledger.store.rows("kind = 'unset'")
    assert row.body == {"pair": str(CHANGED_PERSON), "reason": "changes are not promised"}


@pytest.mark.parametrize("pair", [PERSON, CHANGED_PERSON, RECORD], ids=str)
def test_the_own_budget_and_those_that_are_not_set_cannot(ledger, pair):
    with pytest.raises(BadInput):
        ledger.unset_budget(pair, reason="no more")
    assert ledger.budgets() == [Budget(2.0, 1e-5, PERSON)]


@pytest.mark.parametrize("lower", [(1.9, 1e-5), (2.0, 1e-6), (3.0, 1e-6)], ids=str)
def test_the_own_budget_can_only_be_raised_once_something_is_paid(ledger, lower):
    ledger.set_budget(Budget(*lower, PERSON), reason="a typing error, mended")
    ledger.set_budget(Budget(2.0, 1e-5, PERSON), reason="back")
    paid(ledger)
    with pytest.raises(BadInput, match="only be raised"):
        ledger.set_budget(Budget(*lower, PERSON), reason="too late")
    ledger.set_budget(Budget(2.5, 1e-5, PERSON), reason="raised")
    verify(ledger)


def test_the_unit_is_fixed_with_the_first_block(ledger):
    ledger.fix_unit("record")
    assert ledger.budgets() == []  # that for persons lapsed
    with pytest.raises(BadInput, match="no budget is set for this data, for record"):
        Gate(ledger, ids=IDS).reserve(NoisyCounts(sigma=20, width=3), 1)
    ledger.fix_unit("person")
    assert ledger.budgets() == []
    ledger.set_budget(Budget(2.0, 1e-5, PERSON), reason="again")
    paid(ledger)
    with pytest.raises(BadInput, match="protects each person, and not each record"):
        ledger.fix_unit("record")
    ledger.fix_unit("person")
    assert [row.body["unit"] for row in ledger.store.rows("kind = 'unit'")] == ["record", "person"]
    verify(ledger)


def test_a_budget_that_lapses_while_a_block_is_priced_lets_nothing_in(ledger, monkeypatch):
    """Another process may fix another unit between the first look at the budgets and the lock."""
    real, other = PricedBlock.__init__, Ledger.open(ledger.path)

    def meanwhile(*given):
        real(*given)
        other.fix_unit("record")

    monkeypatch.setattr(PricedBlock, "__init__", meanwhile)
    with pytest.raises(BadInput, match="no budget is set"):
        paid(ledger)
    assert not list(ledger.store.rows("kind = 'block'"))


def test_a_block_of_another_unit_is_not_let_in(ledger):
    with pytest.raises(BudgetExhausted, match="epsilon inf"):
        Gate(ledger, ids=IDS, persons=["p"]).reserve(NoisyCounts(sigma=20, width=3), 1)


@pytest.mark.parametrize(
    "extra",
    [
        ("unit", {"unit": "record"}),
        ("budget", {"pair": str(PERSON), "epsilon": 1.0, "delta": 1e-5, "reason": "lower"}),
        ("budget", {"pair": str(RECORD), "epsilon": 9.0, "delta": 1e-5, "reason": "other"}),
        ("unset", {"pair": str(PERSON), "reason": "gone"}),
    ],
    ids=["another unit", "lowered", "of another unit", "own one taken back"],
)
def test_rows_that_break_these_rules_do_not_verify(ledger, extra):
    paid(ledger)
    with ledger.store.transaction():
        ledger.store.append(*extra)
    with pytest.raises(DoesNotVerify):
        verify_rows(ledger.store.rows(), "a forged ledger")


def test_a_block_without_a_budget_does_not_verify(ledger):
    rows = [row for row in paid(ledger).store.rows() if row.kind != "budget"]
    with pytest.raises(DoesNotVerify, match="without a budget"):
        verify_rows(rows, "a forged ledger")
