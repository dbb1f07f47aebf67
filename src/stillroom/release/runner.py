"""Run a stranger's model in a process of its own, which is ended when it takes too long.

Started as a file, with nothing of this package: it reads the model, then batches, from its input
and answers on its output. What ONNX Runtime does with a hostile file (wait, fill the memory, crash)
it does there.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
from contextlib import suppress
from typing import IO, Any

import numpy as np

ROOM = 512 << 20
"""Memory beside the model and what Python and ONNX Runtime take themselves."""


def send(stream: IO[bytes], head: dict[str, Any], *bodies: bytes) -> None:
    """One message: a JSON head and some bytes."""
    text = json.dumps({**head, "sizes": [len(body) for body in bodies]}).encode()
    stream.write(struct.pack("<I", len(text)) + text)
    for body in bodies:
        stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next message; None at the end, or where it breaks off."""
    length = stream.read(4)
    if len(length) < 4:
        return None
    text = stream.read(struct.unpack("<I", length)[0])
    try:
        head = json.loads(text)
        bodies = [stream.read(size) for size in head["sizes"]]
    except (LookupError, ValueError):
        return None
    whole = [len(body) for body in bodies] == head["sizes"]
    return (head, bodies) if whole else None


def _limit_memory(beside: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = taken + ROOM + beside
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _serve() -> None:
    asks, answers = sys.stdin.buffer, sys.stdout.buffer
    receive(asks)
    try:
        import onnxruntime
    except (ImportError, OSError) as fault:
        absent = isinstance(fault, ModuleNotFoundError) and fault.name == "onnxruntime"
        send(answers, {"unloaded": "absent" if absent else "broken"})
        return
    send(answers, {})
    opening = receive(asks)
    if opening is None:
        return
    names, model = opening[0]["outputs"], opening[1][0]
    # Where there is no such limit, only the time is bounded.
    with suppress(OSError, ValueError):
        _limit_memory(2 * len(model))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model,
            options,
            providers=["CPUExecutionProvider"],
            # It would run parts of the model before anybody asks.
            disabled_optimizers=["ConstantFolding"],
        )
    except Exception as error:
        send(answers, {"fault": type(error).__name__})
        return
    send(answers, {})
    while (asked := receive(asks)) is not None:
        head, (records,) = asked
        x = np.frombuffer(records, dtype=np.float32).reshape(head["shape"])
        try:
            given = session.run(names, {"x": x})
            told = {
                name: {"shape": list(array.shape), "dtype": array.dtype.str}
                for name, array in zip(names, given, strict=True)
            }
            send(answers, told, *(array.tobytes() for array in given))
        except Exception as error:
            send(answers, {"fault": type(error).__name__})


if __name__ == "__main__":
    _serve()
