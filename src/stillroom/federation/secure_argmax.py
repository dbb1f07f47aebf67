"""Only the winner is opened: entities share noisy rows, three parties compare, nobody sees counts.

Every entity Shamir-shares its noisy rows (queries x classes, with the noise that its gate drew) to
three MPyC parties. Each party adds the shares it has. Together they compute the argmax of every row
and open nothing else. Where classes tie, the first one wins, as in NumPy.

**What it costs.** The same as opening the whole noisy histogram. That bound is the worst case and
holds for the argmax too, which is computed from the histogram. Accounting that depends on the votes
is not offered. `ArgmaxPlan.leakage` is what the masks of the comparisons add to delta.

**Who is trusted.** Three parties of which at most one is curious, and all of which follow the
protocol (semi-honest, honest majority). Two parties that put their shares together see every
entity's noisy rows, one by one; what holds then is the price of each entity's own noise. A party
that deviates can open other things or change the winner. So can an entity whose numbers are out of
range. Beyond that it rests on MPyC's protocols, SHAKE-128 under keys of 128 bits, and AES-256.
`argmax_party` says which fault of MPyC is mended here.

**Where it runs.** `secure_argmax` starts all three parties on this machine, as processes of one
user: a rehearsal of three organisations, and no protection from that user. They listen on
127.0.0.1 only, and talk over TLS under certificates that are made for the session. Shares reach
them through pipes and touch no disk.

**When it fails.** MPyC waits for a lost party without end. So a supervisor watches the three: when
one ends early, or when the deadline passes, all of them are ended and there is no answer. What was
charged for the rows stays charged, and the same packets may be used again.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput, StillroomError
from stillroom.extras import unloaded
from stillroom.federation.argmax_certificates import AUTHORITY, write_certificates
from stillroom.federation.argmax_party import LOOPBACK, Job
from stillroom.federation.argmax_plan import PARTIES, ArgmaxPlan
from stillroom.federation.argmax_shares import SharePacket, reconstructed, share_rows, summed

__all__ = [
    "ArgmaxPlan",
    "Opened",
    "PartyLost",
    "SharePacket",
    "reconstructed",
    "secure_argmax",
    "share_rows",
]

PROGRAM = "stillroom.federation.argmax_party"
WHERE = "secure argmax"


class PartyLost(StillroomError):
    """The three parties did not finish together; nothing was opened to the caller."""


@dataclass(frozen=True)
class Opened:
    """What came out.

    Args:
        winners: the class of each query.
        sent: bytes that each party sent to the two others, without those of TLS.
        seconds: from the moment all were connected, of the slowest party.
    """

    winners: npt.NDArray[np.int64] = field(repr=False)
    sent: tuple[int, ...]
    seconds: float


def secure_argmax(
    plan: ArgmaxPlan, packets: Iterable[SharePacket], deadline: float = 120.0
) -> Opened:
    """Let three parties open the argmax of each row of the sum, and nothing else.

    Guarantee: when this ends, in whatever way, the parties have ended too and their keys are gone.
    All three gave the same answer, over the same entities, of which at most `plan.dropouts` are
    missing.

    Assumes: what the module says about who is trusted.

    Args:
        plan: the session's public numbers.
        packets: three per entity, in any order, as `share_rows` makes them.
        deadline: seconds after which everything is ended.

    Returns:
        The winners, and what it took.

    Raises:
        BadInput: the extra is missing, packets do not belong together, or the deadline is not a
            positive number.
        PartyLost: a party ended early or disagreed, or the deadline passed.
    """
    if find_spec("mpyc") is None:
        why = "it compares shared numbers"
        raise unloaded("mpyc", where=WHERE, why=why, absent=True, extra="mpc")
    if not 0 < deadline < float("inf"):
        raise BadInput(
            "the deadline is not a positive number of seconds",
            where="deadline",
            why="parties that lose one of them would wait for ever",
            remedy="give more than the time that the benchmark shows for so many queries",
        )
    ends = time.monotonic() + deadline
    shares = _sorted(plan, packets)
    with _session(plan, shares) as jobs:
        return _agreed(plan, _reports(jobs, ends, deadline))


def _sorted(plan: ArgmaxPlan, packets: Iterable[SharePacket]) -> list[dict[int, bytes]]:
    """Each party's packets by entity; what parties would refuse is refused before they start."""
    shares: list[dict[int, bytes]] = [{} for _ in range(PARTIES)]
    for packet in packets:
        fits = 0 <= packet.party < PARTIES and packet.entity not in shares[packet.party]
        if not fits:
            raise BadInput(
                "a share packet is there twice, or for a party that does not exist",
                where=f"share packet of entity {packet.entity}",
                why="its votes would count twice, or not at all",
                remedy="give one packet per entity and party",
            )
        shares[packet.party][packet.entity] = packet.content
    if len({tuple(sorted(share)) for share in shares}) != 1:
        raise BadInput(
            "the parties have packets of different entities",
            where="share packets",
            why="they would add different things, and open a wrong winner",
            remedy="leave out the packets of entities that did not reach all three",
        )
    for party, share in enumerate(shares):
        summed(plan, party, share.values())
    return shares


