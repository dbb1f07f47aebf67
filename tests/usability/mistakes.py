"""What a row of the table is: a mistake, what it says, and how to mend it.

A row is a generator. It makes the mistake and yields the command; it is handed what the command
said, mends things as that says, and yields commands that must work now.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Generator
from dataclasses import dataclass

PARTS = ("error", "where", "why it matters", "what to do")


@dataclass(frozen=True)
class Told:
    """What a command has said, and how it ended."""

    code: int
    out: str
    err: str

    def part(self, title: str) -> str:
        """One of the four parts of a message."""
        found = [
            line.strip().removeprefix(f"{title}: ")
            for line in self.err.splitlines()
            if line.strip().startswith(f"{title}: ")
        ]
        return found[0] if len(found) == 1 else ""

    @property
    def remedy(self) -> str:
        return self.part("what to do")

    def quoted(self, part: str = "error") -> list[str]:
        """Whatever stands in quotes in one part of the message."""
        return re.findall(r"'([^']*)'", self.part(part))

    def command(self, **filled: str) -> str:
        """The command that the remedy names, with its placeholders filled in.

        Args:
            filled: what stands for a word in capitals, or for `reason`.
        """
        found = re.search(r"`(stillroom [^`]*)`|(stillroom .*)", self.remedy)
        assert found, self.remedy
        command = (found[1] or found[2]).split("; ")[0].replace("'...'", "'a test'")
        for name, value in filled.items():
            assert name in command, command
            command = command.replace(name, value)
        return command.removeprefix("stillroom ")


Row = Generator[str, Told, None]


@dataclass(frozen=True)
class Mistake:
    """A row of the table.

    Args:
        code: how the command ends.
        says: fragments of the four parts of its message.
        make: the row.
        slow: whether it trains.
    """

    code: int
    says: dict[str, str]
    make: Callable[..., Row]
    slow: bool = False

    @property
    def name(self) -> str:
        return self.make.__name__


TABLE: dict[tuple[str, str], Mistake] = {}
"""By file and name: pytest may import a file of rows twice."""


def mistake(code, what, where, why, remedy, slow=False):
    """Enter a row in the table."""
    says = dict(zip(PARTS, (what, where, why, remedy), strict=True))

    def enter(make):
        place = make.__code__.co_filename, make.__name__
        TABLE[place] = Mistake(code, says, make, slow)
        return make

    return enter


def words_of(command: str) -> list[str]:
    return shlex.split(command)
