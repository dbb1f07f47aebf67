"""One of three computing parties: adds its shares, compares with the two others, opens the argmax.

`secure_argmax` starts it, as a program: `python -m stillroom.federation.argmax_party`. Its standard
input is a job, its standard output a report; nothing else is written.

Two things of MPyC are changed here:

- MPyC listens on all interfaces. The loop below listens on a socket that was bound to 127.0.0.1
  before the program began, and connects to 127.0.0.1 only.
- MPyC's comparison opens products a(x) r(x) of two secret polynomials as they are, in all fields
  but the smallest (`np_is_zero_public`). With its own share, each single party finds the roots, and
  so the secret a(0) or one other number, and with it bits of the noisy counts. It was tried:
  every secret was found. Here a random sharing of zero is added first, as MPyC does in the
  smallest fields. So no other version of MPyC than the one that was examined is accepted.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from stillroom.errors import BadInput, StillroomError
from stillroom.extras import needed
from stillroom.federation.argmax_plan import MODULUS, PARTIES, SECURITY, THRESHOLD, ArgmaxPlan
from stillroom.federation.argmax_shares import Elements, packet_size, summed

LOOPBACK = "127.0.0.1"
EXAMINED = "0.11"
"""The version of MPyC of which everything that the argmax opens was looked through."""
TOGETHER = 1000
"""Queries that are compared at once: memory grows with them, and time hardly shrinks."""


@dataclass(frozen=True)
class Job:
    """What one party needs to know.

    Args:
        plan: the session's public numbers.
        party: which one it is.
        ports: where all of them listen.
        folder: where its certificates are.
        roster: whose shares are added, the same for all parties.
        packets: its shares, one content after the other.
    """

    plan: ArgmaxPlan
    party: int
    ports: tuple[int, ...]
    folder: str
    roster: tuple[int, ...]
    packets: bytes = field(repr=False)

    def written(self) -> bytes:
        """The job as bytes: the length of its text, its text, and the packets."""
        told = {name: getattr(self, name) for name in ("party", "ports", "folder", "roster")}
        text = json.dumps(told | {"plan": json.loads(self.plan.document())}).encode()
        return len(text).to_bytes(8, "little") + text + self.packets

    @classmethod
    def read(cls, content: bytes) -> Job:
        """The job that these bytes are."""
        end = 8 + int.from_bytes(content[:8], "little")
        told = json.loads(content[8:end])
        plan = ArgmaxPlan(**told["plan"])
        ports, roster = tuple(told["ports"]), tuple(told["roster"])
        return cls(plan, told["party"], ports, told["folder"], roster, content[end:])

    def share(self) -> Elements:
        """This party's share of the sum of all rows."""
        size = packet_size(self.plan)
        parts = [self.packets[at : at + size] for at in range(0, len(self.packets), size)]
        return summed(self.plan, self.party, parts)


class LoopbackLoop(asyncio.SelectorEventLoop):
    """An event loop that listens on one given socket, and connects to this machine only."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__()
        self.listening = listening

    async def create_server(self, protocol_factory: Any, *given: Any, **options: Any) -> Any:
        """Listen on the given socket, wherever the caller would."""
        return await super().create_server(
            protocol_factory, sock=self.listening, ssl=options["ssl"]
        )

    async def create_connection(self, protocol_factory: Any, *given: Any, **options: Any) -> Any:
        """Connect to a port of this machine, whatever host the caller names."""
        _, port = given
        return await super().create_connection(protocol_factory, LOOPBACK, port, **options)


def start_mpyc(job: Job, loop: LoopbackLoop) -> Any:
    """MPyC's runtime for this party, on this loop.

    Raises:
        BadInput: MPyC is not installed, or it chose a loop of its own.
    """
    addresses = [word for port in job.ports for word in ("-P", f"{LOOPBACK}:{port}")]
    # It reads the command line when it is imported, and there is no other way to tell it.
    sys.argv = [sys.argv[0], *addresses, "-I", str(job.party), "-T", str(THRESHOLD)]
    sys.argv += ["-K", str(SECURITY), "--ssl", "--no-log", "--no-uvloop"]
    asyncio.set_event_loop(loop)
    with needed("mpyc", where="secure argmax", why="it compares shared numbers", extra="mpc"):
        from mpyc import asyncoro, runtime, thresha
    mpc = runtime.mpc
    settled = mpc._loop is loop and len(mpc.parties) == PARTIES and not mpc.options.no_prss
    if not settled or mpc.version != EXAMINED or mpc.options.sec_param != SECURITY:
        raise BadInput(
            f"MPyC is not version {EXAMINED}, or did not take its settings",
            where="secure argmax",
            why="it could listen where others can connect, or open more than the winner",
            remedy=f"pip install mpyc=={EXAMINED}",
        )
    hide_products(runtime.Runtime, asyncoro, thresha)
    return mpc


def hide_products(kind: Any, asyncoro: ModuleType, thresha: ModuleType) -> None:
    """Replace MPyC's public test for zero by one that opens nothing else."""

    async def np_is_zero_public(self: Any, a: Any) -> asyncio.Future[Any]:
        secret = (await self.gather(a)).reshape(-1)
        product = hidden_product(
            thresha,
            secret.field,
            self.pid,
            self.prfs(secret.field.order),
            (self._prss_uci(), self._prss_uci()),
            secret,
        )
        found = await self.output(product, threshold=2 * self.threshold)
        zero: asyncio.Future[Any] = (found == 0).reshape(a.shape)
        return zero

    # The annotation tells MPyC what to hand out at once; as a text it would not be understood.
    np_is_zero_public.__annotations__ = {"return": asyncio.Future}
    kind.np_is_zero_public = asyncoro.mpc_coro(np_is_zero_public)


