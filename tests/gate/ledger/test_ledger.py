"""The ledger: whose data, which budget, what was spent; and that reading changes nothing."""

from __future__ import annotations

import hashlib
import json
import math
import stat
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from stillroom.errors import BadInput, BudgetExhausted, WrongData
from stillroom.gate import (
    Budget,
    Gate,
    GaussianAnswers,
    Ledger,
    NoisyCounts,
    NoisyVotes,
    RandomisedResponse,
    renyi,
)
from stillroom.gate.accounting import price
from stillroom.gate.entropy import SeededEntropy
from stillroom.gate.ledger import export, reprice, verify
from stillroom.gate.ledger.budget import filter_order, fits, share_spent
from stillroom.gate.ledger.exports import rows_of_export
from stillroom.gate.ledger.verify import check
from stillroom.vocabulary import RECORD, Bounded, Pair, Unit

IDS = [f"record {i}" for i in range(50)]
VOTES = NoisyVotes(teachers=5, classes=3, sigma=40)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.sqlite", ids=IDS)
    made.set_budget(Budget(epsilon=1.0, delta=1e-5), reason="a test")
    return made


def some_votes(rows=1):
    return Bounded(np.tile([3, 1, 1], (rows, 1)), VOTES.sensitivity)


def contents(folder):
    """The ledger and its key; SQLite's own shared-memory files say nothing."""
    files = (folder / "ledger.sqlite", folder / "ledger.sqlite.key")
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def test_ids_are_random_and_keys_are_for_the_owner_only(tmp_path):
    first = Ledger.create(tmp_path / "a.sqlite", ids=IDS, purpose="audit")
    second = Ledger.create(tmp_path / "b.sqlite", ids=IDS, purpose="audit")
    assert first.id != second.id
    for path in (tmp_path / "a.sqlite", tmp_path / "a.sqlite.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_names_no_record(ledger):
    ledger.close()
    content = ledger.path.read_bytes()
    assert not any(identity.encode() in content for identity in IDS)


def test_an_existing_ledger_is_not_overwritten(ledger):
    before = contents(ledger.path.parent)
    with pytest.raises(BadInput, match="already"):
        Ledger.create(ledger.path, ids=["new"], purpose="audit")
    assert contents(ledger.path.parent) == before


def test_a_failed_creation_leaves_nothing(tmp_path):
    with pytest.raises(BadInput):
        Ledger.create(tmp_path / "missing" / "ledger.sqlite", ids=IDS)
    with pytest.raises(BadInput, match="purpose"):
        Ledger.create(tmp_path / "ledger.sqlite", ids=IDS, purpose="fun")
    assert [p for p in tmp_path.iterdir() if p.name != "home"] == []


def test_a_creation_that_was_cut_off_can_be_repeated(tmp_path):
    (tmp_path / "l.sqlite.key").write_bytes(bytes(range(32)))
    made = Ledger.create(tmp_path / "l.sqlite", ids=IDS, purpose="audit")
    assert made.recognises(IDS)


def test_rows_do_not_tell_whether_a_record_is_new(tmp_path):
    """Add a record before the second release: the same rows, numbers and sizes, other bits."""
    exports = []
    for number, ids in enumerate((IDS, [*IDS, "one more"], IDS[1:], [])):
        made = Ledger.create(tmp_path / f"{number}.sqlite", ids=IDS, purpose="audit")
        made.set_budget(Budget(1.0, 1e-5), reason="a test")
        for release in (IDS, ids):
            drawn(Gate(made, ids=release).reserve(VOTES, 2), some_votes(2))
        exports.append(export(made)["rows"])
        verify(made)
    shapes = [
        [
            (row["seq"], row["kind"], row["at"], len(str(row["body"]["digest"])))
            for row in rows
            if row["kind"] == "members"
        ]
        for rows in exports
    ]
    assert shapes[0] == shapes[1] == shapes[2] == shapes[3]
    assert [len(rows) for rows in exports] == [len(exports[0])] * 4
    digests = [
        row["body"]["digest"] for rows in exports for row in rows if row["kind"] == "members"
    ]
    assert len(set(digests)) == len(digests) == 12


def test_a_row_of_members_tells_nothing_without_the_key(ledger):
    """A digest of no fingerprints would be the same for everyone, and so would one of a guess."""
    nonce, digest = (
        (row := next(ledger.store.rows("kind = 'members'")).body)["nonce"],
        row["digest"],
    )
    prints = [m for (m,) in ledger.store.query("SELECT hmac FROM members")]
    for guess in (b"".join(sorted(prints)), b""):
        assert hashlib.sha256(nonce.encode() + guess).hexdigest() != digest
        assert hashlib.sha256(guess).hexdigest() != digest


def test_draws_tell_no_time(ledger):
    """A step takes as long as its batch, so not even the second of a draw may be kept."""
    drawn(Gate(ledger, ids=IDS).reserve(VOTES, 3), some_votes(3))
    days = {row["kind"]: row["at"] for row in export(ledger)["rows"]}
    assert {kind for kind, day in days.items() if day} == {"open", "budget", "block"}
    assert all(len(day) == len("2026-01-31") for day in days.values() if day)


def test_a_ledger_without_a_record_is_the_neighbour_of_one_with_a_record(tmp_path):
    empty = Ledger.create(tmp_path / "l.sqlite", ids=[], purpose="audit", ids_from_content=True)
    empty.set_budget(Budget(1.0, 1e-5), reason="a test")
    drawn(Gate(empty, ids=[]).reserve(VOTES, 1), some_votes())
    Gate(empty, ids=["sha256:ab-0"])
    with pytest.raises(WrongData):
        Gate(empty, ids=["sha256:cd-0"])
    Gate(empty, ids=[])
    verify(empty)


def test_ids_from_content_promise_nothing_for_a_changed_record(tmp_path):
    """A changed pixel changes the id, and may move the record into the measured part."""
    made = Ledger.create(tmp_path / "l.sqlite", ids=["sha256:ab-0", "sha256:cd-0"], purpose="audit")
    assert made.ids_from_content
    changed = Pair.parse("record/change")
    with pytest.raises(BadInput, match="no block of this ledger can meet"):
        made.set_budget(Budget(1.0, 1e-5, changed), reason="a test")
    made.set_budget(Budget(1.0, 1e-5), reason="a test")
    Gate(made, ids=["sha256:ab-0"]).reserve(VOTES, 1)
    (block,) = made.store.rows("kind = 'block'")
    assert "record/change" not in block.body["epsilon"]
    assert changed not in made.totals()
    assert "entity/change" in block.body["epsilon"]
    verify(made)


def test_given_ids_and_ids_from_content_do_not_mix(ledger):
    with pytest.raises(WrongData, match="made from content"):
        Gate(ledger, ids=[IDS[0], "sha256:ab-0"])


@pytest.mark.parametrize("reason", ["two\nlines", "\x1b[2Jcleared", "a\u202ebidi", "tab\there"])
def test_a_reason_is_one_line_of_plain_text(ledger, reason):
    with pytest.raises(BadInput, match="one line"):
        ledger.set_budget(Budget(2.0, 1e-5), reason=reason)


def test_one_added_or_lost_record_keeps_the_ledger(ledger):
    Gate(ledger, ids=[*IDS, "one more"])
    Gate(ledger, ids=IDS[1:])
    Gate(ledger, ids=["one more"])  # seen since the first of these lines


def test_a_disjoint_data_set_is_refused(ledger):
    head = ledger.head()
    with pytest.raises(WrongData, match="not one of these records") as caught:
        Gate(ledger, ids=["a stranger"])
    assert caught.value.exit_code == 2
    assert ledger.head() == head


def test_a_second_ledger_on_the_same_records_is_refused(ledger, tmp_path):
    with pytest.raises(WrongData, match="another ledger"):
        Ledger.create(tmp_path / "second.sqlite", ids=[*IDS[:1], "new"])
    assert not (tmp_path / "second.sqlite").exists()
    assert not (tmp_path / "second.sqlite.key").exists()
    Ledger.create(tmp_path / "benchmark.sqlite", ids=IDS, purpose="benchmark")


def test_a_lost_ledger_does_not_free_its_records(ledger, tmp_path):
    ledger.close()
    for file in tmp_path.glob("ledger.sqlite*"):
        file.unlink()
    with pytest.raises(WrongData, match="another ledger"):
        Ledger.create(tmp_path / "ledger.sqlite", ids=IDS)


def test_a_growing_data_set_cannot_swallow_another_ledgers_records(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.sqlite", ids=["b1", "b2"])
    with pytest.raises(WrongData, match="another ledger"):
        Gate(other, ids=["b1", IDS[0]])


def test_persons_and_records_are_told_apart(tmp_path):
    made = Ledger.create(tmp_path / "l.sqlite", ids=["r1"], persons=["p1"], purpose="audit")
    assert made.recognises(["r1"])
    assert not made.recognises(["p1"])


def test_what_another_ledger_protects_is_known(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.sqlite", ids=["b1", "b2"])
    assert other.protects(["b1", "new"])
    assert other.protects([IDS[0]])
    assert not other.recognises([IDS[0]])
    assert not other.protects(["new"])
    assert not other.protects([])


@pytest.mark.parametrize("purpose", ["benchmark", "audit"])
def test_what_a_release_protects_is_public_for_no_other_purpose(ledger, tmp_path, purpose):
    other = Ledger.create(tmp_path / "other.sqlite", ids=["a1"], purpose=purpose)
    assert other.protects(["a1"])
    assert other.protects([IDS[0]])
    assert not other.protects(["new"])


def test_a_lost_key_stops_everything(ledger):
    (ledger.path.parent / (ledger.path.name + ".key")).unlink()
    with pytest.raises(BadInput, match="key"):
        Gate(ledger, ids=IDS)


def test_no_budget_no_draw(tmp_path):
    made = Ledger.create(tmp_path / "l.sqlite", ids=IDS)
    with pytest.raises(BadInput, match="no budget is set") as caught:
        Gate(made, ids=IDS).reserve(VOTES, 1)
    assert "ledger budget set" in caught.value.remedy


def test_a_budget_needs_a_reason_and_leaves_a_row(ledger):
    with pytest.raises(BadInput, match="reason"):
        ledger.set_budget(Budget(2.0, 1e-5), reason=" ")
    ledger.set_budget(Budget(2.0, 1e-5), reason="the ethics board agreed")
    rows = list(ledger.store.rows("kind = 'budget'"))
    assert [row.body["epsilon"] for row in rows] == [1.0, 2.0]
    assert ledger.budgets() == [Budget(2.0, 1e-5)]


def test_a_second_block_that_does_not_fit_is_told_which_figure_is_short(ledger):
    """Alone it costs 0.995 and would fit the budget of 1; behind a block of next to nothing not."""
    gate = Gate(ledger, ids=IDS)
    gate.reserve(NoisyVotes(5, 3, 4000), 1)
    with pytest.raises(BudgetExhausted, match=r" 0\.0% are spent, .* needs 1\d\d\.\d%"):
        gate.reserve(VOTES, 57)


def test_a_block_that_does_not_fit_draws_nothing(ledger):
    gate = Gate(ledger, ids=IDS)
    head = ledger.head()
    with pytest.raises(BudgetExhausted, match="does not fit") as caught:
        gate.reserve(VOTES, 100)
    assert caught.value.exit_code == 3
    assert ledger.head() == head


def test_a_first_block_is_judged_by_the_certified_price(ledger):
    """57 answers cost 0.995 by PLD and 1.087 by RDP: they fit, and nothing fits after them."""
    gate = Gate(ledger, ids=IDS)
    gate.reserve(VOTES, 57)
    assert ledger.spent(RECORD, 1e-5) == pytest.approx(0.995, abs=1e-3)
    with pytest.raises(BudgetExhausted):
        gate.reserve(NoisyVotes(5, 3, 10_000), 1)


def test_blocks_add_up_and_never_pass_the_budget(ledger):
    gate = Gate(ledger, ids=IDS)
    reserved = 0
    with suppress(BudgetExhausted):
        while True:
            gate.reserve(VOTES, 4)
            reserved += 4
    assert 40 <= reserved <= 57
    (standing,) = ledger.standing()
    assert standing.share <= 1
    assert standing.epsilon <= 1.0
    assert standing.epsilon >= price(VOTES.lines(reserved), RECORD).epsilon(1e-5)


def test_every_budget_must_hold(ledger):
    ledger.set_budget(Budget(0.3, 1e-5, Pair.parse("record/change")), reason="changes")
    gate = Gate(ledger, ids=IDS)
    counts = NoisyCounts(sigma=8, width=3)
    assert price(counts.lines(1), RECORD).epsilon(1e-5) < 1
    with pytest.raises(BudgetExhausted, match="record/change"):
        gate.reserve(counts, 1)
    gate.reserve(NoisyCounts(sigma=40, width=3), 1)


def test_a_raised_budget_lets_more_in(ledger):
    gate = Gate(ledger, ids=IDS)
    gate.reserve(VOTES, 40)
    with pytest.raises(BudgetExhausted):
        gate.reserve(VOTES, 40)
    ledger.set_budget(Budget(3.0, 1e-5), reason="raised")
    gate.reserve(VOTES, 40)


def test_repeatable_noise_is_infinite_and_stays_so(ledger):
    gate = Gate(ledger, ids=IDS, entropy=SeededEntropy(1))
    with pytest.raises(BudgetExhausted):
        gate.reserve(VOTES, 1)
    gate.reserve(VOTES, 1, accept_infinite=True)
    assert ledger.spent(RECORD, 1e-5) == math.inf
    with pytest.raises(BudgetExhausted):
        Gate(ledger, ids=IDS).reserve(VOTES, 1)
    assert reprice(ledger.store.rows(), RECORD, 1e-5).epsilon == math.inf
    verify(ledger)


def test_repeatable_noise_without_tables_is_infinite_too(ledger):
    local = RandomisedResponse(3, Fraction(1, 2), Unit.RECORD)
    Gate(ledger, ids=IDS, entropy=SeededEntropy(1)).reserve(local, 1, accept_infinite=True)
    with pytest.raises(BudgetExhausted):
        Gate(ledger, ids=IDS).reserve(VOTES, 1)


def test_accepting_the_infinite_lets_nothing_finite_in(ledger):
    gate = Gate(ledger, ids=IDS)
    with pytest.raises(BudgetExhausted):
        gate.reserve(VOTES, 100, accept_infinite=True)


def test_losing_the_registers_key_does_not_free_records(ledger, tmp_path):
    (tmp_path / "home" / "known-ledgers.key").unlink()
    with pytest.raises(BadInput, match="key"):
        Ledger.create(tmp_path / "second.sqlite", ids=IDS)


def test_deltas_that_look_alike_are_told_apart(ledger):
    ledger.set_budget(Budget(3.0, 1.0000001e-5), reason="nearly the same delta")
    Gate(ledger, ids=IDS).reserve(VOTES, 5)
    stored = next(ledger.store.rows("kind = 'block'")).body["epsilon"]["record/change"]
    assert {"1e-05", "1.0000001e-05"} <= set(stored)


def test_reading_changes_nothing(ledger):
    drawn(Gate(ledger, ids=IDS).reserve(VOTES, 3), some_votes(3))
    ledger.close()
    before = contents(ledger.path.parent)
    reader = Ledger.open(ledger.path, read_only=True)
    reader.standing()
    verify(reader)
    export(reader)
    with pytest.raises(BadInput):
        reader.set_budget(Budget(9.0, 1e-5), reason="not through a reader")
    reader.close()
    assert contents(ledger.path.parent) == before


def test_an_export_can_be_checked_and_priced_again(ledger, tmp_path):
    gate = Gate(ledger, ids=IDS)
    for _ in range(3):
        drawn(gate.reserve(VOTES, 10), some_votes(10))
    document = json.loads(json.dumps(export(ledger)))
    assert not any(identity in json.dumps(document) for identity in IDS)
    rows = rows_of_export(document, "here")
    again = reprice(rows, RECORD, 1e-5)
    together = price(VOTES.lines(30), RECORD).guarantee(1e-5)
    assert again == together
    assert again.epsilon <= ledger.spent(RECORD, 1e-5)
    file = tmp_path / "export.json"
    file.write_text(json.dumps(document))
    assert check(file, head=str(ledger.head()))["prices"][0]["certified"] == together.epsilon


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 25), st.floats(1e-12, 0.1))
def test_what_the_filter_lets_in_is_within_the_budget(epsilon, delta):
    """A total that just fits converts to at most epsilon at delta, whichever order it is."""
    budget = Budget(epsilon, delta)
    order, place, allowance = filter_order(budget)
    if allowance <= 0:
        return
    rho = allowance / order * (1 - 1e-9)
    curve = tuple(rho * a for a in renyi.ORDERS)
    assert fits(curve, 1000, budget)
    assert curve[place] + renyi.conversion(order, delta) <= epsilon
    assert not fits(tuple(1.001 * loss for loss in curve), 1000, budget)
    assert share_spent(renyi.NOTHING, budget) == 0


def test_the_filter_refuses_what_its_tables_cannot_carry():
    assert not fits(renyi.NOTHING, 10**30, Budget(1.0, 1e-5))
    assert not fits(renyi.NOTHING, 1, Budget(100.0, 1e-5))


def test_a_price_beyond_what_tables_carry_is_infinite_in_the_total_too(ledger):
    """Curves alone would call it finite, and the data set's total fall below the release."""
    loud = GaussianAnswers(sigma=100, width=4, squared_distance=10**6)
    Gate(ledger, ids=IDS).reserve(loud, 1, accept_infinite=True)
    assert price(loud.lines(1), RECORD).epsilon(1e-5) == math.inf
    assert renyi.epsilon(ledger.totals()[RECORD], 1e-5) < math.inf
    assert ledger.spent(RECORD, 1e-5) == math.inf
