"""A ledger can be looked at where nothing can be written, and never without its newest rows."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys

import pytest

from stillroom.errors import BadInput, DoesNotVerify
from stillroom.gate import Budget, Ledger
from stillroom.gate.ledger import export, store, verify

COMMANDS = """
import sys
from stillroom.cli import run
sys.exit(10 * run(["ledger", "show", sys.argv[1]]) + run(["ledger", "verify", sys.argv[1]])
    or run(["ledger", "export", sys.argv[1], "-o", sys.argv[2]]))
"""


@pytest.fixture
def ledger(tmp_path):
    (tmp_path / "mounted").mkdir()
    made = Ledger.create(tmp_path / "mounted" / "ledger.sqlite", ids=["a"])
    made.set_budget(Budget(1.0, 1e-5), reason="a test")
    yield made
    made.close()


@pytest.fixture
def cut_off(ledger, tmp_path):
    """What a killed process leaves: the newest rows are in the -wal."""
    (tmp_path / "cut off").mkdir()
    for suffix in ("", "-wal", ".key"):
        shutil.copy(f"{ledger.path}{suffix}", tmp_path / "cut off")
    assert (tmp_path / "cut off" / "ledger.sqlite-wal").stat().st_size > 0
    return tmp_path / "cut off" / "ledger.sqlite"


def mounted_read_only(folder, *words):
    """A command in a namespace of its own, in which a folder cannot be written to."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, str(folder), *words],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def mounts(tmp_path):
    try:
        possible = mounted_read_only(tmp_path, "true").returncode == 0
    except OSError:
        possible = False
    if not possible:
        pytest.skip("no mount namespaces here")


@pytest.mark.usefixtures("mounts")
def test_show_verify_and_export_work_on_a_read_only_mount(ledger, tmp_path):
    ledger.close()
    for folder in (tmp_path / "mounted", tmp_path / "home"):
        out = tmp_path / f"{folder.name}.json"
        words = (sys.executable, "-c", COMMANDS, str(ledger.path), str(out))
        done = mounted_read_only(folder, *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert str(ledger.head()) in done.stdout
        assert out.exists()
        ledger.close()


@pytest.mark.usefixtures("mounts")
def test_rows_that_cannot_be_read_on_a_read_only_mount_are_not_left_out(cut_off, tmp_path):
    words = (sys.executable, "-c", COMMANDS, str(cut_off), str(tmp_path / "out.json"))
    done = mounted_read_only(cut_off.parent, *words)
    assert done.returncode == 22
    assert "ledger.sqlite-wal" in done.stderr
    assert "copy" in done.stderr


@pytest.fixture
def unwritable(monkeypatch):
    """What SQLite says where not even its shared memory can be made."""
    real = sqlite3.connect

    class Unopened(sqlite3.Connection):
        def execute(self, *args):
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error

    def connect(place, *args, **options):
        if str(place).endswith("?mode=ro"):
            options["factory"] = Unopened
        return real(place, *args, **options)

    monkeypatch.setattr(store.sqlite3, "connect", connect)


@pytest.mark.usefixtures("unwritable")
def test_a_whole_ledger_is_read_as_it_lies(ledger):
    ledger.close()
    reader = Ledger.open(ledger.path, read_only=True)
    assert reader.budgets() == [Budget(1.0, 1e-5)]
    verify(reader)
    assert len(export(reader)["rows"]) == 3
    with pytest.raises(BadInput):
        reader.set_budget(Budget(2.0, 1e-5), reason="not through a reader")


@pytest.mark.usefixtures("unwritable")
def test_a_ledger_is_not_read_without_its_newest_rows(cut_off):
    with pytest.raises(BadInput, match="newest rows") as caught:
        Ledger.open(cut_off, read_only=True)
    assert "-wal" in caught.value.remedy
    cut_off.with_name("ledger.sqlite-wal").write_bytes(b"")  # as if there had been none
    with pytest.raises(DoesNotVerify, match="seen before"):
        Ledger.open(cut_off, read_only=True)
