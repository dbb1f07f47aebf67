"""How a ledger and its key come to be: whole or not at all, and what is left behind is swept."""

from __future__ import annotations

import multiprocessing
import os
import stat
from contextlib import contextmanager, nullcontext

import pytest

from stillroom import durable
from stillroom.durable import draft_of, sweep, taking_turns, write_whole
from stillroom.errors import BadInput, DoesNotVerify, WrongData
from stillroom.gate import Ledger
from stillroom.gate.ledger import verify
from stillroom.gate.ledger.register import Register
from stillroom.gate.ledger.store import Store
from stillroom.release.keys import make_keys, public_of, read_private, read_public

IDS = ["a", "b"]


def names(folder):
    return sorted(file.name for file in folder.iterdir() if file.name != "home")


def first_run(path, gun, told):
    gun.wait()
    try:
        Ledger.create(path, ids=IDS).close()
    except BadInput as error:
        told.put(str(error))
    else:
        told.put("made")


def races(folder, rounds, monkeypatch):
    """Four first runs in one folder at a time; the key of whoever wins stays."""
    context = multiprocessing.get_context("fork")
    for number in range(rounds):
        place = folder / str(number)
        place.mkdir()
        monkeypatch.setenv("STILLROOM_HOME", str(place / "home"))
        path = place / "ledger.sqlite"
        gun, told = context.Barrier(4), context.Queue()
        runs = [context.Process(target=first_run, args=(path, gun, told)) for _ in range(4)]
        for run in runs:
            run.start()
        outcomes = sorted(told.get(timeout=120) for _ in runs)
        for run in runs:
            run.join()
        assert outcomes.count("made") == 1
        assert all("already a file" in outcome for outcome in outcomes if outcome != "made")
        ledger = Ledger.open(path)
        verify(ledger)
        assert ledger.recognises(IDS)
        ledger.close()
        assert names(place) == ["ledger.sqlite", "ledger.sqlite.key"]


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_of_four_first_runs_one_makes_a_ledger_with_its_key(tmp_path, rounds, monkeypatch, counted):
    races(tmp_path, rounds, monkeypatch)
    counted("races", rounds)
    assert len(names(tmp_path)) == rounds


@pytest.mark.parametrize("purpose", ["release", "benchmark"])
def test_an_empty_key_without_a_ledger_is_made_anew(tmp_path, purpose):
    """A kill between creating and writing it left one, and blocked every later run."""
    (tmp_path / "l.sqlite.key").touch()
    made = Ledger.create(tmp_path / "l.sqlite", ids=IDS, purpose=purpose)
    verify(made)
    assert len((tmp_path / "l.sqlite.key").read_bytes()) == 32


def test_what_is_no_key_is_not_overwritten(tmp_path):
    (tmp_path / "l.sqlite.key").write_bytes(b"a key to something else")
    with pytest.raises(BadInput, match="no key") as caught:
        Ledger.create(tmp_path / "l.sqlite", ids=IDS)
    assert "backup" not in caught.value.remedy
    assert (tmp_path / "l.sqlite.key").read_bytes() == b"a key to something else"
    assert names(tmp_path) == ["l.sqlite.key"]


def test_an_empty_key_of_an_empty_register_is_made_anew(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "known-ledgers.key").touch()
    Ledger.create(tmp_path / "l.sqlite", ids=IDS)
    with pytest.raises(WrongData, match="another ledger"):
        Ledger.create(tmp_path / "second.sqlite", ids=IDS)


