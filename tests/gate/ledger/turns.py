"""Two processes, one of which runs at a time: whose turn it is, is decided at every lock boundary.

A process stops before it takes a lock or begins a transaction, before it commits, and before a file
gets or loses its name. There it waits until it is told to go on. No clock is involved.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress

from stillroom.errors import StillroomError

STOPPED, BLOCKED, ENDED = b"s", b"b", b"e"


class _Stops:
    """In the child: where it stops, and how it waits for its turn."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.playing = False

    def wait(self, state: bytes = STOPPED) -> None:
        if not self.playing:
            return
        self._line.sendall(state)
        if not self._line.recv(1):
            os._exit(98)  # whoever decides is gone

    def until_free(self, attempt: Callable[[], object]) -> object:
        while True:
            try:
                return attempt()
            except BlockingIOError:
                self.wait(BLOCKED)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                self.wait(BLOCKED)

    def put_in(self) -> None:
        stops, lock = self, fcntl.flock

        def flock(descriptor: int, kind: int) -> None:
            if kind & fcntl.LOCK_NB:
                lock(descriptor, kind)
                return
            stops.wait()
            stops.until_free(lambda: lock(descriptor, kind | fcntl.LOCK_NB))

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values):
                if sql.startswith(("BEGIN", "COMMIT")):
                    stops.wait()
                run = super().execute
                return stops.until_free(lambda: run(sql, *values))

        connect = sqlite3.connect

        def patient(*args, **options):
            return connect(*args, **{**options, "timeout": 0, "factory": Connection})

        fcntl.flock, sqlite3.connect = flock, patient
        for name in ("link", "replace", "unlink"):
            setattr(os, name, self._after_a_stop(getattr(os, name)))

    def _after_a_stop(self, real: Callable) -> Callable:
        def stopping(*args, **options):
            self.wait()
            return real(*args, **options)

        return stopping


class Player:
    """In the parent: one of the two processes.

    Args:
        prepare: run at once; returns what is to be played, whose end is the exit code.
    """

    def __init__(self, prepare: Callable[[], Callable[[], object]]) -> None:
        self._line, far = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._line.close()
            os._exit(_play(prepare, far))
        far.close()
        self.stops = 0
        self.ended = False
        assert self._line.recv(1) == STOPPED, "it ended before its first turn"

    def go(self) -> bool:
        """Let it run to its next stop; whether it came further."""
        self._line.sendall(b"g")
        state = self._line.recv(1)
        self.ended = state in (ENDED, b"")
        self.stops += state == STOPPED
        return state != BLOCKED

    def code(self) -> int:
        """How it ended."""
        self._line.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _play(prepare: Callable[[], Callable[[], object]], line: socket.socket) -> int:
    try:
        stops = _Stops(line)
        stops.put_in()
        action = prepare()
        stops.playing = True
        stops.wait()
        try:
            action()
            code = 0
        except StillroomError as error:
            code = error.exit_code
        with suppress(OSError):
            line.sendall(ENDED)
        return code
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 1


def play(
    first: Callable[[], Callable[[], object]],
    second: Callable[[], Callable[[], object]],
    before: int,
    between: int,
) -> tuple[int, int]:
    """The first goes `before` stops far, the second `between`, then each to its end.

    Whoever is blocked gives its turn away; that both are blocked must not happen.
    """
    one, two = Player(first), Player(second)
    for player, other, stops in ((one, two, before), (two, one, between), (one, two, -1)):
        _run(player, other, stops)
    _run(two, one, -1)
    return one.code(), two.code()


def _run(player: Player, other: Player, stops: int) -> None:
    while not player.ended and stops != 0:
        if player.go():
            stops -= 1
        elif stops > 0:
            return  # it has come as far as it can
        else:
            assert not other.ended, "blocked by nobody"
            assert other.go(), "both are blocked: a deadlock"


def stops_alone(prepare: Callable[[], Callable[[], object]]) -> int:
    """How often a process stops when nobody else is there."""
    player = Player(prepare)
    while not player.ended:
        assert player.go()
    assert player.code() != 1
    return player.stops


def schedules(stops: int) -> Iterator[tuple[int, int]]:
    """Every way to leave the first after some stops, and the second after some."""
    return itertools.product(range(stops + 1), repeat=2)
