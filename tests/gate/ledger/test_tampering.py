"""Tampering and rollback are found, and a damaged file is an error, not a fresh start."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sqlite3

import numpy as np
import pytest

from drawing import drawn
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Budget, Gate, Head, Ledger, NoisyVotes, Passage
from stillroom.gate.entropy import Entropy
from stillroom.gate.ledger import export, verify
from stillroom.gate.ledger.chain import canonical, row_hash
from stillroom.gate.ledger.exports import rows_of_export
from stillroom.gate.ledger.store import Store
from stillroom.gate.ledger.verify import check
from stillroom.vocabulary import Bounded

IDS = ["a", "b"]
VOTES = NoisyVotes(teachers=5, classes=3, sigma=100)


@pytest.fixture
def path(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.sqlite", ids=IDS)
    ledger.set_budget(Budget(1.0, 1e-5), reason="a test")
    spend(ledger)
    ledger.close()
    return ledger.path


def spend(ledger):
    way = Gate(ledger, ids=IDS).reserve(VOTES, 2)
    drawn(way, Bounded(np.tile([3, 1, 1], (2, 1)), VOTES.sensitivity))


def edit(path, *statements):
    """What someone with an SQLite shell could do; the guards must be dropped first."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


EDITS = {
    "a cheaper event": "UPDATE rows SET body = replace(body, '10000', '90000') "
    "WHERE kind = 'block'",
    "a raised budget": "UPDATE rows SET body = replace(body, '1.0', '9.0') WHERE kind = 'budget'",
    "a removed draw": "DELETE FROM rows WHERE kind = 'draw'",
    "a removed end": "DELETE FROM rows WHERE seq >= 4",
    "a removed beginning": "DELETE FROM rows WHERE seq = 1",
    "another day": "UPDATE rows SET at = '1999-01-01' WHERE kind = 'block'",
    "a day for a draw": "UPDATE rows SET at = '1999-01-01' WHERE kind = 'draw'",
    "a swapped block": "UPDATE rows SET block = 1 WHERE kind = 'draw'",
    "everything removed": "DELETE FROM rows",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_edited_row_is_found_when_the_ledger_is_opened(path, statement):
    edit(path, statement)
    with pytest.raises(DoesNotVerify) as caught:
        Ledger.open(path)
    assert caught.value.exit_code == 4
    assert caught.value.remedy


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM members",
        "UPDATE members SET hmac = x'00'  WHERE hmac = (SELECT MIN(hmac) FROM members)",
        "UPDATE answers SET content = zeroblob(length(content))",
        "DELETE FROM answers",
        "INSERT INTO answers VALUES (999, 'key', '1', x'00')",
        "INSERT INTO members VALUES (x'01', 999)",
    ],
)
def test_edited_members_and_answers_are_found_by_verify(path, statement):
    edit(path, statement)
    with pytest.raises(DoesNotVerify):
        verify(Ledger.open(path))


