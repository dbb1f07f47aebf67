"""Runs one command where all it says to the network, and all it writes, is seen.

Started by `watched`, under `unshare`: in its network every address of the world leads back to the
machine itself, so that whatever is sent is seen and goes nowhere. Folders that all programs may
write to are empty ones of this run alone.

    python watch.py REPORT KEPT... -- COMMAND...
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run")
"""Where programs leave things or find sockets of services, such as a resolver's."""

OWN = "192.0.2.1"
"""An address of this machine's, as one has that is connected."""

LOOPBACK = 1
"""The number of the first interface of every network namespace."""

_BIND = 4096
_ETH_P_ALL, _SIOCSIFFLAGS, _SIOCSIFADDR, _UP = 3, 0x8914, 0x8916, 0x1
_NEW_ROUTE, _REQUEST_ACK_CREATE, _LOCAL_TABLE, _LOCAL = 24, 0x1 | 0x4 | 0x400, 255, 2


def main(report: Path, kept: list[Path], command: list[str]) -> None:
    _make_shared_folders_private(kept)
    _lead_the_world_to_loopback()
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL)) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        sent: dict[str, None] = {}
        ended = threading.Event()
        listener = threading.Thread(target=_listen, args=(wire, sent, ended))
        listener.start()
        code = subprocess.run(command, check=False).returncode
        ended.set()
        listener.join()
    report.write_text(json.dumps({"code": code, "sent": list(sent), "written": _left(kept)}))


def _make_shared_folders_private(kept: list[Path]) -> None:
    """Empty folders in their place; what the command needs of the old ones shows through."""
    handles = [os.open(path, os.O_PATH) for path in kept]
    for place in filter(os.path.isdir, SHARED):
        _mount("none", place, "tmpfs")
    for path, handle in zip(kept, handles, strict=True):
        if _shared(path):
            path.mkdir(parents=True, exist_ok=True)
            _mount(f"/proc/self/fd/{handle}", str(path), flags=_BIND)
        os.close(handle)


def _mount(source: str, place: str, kind: str = "", flags: int = 0) -> None:
    # By the system call: the command of that name would follow a handle back to its path.
    words = (os.fsencode(word) for word in (source, place, kind))
    if ctypes.CDLL(None, use_errno=True).mount(*words, flags, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), place)


def _shared(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SHARED)


def _lead_the_world_to_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(OWN))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP))
        fcntl.ioctl(any_socket, _SIOCSIFADDR, struct.pack("16s16s", b"lo:0", address))
    source = struct.pack("=HH4s", 8, 7, socket.inet_aton(OWN))  # RTA_PREFSRC
    _route(socket.AF_INET, source)
    # A machine may have no IPv6 at all.
    with contextlib.suppress(OSError):
        _route(socket.AF_INET6, b"")


def _route(family: int, source: bytes) -> None:
    """Any destination leads to this machine itself."""
    interface = struct.pack("=HHi", 8, 4, LOOPBACK)  # RTA_OIF
    route = (
        struct.pack("=8BI", family, 0, 0, 0, _LOCAL_TABLE, 4, 254, _LOCAL, 0) + interface + source
    )
    head = struct.pack("=IHHII", 16 + len(route), _NEW_ROUTE, _REQUEST_ACK_CREATE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(head + route)
        if fault := struct.unpack_from("=i", kernel.recv(4096), 16)[0]:
            raise OSError(-fault, os.strerror(-fault))


def _listen(wire: socket.socket, sent: dict[str, None], ended: threading.Event) -> None:
    """Note each packet that was not for this machine, and each question for a name."""
    wire.settimeout(0.1)
    while True:
        try:
            packet, (_, kind, direction, *_) = wire.recvfrom(65536)
        except TimeoutError:
            if ended.is_set():
                return
            continue
        if direction == socket.PACKET_OUTGOING and (told := _told(kind, packet)):
            sent[told] = None


def _told(kind: int, packet: bytes) -> str | None:
    if kind == 0x0800:
        protocol, start = packet[9], 4 * (packet[0] & 15)
        target = socket.inet_ntop(socket.AF_INET, packet[16:20])
        own = target.startswith("127.") or target == OWN
    else:
        protocol, start = packet[6], 40
        target = socket.inet_ntop(socket.AF_INET6, packet[24:40])
        own = target == "::1"
    if protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
        # Errors that this kernel sends back, and the neighbour talk of IPv6.
        return None
    port = int.from_bytes(packet[start + 2 : start + 4], "big")
    if port == 53:
        return f"asked for {_name(packet[start + 20 :])}" if protocol == 17 else "asked by TCP"
    return None if own else f"sent to {target}:{port}"


def _name(question: bytes) -> str:
    labels: list[str] = []
    while question and question[0]:
        labels.append(question[1 : 1 + question[0]].decode("ascii", "replace"))
        question = question[1 + question[0] :]
    return ".".join(labels)


def _left(kept: list[Path]) -> list[str]:
    """Files in the shared folders, but not in what shows through."""
    found = []
    for place in filter(os.path.isdir, SHARED):
        for folder, folders, files in os.walk(place):
            folders[:] = [name for name in folders if Path(folder, name) not in kept]
            found += [os.path.join(folder, name) for name in files]
    return sorted(found)


if __name__ == "__main__":
    cut = sys.argv.index("--")
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:cut]], sys.argv[cut + 1 :])
