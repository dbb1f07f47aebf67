"""Sixty mistakes and more: each ends with its code, says four things, and is mended as it says."""

from __future__ import annotations

import contextlib
import io

import pytest

from stillroom.cli import run as stillroom
from usability import bundles, ledgers, recipes, tables_and_pictures, words  # noqa: F401
from usability.mistakes import TABLE, Told, words_of


def row(mistake):
    return pytest.param(mistake, id=mistake.name, marks=[pytest.mark.slow] if mistake.slow else [])


@pytest.mark.parametrize("mistake", [row(mistake) for mistake in TABLE.values()])
def test_a_mistake_says_how_to_mend_it(mistake, world, capsys, quick, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(command):
        capsys.readouterr()
        code = stillroom(words_of(command))
        return Told(code, *capsys.readouterr())

    steps = mistake.make(world)
    told = run(next(steps))
    assert told.code == mistake.code, told
    for title, fragment in mistake.says.items():
        assert told.part(title), (title, told.err)
        assert fragment in told.part(title), (title, told.err)
    assert "Traceback" not in told.err
    worked, after = 0, told
    while command := following(steps, after):
        after = run(command)
        assert after.code == 0, (command, after)
        worked += 1
    assert worked, "nothing shows that the remedy works"


def following(steps, told):
    """The next command of a row, once it was told how the last one went; None in the end."""
    with contextlib.suppress(StopIteration):
        return steps.send(told)
    return None


def test_there_are_sixty_different_mistakes():
    assert len({mistake.name for mistake in TABLE.values()}) == len(TABLE) >= 60
