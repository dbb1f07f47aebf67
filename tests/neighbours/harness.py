"""Neighbours, byte for byte: two data sets that differ in one unit, and all that leaves of each.

The whole pipeline runs on a data set, through the command line, and its noisy answers are taped.
Then it runs on a neighbour with a gate that returns the taped answers. Whatever leaves is a
function of the answers (K10), so every byte must be the same: bundle, certificate, card, exit
code, printed lines, export of the ledger, run folder. A byte that differs is a leak that no
epsilon covers, however small.

What is random and not privacy noise is made repeatable, so that it cannot hide a difference: names
and nonces, the clock, and the keyed digest of a ledger's fingerprints, which stands for a random
function of its nonce. Every unit is in every Poisson sample: a unit that is left out cannot leak.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import shutil
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from stillroom.cli import run
from stillroom.gate import gate, mechanisms, passage
from stillroom.gate.accounting import price
from stillroom.gate.entropy import SeededEntropy
from stillroom.gate.ledger import blocks, creation, draws, members, store
from stillroom.pipeline import pricing, run_folder
from stillroom.release import compression

HELD = (
    "data.npz",
    "data.csv",
    "model.safetensors",
    "model.onnx",
    "home",
    "ledger.sqlite",
    "ledger.sqlite.key",
    "modules",
)
"""What stays with the operator; everything else in the folder is compared."""


class AnotherQuestion(AssertionError):
    """The neighbour's run asked the gate for something else."""


@dataclass
class Tape:
    """The noisy answers of a first run, for a second one."""

    answers: list[tuple[str, np.ndarray]] = field(default_factory=list)
    played: int | None = None
    within: bool = False
    """Whether a mechanism runs others: those are no answers of their own."""

    def answer(self, mechanism, honest, entropy, value, allowance):
        if self.within:
            return honest(mechanism, entropy, value, allowance)
        asked = f"{mechanism.describe()} {value.shape} {allowance}"
        if self.played is None:
            self.within = True
            try:
                self.answers.append((asked, honest(mechanism, entropy, value, allowance)))
            finally:
                self.within = False
            return self.answers[-1][1].copy()
        if self.played == len(self.answers) or self.answers[self.played][0] != asked:
            raise AnotherQuestion(f"draw {self.played} is {asked}")
        self.played += 1
        return self.answers[self.played - 1][1].copy()


@dataclass(frozen=True)
class Seen:
    """Everything that left: files by name, printed lines, exit codes."""

    files: dict[str, bytes]
    said: tuple[str, ...]
    codes: tuple[int, ...]

    def differences(self, other: Seen) -> list[str]:
        """Where two runs differ, in words."""
        names = sorted({*self.files, *other.files})
        found = [name for name in names if self.files.get(name) != other.files.get(name)]
        found += [
            f"printed by command {place}"
            for place, (one, two) in enumerate(zip(self.said, other.said, strict=True))
            if one != two
        ]
        return found + (["exit codes"] if self.codes != other.codes else [])


def put_records(world) -> None:
    """A data set's arrays, as an npz file."""
    np.savez("data.npz", **world)


def everything(
    folder: Path, patch, tape: Tape, worlds, recipe: str, put=put_records, pair: str = ""
) -> Seen:
    """Release from each world in turn, with one ledger, and look at all that leaves.

    Args:
        folder: an empty folder of its own.
        patch: pytest's monkeypatch.
        tape: empty for a first run, and played for its neighbours.
        worlds: the data set at each release, as the arrays of an npz file.
        recipe: its text.
        put: writes a world to where the recipe finds it.
        pair: what the budget is for; one record or person more or less when left out.
    """
    _make_repeatable(patch, tape)
    folder.mkdir()
    if (folder.parent / "modules").exists():
        shutil.copytree(folder.parent / "modules", folder / "modules")
    patch.setenv("STILLROOM_HOME", str(folder / "home"))
    said, codes = [], []

    def command(*words: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            codes.append(run(list(words)))
        said.append(f"{' '.join(words)}\n{out.getvalue()}\n{err.getvalue()}")

    with chdir(folder):
        Path("recipe.toml").write_text(recipe)
        unit = "person" if 'unit = "person"' in recipe else "record"
        for number, world in enumerate(worlds):
            put(world)
            if number == 0:
                command(
                    "release", "recipe.toml", "-o", "out"
                )  # makes the ledger, asks for a budget
                command(
                    *("ledger", "budget", "set", "ledger.sqlite", "--epsilon", "20"),
                    *("--reason", "a test", "--for", pair or f"{unit}/add-or-remove"),
                )
            command("release", "recipe.toml", "-o", f"out{number}")
            command("verify", f"out{number}")
        command("ledger", "export", "ledger.sqlite")
        command("ledger", "show", "ledger.sqlite")
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.relative_to(folder).parts[0] not in HELD
        }
    return Seen(
        {name: content for name, content in files.items() if not name.startswith("ledger.sqlite")},
        tuple(said),
        tuple(codes),
    )


def _make_repeatable(patch, tape: Tape) -> None:
    numbers = itertools.count()

    def repeatable(size: int) -> bytes:
        return hashlib.shake_256(f"draw {next(numbers)}".encode()).digest(size)

    class Repeatable:
        """The operating system, but for what it draws."""

        urandom = staticmethod(repeatable)

        def __getattr__(self, name):
            return getattr(os, name)

    for module in (creation, blocks, draws, members):
        patch.setattr(module, "os", Repeatable())
    name = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=repeatable(16).hex()))
    patch.setattr(run_folder, "uuid", name)
    day = SimpleNamespace(date=lambda: SimpleNamespace(isoformat=lambda: "2026-01-31"))
    patch.setattr(store, "datetime", SimpleNamespace(now=lambda zone: day))
    ticks = itertools.count()
    patch.setattr(compression, "time", SimpleNamespace(perf_counter=lambda: next(ticks) / 1000))
    patch.setattr(
        members,
        "digest",
        lambda key, nonce, prints: hashlib.sha256(nonce.encode()).hexdigest(),
    )
    patch.setattr(pricing, "smallest_sigma", _quick_sigma)
    patch.setattr(gate, "source_of", lambda entropy: "os")
    patch.setattr(gate, "Entropy", lambda: SeededEntropy(1))
    patch.setattr(passage, "coins", lambda entropy, rate, size: np.ones(size, dtype=bool))
    # Mechanisms that share a sampler have it from a class that has no name of its own.
    for kind in {part for one in mechanisms._BY_NAME.values() for part in one.__mro__}:
        if "draw" in vars(kind) and kind is not mechanisms.Mechanism:
            honest = _HONEST.setdefault(kind, kind.draw)
            patch.setattr(
                kind,
                "draw",
                lambda self, *given, honest=honest: tape.answer(self, honest, *given),
            )


def _quick_sigma(lines_at, epsilon, delta, pair):
    """Enough noise, found by the quicker accountant; it depends on the recipe alone."""
    step = 1
    while price(lines_at(Fraction(step, 20)), pair).rdp(delta) > epsilon:
        step += 1
    return Fraction(step, 20)


_HONEST: dict[type, object] = {}
