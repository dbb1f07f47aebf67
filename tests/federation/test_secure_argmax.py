"""Three parties open the winners and nothing else, and end together."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from federation.sharing import planned, running, shared, tied_rows
from processes import started, with_tests
from stillroom.errors import BadInput
from stillroom.federation import secure_argmax as supervisor
from stillroom.federation.argmax_certificates import write_certificates
from stillroom.federation.argmax_party import Job, LoopbackLoop
from stillroom.federation.argmax_shares import SharePacket
from stillroom.federation.secure_argmax import PartyLost, secure_argmax

DEADLINE = 300.0
"""Far more than it takes; only what is meant to end by its deadline has a short one."""


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Where keys are written; nothing is left in it, however a test ends."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def parties(monkeypatch):
    """The processes that are started, and what is done to each once all three are there."""
    found, then = [], []

    class Watched(subprocess.Popen):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            found.append(self.pid)
            if len(found) == 3:
                for party, number in then:
                    os.kill(found[party], number)

    monkeypatch.setattr(supervisor.subprocess, "Popen", Watched)
    yield found, then
    assert len(found) in (0, 3)
    assert not any(running(process) for process in found)


def equals_numpy(queries: int) -> None:
    plan = planned(queries=queries, classes=10, entities=3, weight=2)
    assert plan.bits == 4
    rows = tied_rows(plan)
    total = sum(rows)
    ties = (total == total.max(1, keepdims=True)).sum(1) > 1
    assert ties.sum() > queries / 4
    assert (total.min(), total.max()) == (-8, 7)
    opened = secure_argmax(plan, shared(plan, rows), DEADLINE)
    np.testing.assert_array_equal(opened.winners, total.argmax(1))
    assert all(sent > 0 for sent in opened.sent)


def test_the_argmax_is_that_of_numpy(parties):
    equals_numpy(100)


@pytest.mark.slow
def test_the_argmax_is_that_of_numpy_on_a_thousand_rows(parties):
    equals_numpy(1000)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_many_batches_and_missing_entities(parties, classes):
    plan = planned(queries=2100, classes=classes, entities=9, dropouts=2, sigma=20)
    rows = np.random.default_rng(3).integers(-40, 40, (7, 2100, classes))
    opened = secure_argmax(plan, shared(plan, rows), DEADLINE)
    np.testing.assert_array_equal(opened.winners, rows.sum(0).argmax(1))


PLAN = planned()
PACKETS = shared(PLAN, np.zeros((3, 4, 3), int))


@pytest.mark.parametrize("party", [0, 2])
def test_a_killed_party_ends_all_others_at_once(parties, party):
    # One that is stopped keeps the others waiting, so that they cannot have finished.
    parties[1][:] = [(1, signal.SIGSTOP), (party, signal.SIGKILL)]
    with pytest.raises(PartyLost, match=f"party {party} ended by signal SIGKILL") as caught:
        secure_argmax(PLAN, PACKETS, DEADLINE)
    assert caught.value.remedy


@pytest.mark.slow
@pytest.mark.parametrize("party", [0, 1, 2])
def test_a_party_killed_at_work_ends_all_others(parties, party):
    plan = planned(queries=20_000, classes=10, entities=2, weight=2)
    packets = shared(plan, tied_rows(plan))
    # They compare by then, and take ten times as long; were it earlier, the answer is the same.
    timer = threading.Timer(2.5, lambda: os.kill(parties[0][party], signal.SIGKILL))
    timer.start()
    try:
        with pytest.raises(PartyLost, match=f"party {party} ended by signal SIGKILL"):
            secure_argmax(plan, packets, DEADLINE)
    finally:
        timer.cancel()
        timer.join()


def test_the_deadline_ends_parties_that_wait(parties):
    parties[1][:] = [(1, signal.SIGSTOP)]
    began = time.monotonic()
    with pytest.raises(PartyLost, match="did not finish within 2 seconds") as caught:
        secure_argmax(PLAN, PACKETS, 2.0)
    assert time.monotonic() - began >= 2.0
    assert caught.value.where
    assert caught.value.remedy


LONG = """
import os, subprocess, sys
from federation.sharing import planned, shared, tied_rows
from stillroom.federation import secure_argmax as supervisor