@contextmanager
def _session(
    plan: ArgmaxPlan, shares: list[dict[int, bytes]]
) -> Iterator[list[tuple[subprocess.Popen[bytes], bytes]]]:
    """Three parties that wait for their jobs; in the end they and their keys are gone."""
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="still-argmax-"))
        folders = [Path(scratch) / str(party) for party in range(PARTIES)]
        for folder in folders:
            folder.mkdir(mode=0o700)
        write_certificates(folders)
        # Bound here, so that no other program can take the port before the party does.
        sockets = [stack.enter_context(socket.socket()) for _ in folders]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        ports = tuple(one.getsockname()[1] for one in sockets)
        held, leash = os.pipe()
        stack.callback(os.close, leash)
        stack.callback(os.close, held)
        roster = tuple(sorted(shares[0]))
        jobs: list[tuple[subprocess.Popen[bytes], bytes]] = []
        stack.callback(_end, jobs)
        for party, folder in enumerate(folders):
            whole = b"".join(shares[party][entity] for entity in roster)
            job = Job(plan, party, ports, str(folder), roster, whole)
            process = _started(held, sockets[party].fileno(), folder)
            jobs.append((process, job.written()))
        yield jobs


def _started(leash: int, listening: int, folder: Path) -> subprocess.Popen[bytes]:
    """A party's process; it ends by itself when this one does, however that happens."""
    settings = {name: text for name, text in os.environ.items() if not name.startswith("MPYC_")}
    # Of all authorities only the session's own counts.
    settings |= {"SSL_CERT_FILE": str(folder / ".config" / AUTHORITY), "SSL_CERT_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-m", PROGRAM, str(leash), str(listening)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a trace may quote shares
        pass_fds=(leash, listening),
        start_new_session=True,  # Ctrl-C is heard here, and all are ended from here
        env=settings | {"OMP_NUM_THREADS": "1"},
    )


def _end(jobs: list[tuple[subprocess.Popen[bytes], bytes]]) -> None:
    for process, _ in jobs:
        process.kill()
    for process, _ in jobs:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


def _reports(
    jobs: list[tuple[subprocess.Popen[bytes], bytes]], ends: float, deadline: float
) -> list[dict[str, Any]]:
    """What the parties report, once all have; the first that fails ends them all."""
    ended: queue.Queue[tuple[int, bytes]] = queue.Queue()

    def talk(party: int, process: subprocess.Popen[bytes], job: bytes) -> None:
        ended.put((party, process.communicate(job)[0]))

    talks = [
        threading.Thread(target=talk, args=(party, *job), daemon=True)
        for party, job in enumerate(jobs)
    ]
    reports: list[dict[str, Any]] = [{} for _ in jobs]
    try:
        for thread in talks:
            thread.start()
        for _ in jobs:
            party, answer = ended.get(timeout=max(0.0, ends - time.monotonic()))
            if jobs[party][0].returncode != 0:
                raise _lost(party, jobs[party][0].returncode, answer)
            reports[party] = json.loads(answer)
    except queue.Empty:
        raise PartyLost(
            f"the three parties did not finish within {deadline:g} seconds, and were ended",
            where=WHERE,
            why="no winner was opened here; what was charged for the rows stays charged",
            remedy="give the same packets again, with a later deadline if the machine is slow",
        ) from None
    finally:
        for process, _ in jobs:
            process.kill()
        for thread in talks:
            if thread.ident is not None:
                thread.join()
    return reports


def _lost(party: int, code: int, answer: bytes) -> StillroomError:
    """Why a party ended early: what it refused, or how it was ended."""
    try:
        told = json.loads(answer)
    except ValueError:
        told = {}
    if "what" in told:
        return BadInput(told.pop("what"), **told)
    if code < 0:
        how = f"by signal {signal.Signals(-code).name}"
    else:
        how = f"with {told['fault']}" if "fault" in told else f"with exit code {code}"
    return PartyLost(
        f"party {party} ended {how}, and the two others were ended",
        where=WHERE,
        why="no winner was opened here; what was charged for the rows stays charged",
        remedy="give the same packets again",
    )


def _agreed(plan: ArgmaxPlan, reports: list[dict[str, Any]]) -> Opened:
    """The answer that all parties gave."""
    answers = [np.array(report["winners"], np.int64) for report in reports]
    first = answers[0]
    whole = first.shape == (plan.queries,) and ((first >= 0) & (first < plan.classes)).all()
    if not whole or any(not np.array_equal(first, other) for other in answers[1:]):
        raise PartyLost(
            "the three parties do not agree on the winners",
            where=WHERE,
            why="one of them had damaged shares, or does not follow the protocol",
            remedy="believe none of the answers; find out which party differs",
        )
    sent = tuple(int(report["sent"]) for report in reports)
    return Opened(first, sent, max(float(report["seconds"]) for report in reports))
