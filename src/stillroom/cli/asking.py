"""Questions at a terminal; where there is none, the flags that are missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from stillroom.errors import BadInput

Answer = TypeVar("Answer")


class Asker:
    """Asks for what no flag has said.

    At a terminal every question is asked until its answer fits. Elsewhere what has no usual answer
    is noted as missing.
    """

    def __init__(self) -> None:
        self.at_terminal = sys.stdin.isatty()
        self.missing: list[str] = []

    def text(
        self, flag: str, given: str | None, question: str, usual: str | None = None
    ) -> str | None:
        """A text; None where nobody can be asked."""
        return self._asked(flag, given, question, usual, lambda text: text or None)

    def choice(
        self,
        flag: str,
        given: str | None,
        question: str,
        choices: Sequence[str],
        usual: str | None = None,
    ) -> str | None:
        """One of some words."""
        whole = f"{question} ({', '.join(choices)})"
        return self._asked(flag, given, whole, usual, lambda t: t if t in choices else None)

    def number(
        self,
        flag: str,
        given: int | None,
        question: str,
        usual: int | None,
        *,
        required: bool = False,
    ) -> int | None:
        """A whole number above 0.

        Args:
            flag: that says it.
            given: by the flag.
            question: at the terminal.
            usual: proposed at the terminal, and taken elsewhere unless it is required.
            required: whether it must be said, or confirmed.
        """
        if given is None and required and not self.at_terminal:
            self.missing.append(flag)
            return None
        return self._asked(flag, given, question, usual, _whole)

    def real(self, flag: str, given: float | None, question: str) -> float | None:
        """A number above 0."""
        return self._asked(flag, given, question, None, _real)

    def refusal(self) -> BadInput:
        """What to say where something is missing and nobody can be asked."""
        return BadInput(
            f"not said: {', '.join(self.missing)}",
            where="recipe new",
            why="there is no terminal to ask at, and none of these has a value that fits everybody",
            remedy=f"give {', '.join(self.missing)}, or run it at a terminal",
        )

    def _asked(
        self,
        flag: str,
        given: Answer | None,
        question: str,
        usual: Answer | None,
        read: Callable[[str], Answer | None],
    ) -> Answer | None:
        if given is not None:
            return given
        if not self.at_terminal:
            if usual is None:
                self.missing.append(flag)
            return usual
        shown = question if usual is None else f"{question} [{usual}]"
        while True:
            typer.echo(f"{shown}: ", nl=False)
            line = sys.stdin.readline()
            if not line:
                self.missing.append(flag or question)
                raise self.refusal()
            told = usual if not line.strip() else read(line.strip())
            if told is not None:
                return told


def _whole(text: str) -> int | None:
    plain = text.replace(",", "").replace("_", "")
    return int(plain) if plain.isascii() and plain.isdigit() and int(plain[:12]) > 0 else None


def _real(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number > 0 else None