def test_the_guards_refuse_changes(path):
    connection = sqlite3.connect(path)
    for statement in (*EDITS.values(), "DELETE FROM members", "DELETE FROM answers"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def rewritten(path, change):
    """A forger who recomputes the whole chain."""
    rows = list(Store(path, read_only=True).rows())
    previous, statements = "", []
    for row in rows:
        body = canonical(change(row.kind, json.loads(canonical(row.body))))
        previous = row_hash(previous, row.seq, row.at, row.kind, row.block, body)
        quoted = body.replace("'", "''")
        statements.append(
            f"UPDATE rows SET body = '{quoted}', hash = '{previous}' WHERE seq = {row.seq}"
        )
    edit(path, *statements)


def cheaper_price(kind, body):
    if kind == "block":
        for part in body["totals"]:
            part["curve"] = [loss / 2 for loss in part["curve"]]
    return body


def cheaper_epsilon(kind, body):
    if kind == "block":
        for by_delta in body["epsilon"].values():
            for figures in by_delta.values():
                figures["certified"] /= 2
    return body


def smaller_count(kind, body):
    if kind == "block":
        body["wishes"][0]["count"] = 1
    return body


def more_wishes(kind, body):
    if kind == "block":
        body["wishes"][0]["count"] = 1000
    return body


def quieter_wishes(kind, body):
    if kind == "block":
        body["wishes"][0]["sigma"] = "1"
    return body


def no_wishes(kind, body):
    if kind == "block":
        del body["wishes"]
    return body


def two_of_one_name(kind, body):
    if kind == "block":
        body["wishes"] = [{**body["wishes"][0], "name": "votes"}] * 2
        body["events"] *= 2
    return body


def no_name_at_all(kind, body):
    if kind == "block":
        body["wishes"][0]["name"] = ""
    return body


def a_word_too_many(kind, body):
    if kind == "block":
        body["wishes"][0]["discount"] = 1
    return body


def smaller_budget(kind, body):
    if kind == "budget":
        body["epsilon"] = 0.01
    return body


FORGERIES = [
    *(cheaper_price, cheaper_epsilon, smaller_count, smaller_budget),
    *(more_wishes, quieter_wishes, no_wishes, two_of_one_name, no_name_at_all, a_word_too_many),
]


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_rewritten_chain_with_false_prices_is_found(path, forgery, monkeypatch, tmp_path):
    rewritten(path, forgery)
    with pytest.raises(DoesNotVerify, match="does not contain row"):
        Ledger.open(path)  # its head is known here
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "another home"))
    with pytest.raises(
        DoesNotVerify, match=r"less than|not those of|breaks the budget|cannot be read"
    ):
        verify(Ledger.open(path))


def test_an_old_copy_is_refused_where_the_head_is_known(path, tmp_path):
    old = tmp_path / "old copy"
    shutil.copy(path, old)
    ledger = Ledger.open(path)
    head = ledger.head()
    spend(ledger)
    newer = ledger.head()
    ledger.close()
    shutil.copy(old, path)
    with pytest.raises(DoesNotVerify, match="seen before"):
        Ledger.open(path)
    shutil.copy(old, tmp_path / "elsewhere.sqlite")
    with pytest.raises(DoesNotVerify, match="seen before"):
        Ledger.open(tmp_path / "elsewhere.sqlite", head=newer)
    assert head.seq < newer.seq


def copy_of(path, name="copy.sqlite"):
    """A copy of a ledger with its key, as a backup or a file manager would make it."""
    shutil.copy(path, path.with_name(name))
    shutil.copy(f"{path}.key", path.with_name(f"{name}.key"))
    return path.with_name(name)


def test_two_copies_opened_together_cannot_both_spend(path):
    first, second = Ledger.open(path), Ledger.open(copy_of(path))
    spend(first)
    with pytest.raises(DoesNotVerify, match="seen before"):
        Gate(second, ids=IDS)


def test_a_copy_made_after_payment_cannot_draw_the_paid_block_again(path):
    """Both copies hold the block; each drew its answers once, at half the true price."""
    ledger = Ledger.open(path)
    way = Gate(ledger, ids=IDS).reserve(VOTES, 4)
    ledger.close()
    copied = Ledger.open(copy_of(path))
    value = Bounded(np.tile([3, 1, 1], (2, 1)), VOTES.sensitivity)
    drawn(way, value)
    again = Passage(copied, Entropy(), "", way.block, 0, way.name, VOTES, 4)
    assert again.left == 4
    with pytest.raises(DoesNotVerify, match="seen before") as caught:
        drawn(again, value)
    assert caught.value.exit_code == 4
    assert copied.drawn(way.block, 0) == 0
    drawn(way, value)


def _gate_of(ledger):
    """A gate that was open before: making one would already meet the register."""
    gate = Gate.__new__(Gate)
    gate.ledger, gate._entropy = ledger, Entropy()
    return gate


def test_a_copy_made_before_a_commit_cannot_go_on_after_it(path):
    ledger = Ledger.open(path)
    way = Gate(ledger, ids=IDS).reserve(VOTES, 4)
    draw, _ = ledger.begin_draw(way.block, 0, (VOTES, 4), 1)
    ledger.close()
    copied = Ledger.open(copy_of(path))
    ledger.commit_draw(way.block, draw, np.zeros((1, 3), np.int64), 1, None)
    with pytest.raises(DoesNotVerify, match="seen before"):
        copied.begin_draw(way.block, 0, (VOTES, 4), 1)
    ledger.begin_draw(way.block, 0, (VOTES, 4), 1)


