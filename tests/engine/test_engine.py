"""Trainings give the same bits on every engine, survive kill -9, and go on where they were."""

from __future__ import annotations

import importlib.util
import os
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from engine import tasks
from processes import started, with_tests
from stillroom import engine as engines
from stillroom.engine import Engine, WorkItem, run_all
from stillroom.errors import BadInput, WrongData

SERIAL = Engine("serial")
TWO = Engine("loky", workers=2)
KEY = "plan-1"


def units(count):
    return [WorkItem(f"teacher-{number:03}", number) for number in range(count)]


def bits(results):
    return [[(k, a.dtype.str, a.shape, a.tobytes()) for k, a in r.items()] for r in results]


@pytest.fixture(scope="module")
def alone():
    return bits(run_all(tasks.train, units(4), engine=SERIAL))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
def test_two_workers_give_the_same_bits_with_one_sleeping_thread_each(alone, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    run = partial(run_all, units=units(4), engine=TWO, folder=tmp_path, key=KEY)
    fresh = run(tasks.train_and_look)
    kept = run(tasks.stumble)
    assert bits(kept) == bits(fresh)
    assert os.environ["OMP_NUM_THREADS"] == "4"
    assert "OMP_WAIT_POLICY" not in os.environ
    for result in fresh:
        seen = {name: result.pop(name) for name in list(result) if name.startswith("seen")}
        assert seen["seen: pid"] != os.getpid()
        assert seen["seen: born quiet"]
        assert seen["seen: torch threads"] == 1
        assert set(seen["seen: threads"].tolist()) == {1}
    assert bits(fresh) == alone


def test_one_worker_gives_the_same_bits(alone):
    assert bits(run_all(tasks.train, units(4), engine=Engine("loky", workers=1))) == alone


def test_the_same_bits_whatever_threads_the_caller_uses(alone):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert bits(run_all(tasks.train, units(4), engine=SERIAL)) == alone
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


CLUSTER = """
import os, sys
from functools import partial
from pathlib import Path
from engine import tasks
from stillroom.engine import Engine, WorkItem, run_all
from stillroom.errors import BadInput, WrongData

cluster, told = Engine(sys.argv[1], workers=2), []
units = [WorkItem(f"teacher-{number:03}", number) for number in range(4)]
folder, on_done = Path(sys.argv[2]), lambda *done: told.append(done)
run_all(tasks.train, units, engine=cluster, folder=folder, key="plan-1", on_done=on_done)
assert told == [(done, 4) for done in range(5)], told
try:
    run_all(tasks.refuse, units, engine=cluster)
except WrongData as error:
    assert error.where == "teacher-001: shard", error
    print("refused-as-told")
try:
    run_all(partial(tasks.die_always, os.getpid()), units, engine=cluster)
except BadInput as error:
    assert "killed workers 3 times" in error.what, error
    print("killed-as-told")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_a_cluster_gives_the_same_bits_and_the_same_errors(kind, package, alone, tmp_path):
    """In a process of its own: the clusters' packages leave files open, which is an error here."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, kind, str(tmp_path)],
        env=with_tests(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Ray has a word to say about killed workers as well.
    assert {"refused-as-told", "killed-as-told"} <= set(done.stdout.split())
    kept = run_all(tasks.stumble, units(4), engine=SERIAL, folder=tmp_path, key=KEY)
    assert bits(kept) == alone


def test_nothing_finished_is_run_again(tmp_path):
    diary, told = tmp_path / "diary", []
    run = partial(run_all, partial(tasks.count, diary), folder=tmp_path / "r", key=KEY)
    run(units(2), engine=SERIAL)
    run(units(4), engine=SERIAL, on_done=lambda *done: told.append(done))
    assert diary.read_text().split() == ["0", "1", "2", "3"]
    assert told == [(2, 4), (3, 4), (4, 4)]


def test_results_come_in_the_order_of_the_units(tmp_path):
    given = [units(5)[i] for i in (3, 0, 4, 1, 2)]
    found = run_all(partial(tasks.die_once, __file__), given, engine=TWO)
    assert [int(result["number"]) for result in found] == [3, 0, 4, 1, 2]


def test_large_payloads_are_not_written_to_files():
    large = [WorkItem(name, np.zeros(1 << 18)) for name in ("a", "b")]
    assert not any(result["mapped"] for result in run_all(tasks.is_a_file, large, engine=TWO))


def _flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "one bit": _flip,
    "another unit's": lambda path: path.write_bytes(
        path.with_name("teacher-000.safetensors").read_bytes()
    ),
    "no safetensors": lambda path: path.write_text("hello"),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_run_again(damage, tmp_path):
    diary = tmp_path / "diary"
    run = partial(run_all, partial(tasks.count, diary), units(3), engine=SERIAL)
    first = run(folder=tmp_path / "r", key=KEY)
    damage(tmp_path / "r" / "teacher-001.safetensors")
    assert bits(run(folder=tmp_path / "r", key=KEY)) == bits(first)
    assert diary.read_text().split() == ["0", "1", "2", "1"]


@pytest.mark.parametrize("damage", [None, "{", "[]", "{}"])
def test_another_plan_is_refused(damage, tmp_path):
    task = partial(tasks.give, {"a": np.arange(3)})
    run = partial(run_all, task, units(1), engine=SERIAL, folder=tmp_path)
    run(key=KEY)
    before = (tmp_path / "teacher-000.safetensors").read_bytes()
    if damage is not None:
        (tmp_path / "units.json").write_text(damage)
    with pytest.raises(BadInput, match="another plan"):
        run(key="plan-2")
    assert (tmp_path / "teacher-000.safetensors").read_bytes() == before
    with pytest.raises(BadInput, match="need a key"):
        run()


def test_results_are_for_their_owner_only_and_no_draft_stays(tmp_path):
    folder = tmp_path / "r"
    folder.mkdir(mode=0o700)
    (folder / ".teacher-000.safetensors.999999999.draft").write_bytes(b"left by a crash")
    run_all(tasks.refuse, units(1), engine=SERIAL, folder=folder, key=KEY)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["teacher-000.safetensors", "units.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("engine", [SERIAL, TWO], ids=["serial", "loky"])
def test_the_tasks_own_refusal_comes_through_with_the_units_name(engine, tmp_path):
    with pytest.raises(WrongData) as caught:
        run_all(tasks.refuse, units(3), engine=engine, folder=tmp_path, key=KEY)
    assert caught.value.where == "teacher-001: shard"
    assert (caught.value.what, caught.value.remedy) == ("the shard is empty", "r")
    with pytest.raises(BadInput) as bare:
        run_all(tasks.refuse_without_a_place, units(1), engine=engine)
    assert bare.value.where == "teacher-000"
    with pytest.raises(ZeroDivisionError):
        run_all(tasks.stumble, units(2), engine=engine)


def test_a_refusal_keeps_what_was_finished_before(tmp_path):
    with pytest.raises(WrongData):
        run_all(tasks.refuse, units(3), engine=SERIAL, folder=tmp_path, key=KEY)
    assert (tmp_path / "teacher-000.safetensors").exists()
    assert not (tmp_path / "teacher-001.safetensors").exists()


def test_a_worker_killed_once_is_replaced(tmp_path):
    marker = tmp_path / "died"
    found = run_all(partial(tasks.die_once, marker), units(5), engine=TWO)
    assert marker.exists()
    assert [int(result["number"]) for result in found] == list(range(5))


def test_workers_killed_again_and_again_are_reported(tmp_path):
    with pytest.raises(BadInput) as caught:
        run_all(
            partial(tasks.die_always, os.getpid()),
            units(3),
            engine=TWO,
            folder=tmp_path,
            key=KEY,
        )
    assert "killed workers 3 times" in caught.value.what
    kept = len(list(tmp_path.glob("*.safetensors")))
    assert f"{kept} of 3 units are done" in caught.value.what
    assert "teacher-002" in caught.value.where
    assert "fewer workers" in caught.value.remedy
    assert "kept" in caught.value.remedy


STOPPED = """
import sys
from functools import partial
from pathlib import Path
from engine import tasks
from stillroom.engine import Engine, WorkItem, run_all
folder = Path(sys.argv[1])
run_all(
    partial(tasks.count_slowly, folder / "diary"),
    [WorkItem(f"teacher-{number:03}", number) for number in range(4)],
    engine=Engine("loky", workers=2), folder=folder / "r", key="plan-1",
)
"""


BLOWS = {
    "kill -9": (os.kill, signal.SIGKILL),
    "an interrupt": (os.kill, signal.SIGINT),
    "Ctrl-C in a terminal, workers too": (os.killpg, signal.SIGINT),
}


@pytest.mark.parametrize(("strike", "blow"), BLOWS.values(), ids=BLOWS)
def test_a_run_that_was_stopped_goes_on(strike, blow, tmp_path):
    diary, kept, second = tmp_path / "diary", tmp_path / "r", tmp_path / "second diary"
    diary.touch()
    with started(STOPPED, tmp_path, env=with_tests(), stderr=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 120
        # The first two are on disk and the next two have begun: the blow falls in the middle.
        while len(list(kept.glob("*.safetensors"))) < 2 or len(diary.read_text().split()) < 4:
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.02)
        strike(process.pid, blow)
        assert process.wait() == -blow
    told = []
    found = run_all(
        partial(tasks.count, second),
        units(4),
        engine=SERIAL,
        folder=kept,
        key=KEY,
        on_done=lambda *done: told.append(done),
    )
    assert bits(found) == bits(run_all(partial(tasks.count, diary), units(4), engine=SERIAL))
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert second.read_text().split() == ["2", "3"]


GOOD = {
    "nothing": {},
    "a number": {"a": np.array(3)},
    "an empty array": {"a": np.zeros((0, 3))},
    "another order": {"b": np.arange(6).reshape(2, 3).T, "a": np.arange(9.0)[::2]},
    "another byte order": {"a": np.arange(3, dtype=">f4")},
    "small types": {t: np.ones(3, dtype=t) for t in ("bool", "uint8", "int16", "float16")},
}


@pytest.mark.parametrize("result", GOOD.values(), ids=GOOD)
def test_every_array_of_numbers_comes_back_as_it_was(result, tmp_path):
    run = partial(run_all, partial(tasks.give, result), units(1), engine=SERIAL)
    fresh, kept = run(folder=tmp_path, key=KEY), run(folder=tmp_path, key=KEY)
    assert bits(fresh) == bits(kept)
    for name, array in result.items():
        assert np.array_equal(kept[0][name], array)
        assert kept[0][name].dtype == array.dtype.newbyteorder("=")
        assert kept[0][name].flags.writeable


BAD = [None, [np.zeros(2)], {"a": [1, 2]}, {1: np.zeros(2)}]
BAD += [{"a": np.array(["text"])}, {"a": np.array([object()])}, {"a": np.zeros(2, dtype=complex)}]


@pytest.mark.parametrize("result", BAD, ids=range(len(BAD)))
def test_other_results_are_refused(result):
    with pytest.raises(BadInput, match="arrays of numbers") as caught:
        run_all(partial(tasks.give, result), units(1), engine=SERIAL)
    assert caught.value.where == "teacher-000"


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"], ["a/b"], [".."], [""], ["a\n"], ["ä"]])
def test_names_that_are_no_file_names_are_refused(names):
    with pytest.raises(BadInput, match="names"):
        run_all(tasks.train, [WorkItem(name, 0) for name in names], engine=SERIAL)


def test_payloads_stay_out_of_reprs():
    assert "secret" not in repr(WorkItem("a", "secret"))


@pytest.mark.parametrize(
    "wrong", [{"kind": "threads"}, {"workers": 0}, {"address": "tcp://h:1"}], ids=str
)
def test_engines_that_cannot_be(wrong):
    with pytest.raises(BadInput):
        Engine(**wrong)


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [("ray", "ray", "cluster"), ("dask", "distributed", "cluster"), ("loky", "joblib", "train")],
)
def test_an_engine_that_is_not_installed_says_how_to_get_it(kind, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadInput) as caught:
        run_all(tasks.train, units(1), engine=Engine(kind))
    assert f"pip install 'stillroom[{extra}]'" in caught.value.remedy


def test_nothing_to_do():
    assert run_all(tasks.train, [], engine=SERIAL) == []


def test_importing_it_imports_nothing_heavy():
    code = "import sys, stillroom.engine; assert not {'torch', 'joblib', 'ray'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert Engine() == engines.CORES