@pytest.mark.parametrize("content", [b"", bytes(31)])
def test_a_key_under_which_records_were_entered_is_not_made_anew(tmp_path, content):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=IDS)
    key = tmp_path / "l.sqlite.key"
    whole = key.read_bytes()
    key.write_bytes(content)
    with pytest.raises(BadInput, match="damaged"):
        verify(ledger)
    with pytest.raises(BadInput, match="damaged"):
        ledger.admit(IDS)
    key.write_bytes(whole)
    verify(ledger)


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    write_whole(tmp_path / "file", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def dead() -> int:
    """The number of a process that has ended and been waited for."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def test_drafts_of_the_dead_are_swept_and_those_of_the_living_are_not(tmp_path):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=IDS)
    ledger.close()
    gone = dead()
    for name in (f".l.sqlite.{gone}.draft", f".l.sqlite.{gone}.draft-wal"):
        (tmp_path / name).touch()
    (tmp_path / f".l.sqlite.key.{gone}.draft").touch()
    (tmp_path / ".l.sqlite.lock").touch()
    kept = [f".l.sqlite.{os.getppid()}.draft", f".other.sqlite.{gone}.draft", ".l.sqlite.x.draft"]
    for name in kept:
        (tmp_path / name).touch()
    Ledger.open(tmp_path / "l.sqlite", read_only=True).close()
    assert f".l.sqlite.{gone}.draft" in names(tmp_path)  # a reader changes nothing
    Ledger.open(tmp_path / "l.sqlite").close()
    assert names(tmp_path) == sorted([*kept, "l.sqlite", "l.sqlite.key"])


def test_a_draft_of_an_earlier_process_with_the_same_number_is_no_obstacle(tmp_path):
    draft_of(tmp_path / "l.sqlite").write_bytes(b"half a ledger")
    draft_of(tmp_path / "l.sqlite.key").write_bytes(b"half a key")
    verify(Ledger.create(tmp_path / "l.sqlite", ids=IDS))
    assert names(tmp_path)[:1] == ["l.sqlite"]


def test_a_lock_that_lost_its_name_excludes_nobody(tmp_path, monkeypatch):
    """Whoever waited for it takes a new one."""
    lock, seen = tmp_path / ".file.lock", []
    real = durable._is_named

    def removed_meanwhile(descriptor, path):
        seen.append(path)
        if len(seen) == 1:
            lock.unlink()
        return real(descriptor, path)

    monkeypatch.setattr(durable, "_is_named", removed_meanwhile)
    with taking_turns(tmp_path / "file"):
        assert lock.exists()
        sweep(tmp_path / "file")
        assert lock.exists()  # it is held
    assert len(seen) == 2
    assert not lock.exists()


def test_a_ledger_that_got_its_name_is_never_taken_away(tmp_path, monkeypatch):
    """The register's last word fails: the ledger may be in use already, and enters itself later."""
    real = Register.entering

    @contextmanager
    def full(*args):
        with real(*args):
            yield
            raise BadInput("the register is full")

    with monkeypatch.context() as patch:
        patch.setattr(Register, "entering", full)
        with pytest.raises(BadInput, match="full"):
            Ledger.create(tmp_path / "l.sqlite", ids=IDS)
    ledger = Ledger.open(tmp_path / "l.sqlite")
    verify(ledger)
    ledger.admit(IDS)
    with pytest.raises(WrongData, match="another ledger"):
        Ledger.create(tmp_path / "second.sqlite", ids=IDS)


def test_a_ledger_that_was_replaced_in_use_is_not_written_to(tmp_path):
    ledger = Ledger.create(tmp_path / "l.sqlite", ids=IDS, purpose="audit")
    os.rename(tmp_path / "l.sqlite", tmp_path / "moved.sqlite")
    with pytest.raises(DoesNotVerify, match="replaced or removed"):
        ledger.admit(IDS)
    os.rename(tmp_path / "moved.sqlite", tmp_path / "l.sqlite")
    ledger.admit(IDS)


def test_an_opening_row_that_names_no_ledger_is_refused(tmp_path):
    """The name is also that of a lock in the data home."""
    rows = {"ledger": "../../outside", "purpose": "release", "ids": "given"}

    def fill(store):
        with store.transaction():
            store.append("open", rows)

    Store.create(tmp_path / "l.sqlite", fill, nullcontext())
    with pytest.raises(DoesNotVerify, match="opening row"):
        Ledger.open(tmp_path / "l.sqlite")


def test_empty_signing_keys_are_made_anew_and_a_half_pair_is_completed(tmp_path):
    path = tmp_path / "release.key"
    path.touch()
    (tmp_path / "release.key.pub").touch()
    private, public = make_keys(path)
    secret = read_private(private)
    assert read_public(public) == public_of(secret)
    public.unlink()
    make_keys(path)
    assert read_private(private) == secret
    assert read_public(public) == public_of(secret)
    with pytest.raises(BadInput, match="already"):
        make_keys(path)
    private.unlink()
    with pytest.raises(BadInput, match="already"):
        make_keys(path)
    assert names(tmp_path) == ["release.key.pub"]
