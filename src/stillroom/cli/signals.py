"""How a command ends that is told to end: in order, in time, and saying how to go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
_ENDING = (signal.SIGTERM, signal.SIGHUP)
CODES = (INTERRUPTED, *(128 + number for number in _ENDING))

GRACE = 20.0
"""Seconds that workers and scratch folders are given to end; then the process ends without."""


_heard: list[int] = []
"""The signals that asked this process to end; a library may change the exception on its way."""


def end_on_signals() -> None:
    """From now on SIGTERM and SIGHUP end this process as Ctrl-C does, with a code of their own.

    A signal that was ignored when the process began, as `nohup` does, stays ignored.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    signal.set_wakeup_fd(told)
    threading.Thread(target=_insist, args=(heard,), daemon=True).start()


def _end(number: int, _: FrameType | None) -> NoReturn:
    for each in _ENDING:
        # Told once more, it ends at once.
        signal.signal(each, signal.SIG_DFL)
    _heard.append(number)
    raise SystemExit(128 + number)


def code_of(end: BaseException) -> int | None:
    """The exit code for what ended a command, if that was a signal."""
    if _heard:
        return 128 + _heard[0]
    return INTERRUPTED if isinstance(end, KeyboardInterrupt) else None


def _insist(heard: int) -> None:
    """End the process where a library's call that never returns holds up the handler."""
    while (number := os.read(heard, 1)[0]) not in _ENDING:
        pass
    time.sleep(GRACE)
    os._exit(128 + number)


def farewell(arguments: list[str], code: int) -> str:
    """What to tell the user of a command that was ended by a signal.

    >>> farewell(["verify", "bundle"], 130)
    'Interrupted. This command charges nothing.'
    """
    start = "Interrupted." if code == INTERRUPTED else "Ended by a signal."
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command not in ("release", "demo") or "--dry-run" in arguments:
        return f"{start} This command charges nothing."
    if command == "demo" and not any(word.startswith(("-o", "--output")) for word in arguments):
        return f"{start} Given again, the demo starts over; with -o FOLDER it goes on where it was."
    return (
        f"{start} The same command goes on where it was. What was reserved stays charged, and is "
        "not charged again; the ledger is true."
    )
