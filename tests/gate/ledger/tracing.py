"""A child whose system calls on the files of one folder are counted, failed or its last.

This is how SQLite itself is tested: every call fails once, and every call is the last one before
death. The kernel's own tracing is used (ptrace), so that the calls of SQLite and of the interpreter
are met alike; calls on other files, such as imports, are let be.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64"

_TRACEME, _POKEUSER, _CONT, _SYSCALL, _SETOPTIONS, _SYSCALL_INFO = 0, 6, 7, 24, 0x4200, 0x420E
_SYSGOOD_AND_EXITKILL = 1 | 1 << 20
_ORIG_RAX, _RAX = 15 * 8, 10 * 8

# By number: the name, and where the path or the descriptor stands among the arguments.
_BY_PATH = {
    **{2: ("open", 0), 257: ("openat", 1), 4: ("stat", 0), 6: ("lstat", 0), 262: ("fstatat", 1)},
    **{332: ("statx", 1), 21: ("access", 0), 269: ("faccessat", 1), 89: ("readlink", 0)},
    **{83: ("mkdir", 0), 258: ("mkdirat", 1), 82: ("rename", 0), 264: ("renameat", 1)},
    **{316: ("renameat2", 1), 86: ("link", 0), 265: ("linkat", 1), 87: ("unlink", 0)},
    **{263: ("unlinkat", 1)},
}
_BY_DESCRIPTOR = {
    **{0: ("read", 0), 1: ("write", 0), 17: ("pread", 0), 18: ("pwrite", 0), 5: ("fstat", 0)},
    **{74: ("fsync", 0), 75: ("fdatasync", 0), 77: ("ftruncate", 0), 285: ("fallocate", 0)},
    **{73: ("flock", 0), 72: ("fcntl", 0), 8: ("lseek", 0), 217: ("getdents", 0), 9: ("mmap", 4)},
    **{93: ("fchown", 0), 91: ("fchmod", 0), 3: ("close", 0)},
}
CHANGING = {
    *("open", "openat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "write", "pwrite", "ftruncate", "fallocate"),
}
"""Calls after which other bytes or names may be on disk: between two of them deaths are alike."""
ALL = {name for name, _ in (*_BY_PATH.values(), *_BY_DESCRIPTOR.values())}


@dataclass(frozen=True)
class Call:
    """One system call on a file of the folder."""

    name: str
    file: str


@dataclass(frozen=True)
class Ended:
    """How a traced child ended: its exit code, or minus the signal; and its calls."""

    code: int
    calls: list[Call]


class _Child:
    def __init__(self, pid: int, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.argtypes = [
            ctypes.c_long,
            ctypes.c_long,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        self._libc.ptrace.restype = ctypes.c_long
        self.pid = pid
        self._folder = str(folder)
        self._room = ctypes.create_string_buffer(128)

    def request(self, what: int, address: int = 0, data: int = 0) -> None:
        if self._libc.ptrace(what, self.pid, address, data) < 0:
            told = ctypes.get_errno()
            raise OSError(told, os.strerror(told))

    def next_stop(self) -> int:
        """Go on to the next entry into a call or exit from it; the raw status."""
        self.request(_SYSCALL)
        return os.waitpid(self.pid, 0)[1]

    def call(self) -> Call | None:
        """The call that is being entered, if it is on a file of the folder."""
        place = ctypes.addressof(self._room)
        self.request(_SYSCALL_INFO, len(self._room), place)
        number, *arguments = struct.unpack_from("<7Q", self._room.raw, 24)
        if number in _BY_PATH:
            name, where = _BY_PATH[number]
            file = self._text(arguments[where])
        elif number in _BY_DESCRIPTOR:
            name, where = _BY_DESCRIPTOR[number]
            file = self._named(arguments[where])
        else:
            return None
        return Call(name, file[len(self._folder) :]) if file.startswith(self._folder) else None

    def _text(self, address: int) -> str:
        if not address:
            return ""
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(400).split(b"\0")[0].decode(errors="replace")

    def _named(self, descriptor: int) -> str:
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{descriptor & 0xFFFFFFFF}")
        except OSError:
            return ""

    def fail(self, call: Call) -> None:
        """Let the call that is being entered not happen, and return an error.

        A close happens all the same: Linux lets go of the file also where it returns an error.
        """
        number = errno.ENOSPC if call.name in CHANGING - {"unlink", "unlinkat"} else errno.EIO
        if call.name != "close":
            self.request(_POKEUSER, _ORIG_RAX, (1 << 64) - 1)
        self.next_stop()
        self.request(_POKEUSER, _RAX, (1 << 64) - number)


def traced(
    prepare: Callable[[], Callable[[], int]],
    folder: Path,
    *,
    fails: int | None = None,
    dies: int | None = None,
) -> Ended:
    """Run in a child what `prepare` returns; only its calls count, and its result is the exit code.

    Args:
        prepare: run in the child before it is traced.
        folder: whose files are watched.
        fails: which call is to fail, if any.
        dies: which call is not to happen any more, if any.
    """
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            action = prepare()
            ctypes.CDLL(None).ptrace(_TRACEME, 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            code = action()
        finally:
            os._exit(code)
    child = _Child(pid, folder)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):  # it ended before it could be traced
        raise AssertionError(f"the child ended early: {status}")
    child.request(_SETOPTIONS, 0, _SYSGOOD_AND_EXITKILL)
    calls: list[Call] = []
    while True:
        status = child.next_stop()
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return Ended(os.waitstatus_to_exitcode(status), calls)
        call = child.call()
        if call is not None:
            calls.append(call)
            if len(calls) - 1 == dies:
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                return Ended(os.waitstatus_to_exitcode(status), calls)
            if len(calls) - 1 == fails:
                child.fail(call)
                continue
        status = child.next_stop()
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return Ended(os.waitstatus_to_exitcode(status), calls)