class Watched(subprocess.Popen):
    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        print(self.pid, flush=True)

supervisor.subprocess.Popen = Watched
plan = planned(queries=20_000, classes=10, entities=2, weight=2)
supervisor.secure_argmax(plan, shared(plan, tied_rows(plan)), 3000.0)
"""
"""Takes minutes: whoever ends it does so before it has finished."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_parties_end_with_their_supervisor(number, scratch):
    environment = with_tests() | {"TMPDIR": str(scratch)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with started(LONG, env=environment, **pipes) as process:
        parties = [int(process.stdout.readline()) for _ in range(3)]
        try:
            time.sleep(1)  # so that most of them are at work, though any moment will do
            os.kill(process.pid, number)
            process.wait()
            ends = time.monotonic() + 60
            while any(running(party) for party in parties) and time.monotonic() < ends:
                time.sleep(0.05)
            assert not any(running(party) for party in parties)
        finally:
            for party in parties:
                if running(party):
                    os.kill(party, signal.SIGKILL)
    if number != signal.SIGINT:  # nobody is left who could remove the session's keys
        for folder in sorted(scratch.rglob("*"), reverse=True):
            folder.rmdir() if folder.is_dir() else folder.unlink()


def test_keys_are_for_their_owner_only(scratch, monkeypatch):
    seen = []

    def look(*_):
        seen.extend((path.stat().st_mode & 0o7777, path.suffix) for path in scratch.rglob("*"))
        raise InterruptedError

    monkeypatch.setattr(supervisor, "_started", look)
    with pytest.raises(InterruptedError):
        secure_argmax(PLAN, PACKETS, DEADLINE)
    assert {mode for mode, suffix in seen if suffix in (".crt", ".key")} == {0o600}
    assert {mode for mode, suffix in seen if suffix not in (".crt", ".key")} == {0o700}
    assert sum(suffix == ".key" for _, suffix in seen) == 3


def handshake(server: Path, client: Path | None, party: int) -> bytes:
    """What arrives over TLS between two parties as MPyC sets it up, in memory."""
    folder = server / ".config"
    listens = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    listens.load_cert_chain(folder / "party_1.crt", folder / "party_1.key")
    listens.load_verify_locations(folder / "mpyc_ca.crt")
    listens.verify_mode = ssl.CERT_REQUIRED
    calls = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    calls.load_verify_locations((client or server) / ".config" / "mpyc_ca.crt")
    if client is not None:
        calls.load_cert_chain(*(client / ".config" / f"party_0.{end}" for end in ("crt", "key")))
    to, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = calls.wrap_bio(back, to, server_hostname=f"MPyC party {party}")
    other = listens.wrap_bio(to, back, server_side=True)
    for _ in range(3):
        for end in (one, other):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    one.write(b"share")
    return other.read()


@pytest.fixture
def sessions(tmp_path):
    """The folders of two sessions' parties."""
    folders = [[tmp_path / name / str(party) for party in range(3)] for name in ("one", "two")]
    for session in folders:
        for folder in session:
            folder.mkdir(parents=True)
        write_certificates(session)
    return folders


def test_parties_of_one_session_can_talk(sessions):
    assert handshake(sessions[0][1], sessions[0][0], 1) == b"share"


def test_nobody_else_can(sessions):
    ours, theirs = sessions
    for client, party in ((None, 1), (theirs[0], 1), (ours[0], 2)):
        with pytest.raises(ssl.SSLError):
            handshake(ours[1], client, party)


def test_parties_listen_and_connect_on_this_machine_only():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        loop = LoopbackLoop(bound)

        async def met():
            server = await loop.create_server(asyncio.Protocol, port=0, ssl=None)
            places = {one.getsockname() for one in server.sockets}
            port = bound.getsockname()[1]
            transport, _ = await loop.create_connection(asyncio.Protocol, "198.51.100.1", port)
            peer = transport.get_extra_info("peername")
            transport.close()
            server.close()
            await asyncio.sleep(0)
            return places, peer

        places, peer = loop.run_until_complete(met())
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()
    assert places == {peer}
    assert peer[0] == "127.0.0.1"


def test_no_party_learns_a_secret_from_what_is_opened():
    """MPyC's own way of opening products is the broken twin: every secret is found."""
    program = Path(__file__).with_name("leaking.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program], capture_output=True, check=True, text=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["plain"] == [8, 8, 8]
    assert told["hidden"] == [0, 0, 0]
    assert told["same"]
    assert told["replaced"]
    assert told["used"]


def test_without_the_extra_it_is_named(monkeypatch, parties):
    monkeypatch.setattr(supervisor, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="mpyc is not installed") as caught:
        secure_argmax(PLAN, PACKETS)
    assert caught.value.remedy == "pip install 'stillroom[mpc]'"


@pytest.mark.parametrize("deadline", [0, -1.0, float("nan"), float("inf")])
def test_a_deadline_is_needed(parties, deadline):
    with pytest.raises(BadInput, match="deadline"):
        secure_argmax(PLAN, PACKETS, deadline)


@pytest.mark.parametrize(
    ("packets", "what"),
    [
        ([], "only 0 of 3"),
        (PACKETS[:-3], "only 2 of 3"),
        (PACKETS[:-1], "different entities"),
        ([*PACKETS, PACKETS[0]], "twice"),
        ([*PACKETS, SharePacket(3, 0, PACKETS[0].content)], "does not exist"),
        ([SharePacket(0, 0, b"garbled"), *PACKETS[1:]], "damaged"),
        ([SharePacket(0, 0, PACKETS[1].content), *PACKETS[1:]], "another"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_packets_that_do_not_belong_together_start_nothing(parties, packets, what):
    with pytest.raises(BadInput, match=what):
        secure_argmax(PLAN, packets, DEADLINE)
    assert parties[0] == []


def test_a_party_refuses_a_garbled_share_itself(parties, monkeypatch):
    """One that is garbled on its way to the party."""
    written = Job.written
    monkeypatch.setattr(Job, "written", lambda job: written(job)[:-1] + b"\0")
    with pytest.raises(BadInput, match="damaged"):
        secure_argmax(PLAN, PACKETS, DEADLINE)


def test_parties_that_do_not_add_the_same_rows_refuse(parties, monkeypatch):
    written = Job.written

    def told(job):
        object.__setattr__(job, "roster", (job.party, *job.roster))
        return written(job)

    monkeypatch.setattr(Job, "written", told)
    with pytest.raises((BadInput, PartyLost)):
        secure_argmax(PLAN, PACKETS, DEADLINE)


def test_answers_that_differ_are_not_believed():
    reports = [{"winners": [0, 1, 2, last], "sent": 1, "seconds": 1.0} for last in (0, 0, 1)]
    with pytest.raises(PartyLost, match="do not agree"):
        supervisor._agreed(PLAN, reports)
    assert supervisor._agreed(PLAN, [reports[0]] * 3).winners.tolist() == [0, 1, 2, 0]


def test_nothing_shows_shares_or_winners():
    opened = supervisor._agreed(PLAN, [{"winners": [0, 1, 2, 0], "sent": 1, "seconds": 1.0}] * 3)
    assert repr(opened) == "Opened(sent=(1, 1, 1), seconds=1.0)"
    assert "packets" not in repr(Job(PLAN, 0, (1, 2, 3), "folder", (0, 1, 2), b"secret"))
