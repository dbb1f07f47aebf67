"""States of trainings on disk: one that is cut off goes on where it was, a little back at most.

A state is as sensitive as the records it was trained on, so its folder decides who may see it.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from stillroom.durable import sweep, write_whole

OFTEN = 20.0
"""Seconds of work that may be lost when a training is cut off, beside its last pass."""
LOOK = 1.0
"""Seconds between two looks at how far workers are."""

Step = Callable[[int, int], None]


class Checkpoint:
    """The latest state of one training, in a file of its own.

    Args:
        file: for the state.
        key: all that the training depends on: the state of another is never taken up.
    """

    def __init__(self, file: Path, key: str) -> None:
        self._file, self._key, self._last = file, key, time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """The state; None where there is none, that of another training, or a damaged one."""
        try:
            found = torch.load(self._file, weights_only=True)
            return dict(found["state"]) if found["key"] == self._key else None
        except Exception:  # whatever is wrong with it, the training begins anew
            return None

    def keep(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """Keep the state, unless one was kept a moment ago."""
        if time.monotonic() - self._last >= OFTEN:
            self.keep_now(state())

    def keep_now(self, state: Mapping[str, Any]) -> None:
        """Keep the state, on disk when this ends."""
        content = io.BytesIO()
        torch.save({"key": self._key, "state": dict(state)}, content)
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self._file, content.getvalue())
        sweep(self._file)
        self._last = time.monotonic()

    def forget(self) -> None:
        """Remove the state: its training has ended."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def _passes_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.passes"


def tell_passes(folder: Path, name: str, done: int) -> None:
    """Let whoever watches the folder know how many passes a training has made."""
    with suppress(OSError):  # it is for the eye alone
        _passes_of(folder, name).write_text(str(done), encoding="ascii")


@contextmanager
def watched(folder: Path, planned: Mapping[str, int], on_step: Step) -> Iterator[None]:
    """Tell how many passes trainings in other processes have made, all of them together.

    Args:
        folder: where they tell it.
        planned: passes of each, by name.
        on_step: told how many are done, and of how many.
    """
    over, total = threading.Event(), sum(planned.values())

    def look() -> None:
        before = -1
        while not over.wait(LOOK):
            done = sum(min(_passes(folder, name), most) for name, most in planned.items())
            if done != before:
                on_step(done, total)
            before = done

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _clear(folder, list(planned))


def _passes(folder: Path, name: str) -> int:
    try:
        return int(_passes_of(folder, name).read_text(encoding="ascii") or 0)
    except (OSError, ValueError):
        return 0


def _clear(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        with suppress(OSError):
            _passes_of(folder, name).unlink(missing_ok=True)