def hidden_product(
    thresha: ModuleType,
    numbers: Any,
    party: int,
    prfs: Mapping[Any, Any],
    unique: tuple[bytes, bytes],
    secret: Any,
) -> Any:
    """A party's share of secret times random, safe to open: a sharing of zero hides the factors.

    The random factor is 0, and the answer wrong, with probability 2^-127.
    """
    factor = thresha.np_pseudorandom_share(
        numbers, PARTIES, party, prfs, unique[0], len(secret.value)
    )
    zero = thresha.np_pseudorandom_share_0(
        numbers, PARTIES, party, prfs, unique[1], len(secret.value)
    )
    return secret * factor + zero


async def opened(mpc: Any, job: Job, share: Elements) -> dict[str, Any]:
    """Compare with the two other parties, and open the argmax of every row.

    Returns:
        The winners, the bytes that this party sent, and the seconds since all were connected.

    Raises:
        BadInput: the parties do not add the same entities' rows of the same plan.
    """
    secint = mpc.SecInt(job.plan.bits, p=MODULUS)
    async with mpc:
        began = time.perf_counter()
        told = (job.plan.digest, job.roster)
        if await mpc.transfer(told) != [told] * PARTIES:
            raise BadInput(
                "the parties do not have the same plan and entities",
                where="secure argmax",
                why="they would add different things, and open a wrong winner",
                remedy="give all three the packets of the same entities",
            )
        parts = []
        for first in range(0, job.plan.queries, TOGETHER):
            part = secint.field.array(share[first : first + TOGETHER], check=False)
            parts.append(await mpc.output(mpc.np_argmax(secint.array(part), axis=1)))
        took = time.perf_counter() - began
        sent = sum(peer.protocol.nbytes_sent for peer in mpc.parties if peer.pid != mpc.pid)
    winners = [int(number) for number in np.concatenate(parts)]
    return {"winners": winners, "sent": sent, "seconds": took}


def run(job: Job, listening: socket.socket) -> dict[str, Any]:
    """Do a job; what is told of it."""
    loop = LoopbackLoop(listening)
    mpc = start_mpyc(job, loop)
    os.chdir(job.folder)  # MPyC looks for certificates below the working folder
    share = job.share()
    told: dict[str, Any] = mpc.run(opened(mpc, job, share))
    return told


def _end_with(leash: int) -> None:
    """End at once when the process that started this one has ended, in whatever way."""
    os.read(leash, 1)
    os._exit(1)


def main() -> int:
    """Read a job, do it, report; 0 if the argmax was opened."""
    leash, listening = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    threading.Thread(target=_end_with, args=(leash,), daemon=True).start()
    report, quiet = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # what libraries print is no report
    told: dict[str, Any]
    try:
        told = run(Job.read(sys.stdin.buffer.read()), listening)
    except StillroomError as error:
        told = {name: getattr(error, name) for name in ("what", "where", "why", "remedy")}
    except Exception as fault:
        told = {"fault": type(fault).__name__}  # its text may quote shares
    with os.fdopen(report, "w") as out:
        json.dump(told, out)
    return 0 if "winners" in told else 1


if __name__ == "__main__":
    sys.exit(main())
