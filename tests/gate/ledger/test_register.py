"""A register that is damaged, lost, full or read-only stops a release, and says what to do."""

from __future__ import annotations

import os
import sqlite3

import pytest

from stillroom.cli import run
from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Budget, Gate, Ledger, NoisyVotes
from stillroom.gate.ledger import verify

IDS = ["a", "b"]
VOTES = NoisyVotes(teachers=5, classes=3, sigma=100)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.sqlite", ids=IDS)
    made.set_budget(Budget(1.0, 1e-5), reason="a test")
    yield made
    made.close()


@pytest.fixture
def register(tmp_path, ledger):
    return tmp_path / "home" / "known-ledgers.sqlite"


DAMAGE = {
    "garbage": lambda file: file.write_bytes(b"not a database, but long enough to look at" * 99),
    "a beginning": lambda file: file.write_bytes(file.read_bytes()[:5000]),
    "a hole": lambda file: file.write_bytes(
        file.read_bytes()[:4096] + bytes(4096) + file.read_bytes()[8192:]
    ),
    "emptied": lambda file: file.write_bytes(b""),
    "lost": lambda file: file.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_register_does_not_verify(ledger, register, damage, tmp_path, capsys):
    """Else whatever it knew would be forgotten: an old copy or a second ledger would pass."""
    damage(register)
    rows = list(ledger.store.rows())
    for attempt in (
        lambda: Ledger.open(ledger.path),
        lambda: Gate(ledger, ids=IDS),
        lambda: ledger.reserve({"votes": (VOTES, 1)}, recipe_hash="", noise="os"),
        lambda: ledger.set_budget(Budget(2.0, 1e-5), reason="a test"),
        lambda: Ledger.create(tmp_path / "second.sqlite", ids=["c"]),
    ):
        with pytest.raises(DoesNotVerify, match="register") as caught:
            attempt()
        assert "known-ledgers.key" in caught.value.remedy
    assert list(ledger.store.rows()) == rows
    assert not (tmp_path / "second.sqlite").exists()
    assert run(["ledger", "show", str(ledger.path)]) == 4
    assert run(["ledger", "verify", str(ledger.path)]) == 4
    assert "what to do" in capsys.readouterr().err


def test_the_remedy_works(ledger, register):
    DAMAGE["garbage"](register)
    for file in (register, register.with_suffix(".key")):
        file.rename(file.with_name(file.name + ".away"))
    Gate(Ledger.open(ledger.path), ids=IDS).reserve(VOTES, 1)
    verify(ledger)


@pytest.mark.parametrize("error", ["database or disk is full", "attempt to write a readonly file"])
def test_a_register_that_cannot_be_written_is_bad_input(ledger, register, error, monkeypatch):
    class Full(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith(("INSERT", "UPDATE")):
                raise sqlite3.OperationalError(error)
            return super().execute(sql, *values)

    real = sqlite3.connect

    def connect(place, *args, **options):
        there = "known-ledgers" in str(place)
        return real(place, *args, **options, **({"factory": Full} if there else {}))

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(BadInput, match=error) as caught:
        Gate(ledger, ids=IDS)
    assert caught.value.exit_code == 2
    assert "STILLROOM_HOME" in caught.value.remedy


def test_a_home_that_is_no_folder_is_bad_input(ledger, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "file"))
    with pytest.raises(BadInput, match="register"):
        Ledger.create(tmp_path / "second.sqlite", ids=["c"])
    assert not (tmp_path / "second.sqlite").exists()
    assert not (tmp_path / "second.sqlite.key").exists()


def test_a_lock_that_cannot_be_made_is_bad_input(ledger, tmp_path):
    locks = tmp_path / "home" / "locks"
    for file in locks.iterdir():
        file.unlink()
    os.rmdir(locks)
    locks.touch()
    with pytest.raises(BadInput, match="register"):
        ledger.set_budget(Budget(2.0, 1e-5), reason="a test")


def test_a_ledger_without_an_entry_is_known_from_its_first_change(ledger, tmp_path, monkeypatch):
    """Under another home nothing is known of it yet, and a copy must not go on beside it."""
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "other home"))
    opened = Ledger.open(ledger.path)
    old = (opened.path.read_bytes(), opened.path.with_name("ledger.sqlite.key").read_bytes())
    opened.set_budget(Budget(2.0, 1e-5), reason="raised")
    (tmp_path / "copy.sqlite").write_bytes(old[0])
    (tmp_path / "copy.sqlite.key").write_bytes(old[1])
    with pytest.raises(DoesNotVerify, match="seen before"):
        Ledger.open(tmp_path / "copy.sqlite")
    opened.close()
