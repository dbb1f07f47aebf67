"""A command that is told to end does so in order, in time, and says how to go on."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from processes import started
from stillroom import cli
from stillroom.cli.signals import farewell

CHARGED = "The same command goes on where it was. What was reserved stays charged"
NOTHING = "This command charges nothing."

TOLD = {
    "release recipe.toml -o model": CHARGED,
    "demo -o model": CHARGED,
    "demo --output=model": CHARGED,
    "demo": "starts over; with -o FOLDER it goes on",
    "release recipe.toml -o model --dry-run": NOTHING,
    "verify bundle": NOTHING,
    "predict bundle digits": NOTHING,
    "data import mnist": NOTHING,
    "ledger export ledger.sqlite -o release": NOTHING,
    "": NOTHING,
}


@pytest.mark.parametrize("code", [130, 143, 129])
@pytest.mark.parametrize(("words", "told"), TOLD.items())
def test_the_last_words_are_true_of_the_command(words, told, code):
    said = farewell(words.split(), code)
    assert told in said
    assert ("stays charged" in said) == (told == CHARGED)
    assert said.startswith("Interrupted. " if code == 130 else "Ended by a signal. ")


COMMANDS = {
    "verify bundle": "stillroom.pipeline.verify.verify",
    "predict bundle digits": "stillroom.release.predict.model_of",
    "data import mnist": "stillroom.data.catalogue.obtain",
}


@pytest.mark.parametrize(("words", "called"), COMMANDS.items())
@pytest.mark.parametrize("blow", [KeyboardInterrupt, EOFError])
def test_what_charges_nothing_says_so_and_a_short_file_is_no_interrupt(
    words, called, blow, monkeypatch, capsys
):
    def struck(*_):
        raise blow

    monkeypatch.setattr(called, struck)
    code, told = cli.run(words.split()), capsys.readouterr().err
    if blow is KeyboardInterrupt:
        assert code == 130
        assert told.splitlines()[-1] == "Interrupted. This command charges nothing."
    else:
        assert code == 1
        assert "internal fault (EOFError)" in told
        assert "Interrupted" not in told


STRUCK = """
import sys
from stillroom.private import LinearRecords
real, seen = LinearRecords.clipped_sum, []
def clipped_sum(*words):
    seen.extend(word for word in words[3:] if word is not None)  # a trial has no sample
    if len(seen) == 4:
        signal.raise_signal(signal.SIGTERM)
    return real(*words)
LinearRecords.clipped_sum = clipped_sum
from stillroom import cli
cli.main()
"""


def test_sigterm_ends_143_and_the_ledger_is_true(tmp_path, capsys):
    with started(STRUCK, "demo", "-o", tmp_path / "demo", stderr=subprocess.PIPE) as process:
        told = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 143, told
    assert "Ended by a signal. The same command goes on where it was." in told
    assert "Traceback" not in told
    ledger = tmp_path / "demo.run" / "ledger.sqlite"
    assert cli.run(["ledger", "verify", str(ledger)]) == 0
    capsys.readouterr()
    assert cli.run(["ledger", "show", str(ledger), "--json"]) == 0
    wish = json.loads(capsys.readouterr().out)["blocks"][0]["wishes"][0]
    assert wish["reserved"] == 60
    assert 0 < wish["drawn"] < 60


COMMAND = """
import sys, threading
from stillroom import cli
from stillroom.cli import signals
signals.GRACE = 0.05
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))
def command(words):
    blow = getattr(signal, sys.argv[2])
    {struck}
    return 7
cli._run = command
cli.main()
"""
PLAINLY = "signal.raise_signal(blow)"
SWALLOWED = "try: signal.raise_signal(blow)\n    except BaseException: threading.Event().wait()"
AGAIN = "try: signal.raise_signal(blow)\n    finally: signal.raise_signal(blow)"
ENDS = {
    "SIGHUP": ("SIG_DFL", "SIGHUP", PLAINLY, 129),
    "SIGTERM": ("SIG_DFL", "SIGTERM", PLAINLY, 143),
    "Ctrl-C": ("SIG_DFL", "SIGINT", PLAINLY, 130),
    "SIGHUP under nohup": ("SIG_IGN", "SIGHUP", PLAINLY, 7),
    "SIGTERM that a library swallows": ("SIG_DFL", "SIGTERM", SWALLOWED, 143),
    "SIGTERM twice": ("SIG_DFL", "SIGTERM", AGAIN, -signal.SIGTERM),
}


@pytest.mark.parametrize(("hang_up", "blow", "struck", "code"), ENDS.values(), ids=ENDS)
def test_every_signal_has_its_code_and_none_is_lost(hang_up, blow, struck, code):
    with started(COMMAND.format(struck=struck), hang_up, blow, stderr=subprocess.PIPE) as process:
        told = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code, told
    assert "Traceback" not in told
