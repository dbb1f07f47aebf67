"""How far a command has come: a bar on a terminal, plain lines where there is none."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stillroom.sources import Progress

EVERY = 30.0
"""Seconds between two lines of the same phase."""
WISH = "STILLROOM_PROGRESS"
"""A variable of the environment: with the value no, no lines are printed."""
FEWEST = 0.01
"""The share of a phase that must be done before the rest of its time is guessed."""


class Lines:
    """Plain lines on standard error, for logs: each phase, and now and then how far it is.

    Guarantee: names and numbers of steps are public. Lengths of time may depend on records: the
    lines are for the operator, and nothing of them enters a bundle.

    Args:
        write: takes a line.
        clock: tells the time in seconds.

    >>> lines = Lines(write=print, clock=iter([0.0, 1.0, 31.0]).__next__)
    >>> lines.tell("training")
    training
    >>> lines.step(1, 300)
    >>> lines.step(50, 300)
    training: 50 of 300, about 3 min left
    """

    def __init__(
        self,
        write: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._clock = write or _to_stderr, clock
        self._name, self._began, self._last = "", 0.0, 0.0
        self._first: int | None = None

    def tell(self, name: str) -> None:
        """A phase begins."""
        self._name, self._first = name, None
        self._began = self._last = self._clock()
        self._write(name)

    def step(self, done: int, total: int) -> None:
        """So much of the phase is done."""
        now = self._clock()
        if self._first is None or done < self._first:
            # What was done before, as in a run that goes on, took none of this time.
            self._first, self._began = max(0, done - 1), self._last if done else now
        if now - self._last < EVERY:
            return
        self._last = now
        self._write(f"{self._name}: {done} of {total}{self._left(done, total, now)}")

    def _left(self, done: int, total: int, now: float) -> str:
        from stillroom.sources.trials import told

        own, rest = done - (self._first or 0), total - done
        if not rest or own < FEWEST * total:
            return ""
        return f", about {told((now - self._began) * rest / own)} left"


def _to_stderr(line: str) -> None:
    if os.environ.get(WISH) != "no":
        print(line, file=sys.stderr, flush=True)


@contextmanager
def shown() -> Iterator[Progress]:
    """Progress of a run for whoever looks on, or reads a log later."""
    from stillroom.sources import Progress

    if not sys.stderr.isatty():
        lines = Lines()
        yield Progress(tell=lines.tell, step=lines.step, expect=lambda p: _to_stderr(expected(p)))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def tell(name: str) -> None:
            bar.reset(task, description=name, total=None)

        yield Progress(
            tell=tell,
            step=lambda done, total: bar.update(task, completed=done, total=total),
            expect=lambda phases: bar.console.print(expected(phases), highlight=False),
        )


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """One thing that takes its time and cannot say how far it is."""
    if not sys.stderr.isatty():
        _to_stderr(what)
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def expected(phases: Sequence[tuple[str, float]]) -> str:
    """One line on how long a run will take, the longest phases first.

    >>> expected([("features", 20.0), ("training", 110.0), ("measuring", 0.1)])
    'about 2 min on this machine: training 2 min, features 20 s'
    """
    from stillroom.sources.trials import told

    whole = sum(seconds for _, seconds in phases)
    longest = sorted(phases, key=lambda phase: -phase[1])
    named = [f"{name} {told(seconds)}" for name, seconds in longest if seconds >= 0.05 * whole]
    return f"about {told(whole)} on this machine: {', '.join(named)}"
