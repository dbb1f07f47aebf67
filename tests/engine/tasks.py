"""Tasks that workers can import: a small training, and several ways to fail."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np

from stillroom.errors import BadInput, WrongData
from stillroom.randomness import normals, seeded_torch


def train(number):
    """A small network on its own numbers; wide enough that threads would share its sums."""
    import torch

    x = torch.from_numpy(normals(number, "x", size=(256, 64))).float()
    y = (x[:, 0] > 0).long()
    with seeded_torch(number, "start"):
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2)
        )
    weights = list(model.parameters())
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.data -= 0.5 * slope
    return {name: value.numpy() for name, value in model.state_dict().items()}


def train_and_look(number):
    """A training, and what the worker was born with and how many threads it has."""
    from threadpoolctl import threadpool_info

    result = train(number)
    born_with = Path("/proc/self/environ").read_bytes().split(b"\0")
    wished = {b"OMP_NUM_THREADS=1", b"OMP_WAIT_POLICY=PASSIVE", b"ORT_DISABLE_TELEMETRY=1"}
    quiet = wished <= set(born_with)
    return {
        **result,
        "seen: pid": np.array(os.getpid()),
        "seen: born quiet": np.array(quiet),
        "seen: torch threads": np.array(sys.modules["torch"].get_num_threads()),
        "seen: threads": np.array([pool["num_threads"] for pool in threadpool_info()]),
    }


def listeners(_):
    """The ports that some process of this network listens on for other machines."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text().splitlines()[1:]
    ]
    listening = [place.split(":") for _, place, _, state, *_ in lines if state == "0A"]
    loopback = re.compile("0100007F|0{24}01000000|0{16}FFFF00000100007F")
    return {
        "reachable": np.array(
            [int(port, 16) for host, port in listening if not loopback.fullmatch(host)],
            dtype=np.int64,
        )
    }


def count(diary, number):
    """Work without torch, noted in a diary as soon as it begins."""
    with Path(diary).open("a") as file:
        file.write(f"{number}\n")
    return {"numbers": normals(number, "numbers", size=5), "square": np.array(number**2)}


def count_slowly(diary, number):
    result = count(diary, number)
    time.sleep(0 if number < 2 else 60)
    return result


def compute_for_ever(witness, number):
    """Says that it began, and holds the pipe open for as long as it lives."""
    os.write(os.open(witness, os.O_WRONLY), b"x")
    while True:
        number += 1


class NeverLoaded:
    """A payload that says when a worker begins to read it, and is never read to its end."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return compute_for_ever, (self.witness, 0)


def die_once(marker, number):
    """Killed like by the system when memory runs out, but only the first time."""
    if number == 2 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"number": np.array(number)}


def die_always(parent, number):
    if number == 2 and os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"number": np.array(number)}


def refuse(number):
    if number == 1:
        raise WrongData("the shard is empty", where="shard", why="w", remedy="r")
    return {"number": np.array(number)}


def refuse_without_a_place(number):
    raise BadInput("the shard is empty")


def stumble(number):
    raise ZeroDivisionError("an ordinary fault")


def is_a_file(payload):
    return {"mapped": np.array(isinstance(payload, np.memmap))}


def give(result, _):
    return result