def test_equal_draws_of_two_copies_are_two_rows(tmp_path):
    """Without a register only the rows themselves can tell the copies apart."""
    ledger = Ledger.create(tmp_path / "own.sqlite", ids=IDS, purpose="audit")
    ledger.set_budget(Budget(1.0, 1e-5), reason="a test")
    block = Gate(ledger, ids=IDS).reserve(VOTES, 4).block
    ledger.close()
    both = [Ledger.open(tmp_path / "own.sqlite"), Ledger.open(copy_of(tmp_path / "own.sqlite"))]
    for one in both:
        one.begin_draw(block, 0, (VOTES, 4), 1)
    assert both[0].head().seq == both[1].head().seq
    assert both[0].head() != both[1].head()


def _race(path, gun, told):
    ledger = Ledger.open(path)
    value = Bounded(np.tile([3, 1, 1], (1, 1)), VOTES.sensitivity)
    gate = _gate_of(ledger)
    gun.wait()
    try:
        drawn(gate.reserve(VOTES, 2), value)
    except DoesNotVerify:
        told.put(0)
    else:
        told.put(1)


@pytest.mark.parametrize("turns", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_of_copies_that_race_only_one_goes_on(path, turns, counted):
    """Compared and advanced under one lock: there is no moment in which both are the newest."""
    counted("races", turns)
    context = multiprocessing.get_context("fork")
    for turn in range(turns):
        before = Ledger.open(path)
        newest = before.head()
        before.close()
        paths = [path, copy_of(path, f"copy {turn}.sqlite")]
        gun, told = context.Barrier(2), context.Queue()
        runs = [context.Process(target=_race, args=(p, gun, told)) for p in paths]
        for run in runs:
            run.start()
        outcomes = [told.get(timeout=120) for _ in runs]
        for run in runs:
            run.join()
        heads = []
        for one in paths:
            reader = Store(one, read_only=True)
            heads.append(reader.head())
            reader.close()
        # The loser may have come to its turn, but it drew nothing.
        assert sum(outcomes) == 1
        assert sorted(head == newest for head in heads) == [False, True]
        path = paths[[head == newest for head in heads].index(False)]


def test_restoring_an_old_model_refunds_nothing(path):
    """A run's own state knows nothing of the budget: only the ledger does."""
    ledger = Ledger.open(path)
    before = ledger.standing()[0].share
    gate = Gate(ledger, ids=IDS)
    del gate  # whatever the run kept is gone, or is an older copy
    assert Ledger.open(path).standing()[0].share == before > 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(b"not a database, but long enough to look at" * 100),
        lambda p: p.write_bytes(p.read_bytes()[:5000]),
        lambda p: p.write_bytes(p.read_bytes()[:4096] + bytes(4096) + p.read_bytes()[8192:]),
        lambda p: sqlite3.connect(p).executescript("PRAGMA application_id = 7"),
    ],
    ids=["empty", "text", "cut", "holed", "another database"],
)
def test_a_damaged_file_does_not_verify(path, damage):
    damage(path)
    with pytest.raises(DoesNotVerify) as caught:
        verify(Ledger.open(path))
    assert caught.value.remedy


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="no ledger"):
        Ledger.open(tmp_path / "nothing.sqlite")


def test_a_tampered_export_is_found(path, tmp_path):
    document = json.loads(json.dumps(export(Ledger.open(path))))
    document["rows"][2]["body"]["epsilon"] = 0.5
    with pytest.raises(DoesNotVerify, match="row 3"):
        rows_of_export(document, "export")
    file = tmp_path / "broken.json"
    for text in ('{"format": "else"}', "{", '{"rows": [{}]}'):
        file.write_text(text)
        with pytest.raises(DoesNotVerify):
            check(file)


@pytest.mark.parametrize("text", ["", "12", "x:ff", "3:12"])
def test_a_malformed_head_is_bad_input(text):
    with pytest.raises(BadInput, match="head"):
        Head.parse(text)


def test_other_schemas_are_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(BadInput, match="upgrade stillroom"):
        Ledger.open(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(BadInput, match="prices could be too small") as caught:
        Ledger.open(path)
    assert "draw nothing more" in caught.value.remedy
