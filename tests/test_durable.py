"""New files: whole or absent, never over another, and no draft is left behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stillroom.durable import new_file


def test_a_new_file_appears_when_it_is_done(tmp_path):
    with new_file(tmp_path / "x") as draft:
        draft.write_text("whole")
        draft.with_name(draft.name + ".part").write_text("apart")
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").read_text() == "whole"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError])
def test_a_failure_leaves_nothing(tmp_path, fault):
    def failing():
        with new_file(tmp_path / "x") as draft:
            draft.write_text("half")
            draft.with_name(draft.name + ".part").write_text("half")
            raise fault

    with pytest.raises(fault):
        failing()
    assert not list(tmp_path.iterdir())


def test_what_is_there_stays(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(FileExistsError), new_file(tmp_path / "x"):
        raise AssertionError("the block must not run")

    def overtaken():
        with new_file(tmp_path / "late") as draft:
            draft.write_text("other")
            (tmp_path / "late").write_text("mine")

    with pytest.raises(FileExistsError):
        overtaken()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "x": "mine",
        "late": "mine",
    }


def test_drafts_of_the_dead_are_swept_and_those_of_the_living_are_not(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    living = tmp_path / f".x.{os.getppid()}.draft"
    for draft in (tmp_path / f".x.{child.pid}.draft.y", living):
        draft.write_text("half")
    with new_file(tmp_path / "x") as draft:
        draft.write_text("whole")
    assert sorted(os.listdir(tmp_path)) == sorted(["x", living.name])
