"""A matrix on disk: written row by row, whole after a crash, and never mixed up."""

from __future__ import annotations

import errno
import json
import os
import stat

import numpy as np
import pytest

from stillroom.engine import Engine, WorkItem, run_all
from stillroom.engine.rows import ROW, RowStore
from stillroom.errors import BadInput

HERE = Engine("serial")
UNITS = [WorkItem(f"run-{i}", i) for i in range(4)]
NAMES = [unit.name for unit in UNITS]


def filled(number):
    return {ROW: np.full(6, number + 0.5, dtype=np.float32)}


def store(folder, key="a plan", columns=6, names=NAMES):
    return RowStore(folder, key, names, columns)


def test_rows_come_in_the_order_of_the_units(tmp_path):
    kept = store(tmp_path / "rows")
    done = run_all(filled, UNITS[::-1], engine=HERE, keeper=kept)
    assert [int(result[ROW]) for result in done] == [3, 2, 1, 0]
    assert kept.matrix.tolist() == [[i + 0.5] * 6 for i in range(4)]
    assert isinstance(kept.matrix, np.memmap)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (tmp_path / "rows").iterdir()]
    assert modes == [0o600] * 2
    assert stat.S_IMODE(os.stat(tmp_path / "rows").st_mode) == 0o700


def test_a_run_goes_on_after_the_last_row(tmp_path):
    def dying(number):
        if number == 2:
            raise KeyboardInterrupt
        return filled(number)

    with pytest.raises(KeyboardInterrupt):
        run_all(dying, UNITS, engine=HERE, keeper=store(tmp_path))
    ran = []
    run_all(lambda n: ran.append(n) or filled(n), UNITS, engine=HERE, keeper=store(tmp_path))
    assert ran == [2, 3]
    assert store(tmp_path).matrix.tolist() == [[i + 0.5] * 6 for i in range(4)]


@pytest.mark.parametrize("how", ["a number", "marks", "half a file", "no marks"])
def test_what_is_damaged_is_run_again(tmp_path, how):
    run_all(filled, UNITS, engine=HERE, keeper=store(tmp_path))
    file, marks = tmp_path / "rows.npy", tmp_path / "rows.json"
    if how == "a number":
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    elif how == "marks":
        marks.write_text("{")
    elif how == "half a file":
        file.write_bytes(file.read_bytes()[:-20])
    else:
        marks.unlink()
    ran = []
    run_all(lambda n: ran.append(n) or filled(n), UNITS, engine=HERE, keeper=store(tmp_path))
    assert ran == ([3] if how == "a number" else [0, 1, 2, 3])
    assert store(tmp_path).matrix.tolist() == [[i + 0.5] * 6 for i in range(4)]


def test_rows_of_another_plan_are_refused(tmp_path):
    run_all(filled, UNITS, engine=HERE, keeper=store(tmp_path))
    with pytest.raises(BadInput, match="another plan"):
        store(tmp_path, key="another")
    assert json.loads((tmp_path / "rows.json").read_text())["key"] == "a plan"


def test_models_of_two_architectures_do_not_mix(tmp_path):
    kept = store(tmp_path)
    with pytest.raises(BadInput, match="a row of 5 numbers among rows of 6"):
        run_all(lambda n: {ROW: np.zeros(5 + (n == 0))}, UNITS, engine=HERE, keeper=kept)
    assert store(tmp_path).load("run-0") is not None


def test_a_full_disk_is_found_before_anything_is_run(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(BadInput, match="for want of room") as caught:
        store(tmp_path / "rows")
    assert "make room" in caught.value.remedy
    assert list((tmp_path / "rows").iterdir()) == []


def test_a_disk_that_fills_up_loses_no_finished_row(tmp_path, monkeypatch):
    kept, real = store(tmp_path), os.pwrite

    def full(descriptor, content, place):
        if place > 200:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content[:7], place)  # and no write is whole

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(BadInput, match="for want of room"):
        run_all(filled, UNITS, engine=HERE, keeper=kept)
    monkeypatch.setattr(os, "pwrite", real)
    again = store(tmp_path)
    finished = [name for name in NAMES if again.load(name) is not None]
    assert finished == NAMES[: len(finished)] != NAMES
    assert finished
