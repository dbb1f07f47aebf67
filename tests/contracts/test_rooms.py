"""The house: rooms import downwards only, and the front door opens without heavy furniture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_import_contracts_hold():
    done = subprocess.run(
        [BIN / "lint-imports"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def poisoned(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing any of the heavy packages fails."""
    for name in ("torch", "sklearn", "scipy", "dp_accounting", "matplotlib", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a heavy package was imported')\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_help_imports_nothing_heavy(tmp_path):
    for words in (
        ["--help"],
        ["plan", "--help"],
        ["ledger", "budget", "set", "--help"],
        ["--version"],
    ):
        done = subprocess.run(
            [BIN / "stillroom", *words],
            env=poisoned(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "stillroom" in done.stdout


def test_the_poison_works(tmp_path):
    done = subprocess.run(
        [BIN / "stillroom", "plan", "--queries", "1", "--sigma", "1"],
        env=poisoned(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "heavy" in done.stderr


def test_plan_and_ledger_need_no_torch_and_no_scikit_learn():
    code = (
        "import sys; from stillroom import Gate, Ledger, plan; plan(queries=1, sigma=9);"
        "assert not {'torch', 'sklearn', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
