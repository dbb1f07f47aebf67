"""What the gate costs: noise, rows on disk, pricing, start-up. One run, one table.

Run by `make bench-gate`. Every figure is appended to results/gate.jsonl; a missed target ends 1.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np

from measuring import append, compared, result_line
from stillroom.gate import (
    Budget,
    ConfidentVotes,
    Gate,
    GaussianSum,
    LaplaceCounts,
    Ledger,
    Mechanism,
    NoisyArgmax,
    NoisyCounts,
    NoisyVotes,
    RandomisedResponse,
    accounting,
)
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import Line
from stillroom.gate.mechanisms import discrete_gaussian
from stillroom.vocabulary import RECORD, Bounded, Norm, Sensitivity, Unit

PACKAGES = ("stillroom", "numpy", "scipy", "dp-accounting", "cryptography", "opendp")
LEAST_RATIO = {40: 50.0, 30_000: 20.0, 10**9: 20.0}
SAMPLES = 20_000
"""Numbers a call, for us and for the peer alike."""

MANY = 1_000_000
"""Numbers a call where they no longer fit the processor's caches."""

POISON = "raise RuntimeError('torch was imported')\n"


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Args:
        metric: what was measured, with its unit.
        runs: one number a repetition.
        target: what the figure must fulfil, for people; empty where there is none.
        met: whether it does.
        peer: whose numbers `peer_runs` are.
    """

    metric: str
    runs: list[float]
    target: str = ""
    met: bool = True
    peer: str = ""
    peer_runs: tuple[float, ...] = ()

    @property
    def ratio(self) -> float | None:
        """How many times slower the peer is."""
        return mean(self.peer_runs) / mean(self.runs) if self.peer_runs else None

    def to_json(self, seconds: float) -> dict[str, Any]:
        """A line of the results, every field of the format present."""
        return result_line(
            "gate",
            PACKAGES,
            metric=self.metric,
            **compared(self.runs, self.peer, self.peer_runs),
            ratio=self.ratio,
            seconds=seconds,
        )


def timed(step: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each repetition."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return taken


def noise_figures() -> Iterator[Figure]:
    """Discrete Gaussian samples: table build, ours, and the exact sampler of opendp."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    # One call for a whole vector of i64 is the fastest way through opendp: a call a number
    # takes ten times as long.
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    entropy, zeros = Entropy(), [0] * SAMPLES
    peer = f"opendp {version('opendp')}, integer vector Gaussian"
    for sigma, least in LEAST_RATIO.items():
        ours = partial(discrete_gaussian.noise, entropy, Fraction(sigma))
        theirs = partial(dp.m.make_gaussian(*space, scale=float(sigma)), zeros)

        yield Figure(f"seconds to build the table, sigma {sigma:g}", timed(partial(ours, 1), 1))
        ours_ns = [1e9 * t / SAMPLES for t in timed(partial(ours, SAMPLES), 20)]
        theirs_ns = [1e9 * t / SAMPLES for t in timed(theirs, 5)]
        yield Figure(
            f"nanoseconds a sample, sigma {sigma:g}",
            ours_ns,
            f"ratio >= {least:g}",
            met=mean(theirs_ns) / mean(ours_ns) >= least,
            peer=peer,
            peer_runs=tuple(theirs_ns),
        )
        many_ns = [1e9 * t / MANY for t in timed(partial(ours, MANY), 5)]
        yield Figure(f"nanoseconds a sample, sigma {sigma:g}, {MANY:,} a call", many_ns)


def ledger_figures(folder: Path) -> Iterator[Figure]:
    """Answers through the whole gate: two transactions a release, each forced to disk."""
    singles, batch = 300, 1000
    ledger = Ledger.create(folder / "ledger.sqlite", ids=["a"], purpose="benchmark")
    ledger.set_budget(Budget(50.0, 1e-5), reason="bench-gate")
    gate = Gate(ledger, ids=["a"])
    votes = Sensitivity.uniform(Norm.UNIT_STEPS, 2)
    argmax = NoisyArgmax(teachers=250, classes=10, sigma=Fraction(200))
    one = Bounded(np.full((1, 10), 25), votes)
    many = Bounded(np.full((batch, 10), 25), votes)

    numbers = itertools.count()
    way = gate.reserve(argmax, singles)
    runs = timed(lambda: way.answer(b"%d" % next(numbers), lambda: one), singles)
    groups = [runs[i : i + 30] for i in range(0, singles, 30)]
    rates = [len(group) / sum(group) for group in groups]
    yield Figure("draws recorded a second, one answer each", rates)

    wide = gate.reserve(argmax, 10 * batch)
    rates = [batch / t for t in timed(lambda: wide.answer(b"%d" % next(numbers), lambda: many), 10)]
    yield Figure(f"answers recorded a second, {batch} a draw", rates)


