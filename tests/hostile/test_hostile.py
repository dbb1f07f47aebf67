"""No hostile file ends in an internal fault, a traceback, a hang or a full memory."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from hostile.harness import Case, Runner, check
from hostile.making import bundle, forged, honest, honest_export

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
CASES = {
    f"{name}: {case.name}": case
    for name in MODULES
    if not name.startswith("test_")
    for case in getattr(importlib.import_module(f"hostile.{name}"), "CASES", [])
}


@pytest.fixture(scope="module")
def runner():
    warm = Runner(
        ["verify", str(honest() / "bundle")],
        ["predict", str(honest() / "bundle"), str(honest() / "scans.csv")],
        ["ledger", "verify", str(honest() / "ledger.sqlite")],
    )
    yield warm
    warm.close()


@pytest.mark.corpus
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_hostile_file_is_refused(case: Case, runner: Runner, tmp_path: Path, counted) -> None:
    check(case, runner.run(case.build(tmp_path), tmp_path))
    counted("hostile files", 1)


def test_the_honest_ones_are_not(runner: Runner, tmp_path: Path) -> None:
    """What the cases spoil is whole before."""
    for words in (
        ["verify", str(bundle(tmp_path))],
        ["predict", str(tmp_path / "bundle"), str(honest() / "scans.csv")],
        ["ledger", "verify", str(honest() / "ledger.sqlite")],
    ):
        ended = runner.run(words, tmp_path)
        assert ended.code == 0, ended
    assert forged(lambda document: None)(tmp_path / "again")[0] == "verify"
    assert runner.run(["verify", str(tmp_path / "again" / "bundle")], tmp_path).code == 0
    assert len(honest_export()["rows"]) > 5


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 150


def test_the_runner_sees_what_it_looks_for(runner: Runner, tmp_path: Path) -> None:
    """A fault, a hang and a full memory would be found."""
    for words, code in ((["verify", str(tmp_path / "none")], 2), (["no-such-command"], 2)):
        ended = runner.run(words, tmp_path)
        assert (ended.code, ended.seconds < 10) == (code, True)
        with pytest.raises(AssertionError):
            check(Case("another code", lambda folder: [], 4), ended)
    faulty = Case("a fault", lambda folder: [], 1)
    for said in ("Traceback (most recent call last)", "error: internal fault (KeyError)"):
        with pytest.raises(AssertionError):
            check(faulty, type(ended)(1, said, 0.1, 50))
    for seconds, megabytes in ((11, 50), (1, 1001)):
        with pytest.raises(AssertionError):
            check(Case("too much", lambda folder: [], 0), type(ended)(0, "", seconds, megabytes))