def twenty_kinds() -> list[Mechanism]:
    """Every mechanism, at several parameters."""
    return [
        *(NoisyVotes(250, 10, Fraction(sigma)) for sigma in (200, 250, 300)),
        *(NoisyArgmax(250, 100, Fraction(sigma)) for sigma in (350, 400, 450)),
        *(
            ConfidentVotes(
                *(250, 10, Fraction(sigma)),
                threshold=200,
                threshold_sigma=Fraction(1000),
                most_answers=10**6,
            )
            for sigma in (500, 550)
        ),
        *(NoisyCounts(Fraction(sigma), 10) for sigma in (220, 260, 3000)),
        *(GaussianSum(Fraction(sigma), 1000, 4096**2) for sigma in (10**6, 2 * 10**6)),
        *(GaussianSum(Fraction(8192), 1000, 4096**2, Fraction(1, n)) for n in (500, 1000, 2000)),
        *(LaplaceCounts(Fraction(scale), 5) for scale in (500, 700)),
        RandomisedResponse(10, Fraction(11, 100), Unit.RECORD),
    ]


def pricing_figures() -> Iterator[Figure]:
    """The certified epsilon of 10,000 events, from nothing."""
    events, limit = 10_000, 5.0
    kinds = [event for mechanism in twenty_kinds() for event, _ in mechanism.lines(1)]
    assert len(set(kinds)) <= 20
    lines: list[Line] = [(kinds[i % len(kinds)], 1) for i in range(events)]

    def price() -> None:
        for part in vars(accounting).values():
            if hasattr(part, "cache_clear"):
                part.cache_clear()
        guarantee = accounting.price(lines, RECORD).guarantee(1e-5)
        assert guarantee.by_accountant["PLD"] is not None

    runs = timed(price, 3)
    yield Figure(
        f"seconds to price {events:,} events of {len(set(kinds))} kinds",
        runs,
        f"< {limit:g}",
        met=mean(runs) < limit,
    )


def start_figures(folder: Path) -> Iterator[Figure]:
    """`stillroom --help`, with a torch in its path that breaks whoever imports it."""
    limit = 0.5
    (folder / "torch.py").write_text(POISON)
    poisoned = {**os.environ, "PYTHONPATH": str(folder)}
    proof = [sys.executable, "-c", "import torch"]
    if subprocess.run(proof, env=poisoned, capture_output=True, check=False).returncode == 0:
        raise SystemExit(
            "the poisoned torch was not found: the start-up figure would prove nothing"
        )
    command = [str(Path(sys.executable).parent / "stillroom"), "--help"]

    def start() -> None:
        subprocess.run(command, env=poisoned, capture_output=True, check=True)

    start()  # the first run compiles and warms the disk cache
    runs = timed(start, 5)
    yield Figure(
        "seconds of `stillroom --help`, torch poisoned",
        runs,
        f"median < {limit:g}",
        met=median(runs) < limit,
    )


def main() -> int:
    """Measure, print, append; 1 if a target was missed."""
    figures: list[Figure] = []
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as work:
        folder = Path(work)
        for group in (
            noise_figures(),
            ledger_figures(folder),
            pricing_figures(),
            start_figures(folder),
        ):
            start = time.perf_counter()
            for figure in group:
                figures.append(figure)
                lines.append(figure.to_json(round(time.perf_counter() - start, 3)))
                start = time.perf_counter()
    show(figures)
    append("gate", lines)
    missed = [figure for figure in figures if not figure.met]
    for figure in missed:
        print(f"missed: {figure.metric}: wanted {figure.target}", file=sys.stderr)
    return 1 if missed else 0


def _short(number: float) -> str:
    return f"{number:,.3g}" if number < 1000 else f"{number:,.0f}"


def show(figures: list[Figure]) -> None:
    """The table, one line a figure."""
    wide = max(len(figure.metric) for figure in figures)
    head = ("mean", "sd", "opendp", "ratio")
    print(f"{'figure':<{wide}}" + "".join(f"{h:>10}" for h in head) + "   target")
    for f in figures:
        cells = (
            _short(mean(f.runs)),
            _short(stdev(f.runs)) if len(f.runs) > 1 else "",
            _short(mean(f.peer_runs)) if f.peer_runs else "",
            _short(f.ratio) if f.ratio else "",
        )
        verdict = f"{f.target}: {'met' if f.met else 'MISSED'}" if f.target else ""
        line = f"{f.metric:<{wide}}" + "".join(f"{cell:>10}" for cell in cells)
        print(f"{line}   {verdict}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
