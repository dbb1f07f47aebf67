"""Direct training of a linear layer against Opacus: speed, memory, accuracy. One run, one table.

Run by `make bench-direct-speed`. Every figure is appended to results/direct-speed.jsonl; a missed
target ends 1. The problem is the same for all: 20,000 records of 3,969 features (rows of norm 1),
10 classes, Poisson samples of 4,096 expected records, the same clip, noise multiplier, learning
rate and momentum, from weights of zero.

What a timed step is, from the draw of the sample to the clipped sum, for weights after training:

- ours: the gate's exact coins, then `LinearRecords.clipped_sum` (logits, residuals, clipping, exact
  integer sum). The exact noise and the ledger (poisson and release of a benchmark ledger, each
  forced to disk) are timed beside it.
- Opacus, default (`hooks`): its Poisson sampler, the rows of the sample, forward, backward with
  per-example gradients, `DPOptimizer.clip_and_accumulate`.
- Opacus, ghost (`ghost`): its Poisson sampler, the rows of the sample, forward, the two backward
  passes its loss hides in one, `accumulate`.

Noise, optimizer step and `zero_grad` of Opacus are not inside; "whole step" has them, and for ours
the noise, the ledger and the step. Opacus is helped where its user would have to know how: the
sample's rows are selected by one call into a buffer that is kept (its data loader, which stacks
them one by one, takes several times as long), and malloc keeps what is freed (else a step of the
default mode spends most of its time on fresh pages). Each contender has its own process; their
steps take turns; ratios are of medians; one thread each. Peak memory is that of another process
with malloc as it is: data, three steps, and for ours the float rows it was given.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import hypot
from pathlib import Path
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from measuring import append, compared, result_line

if TYPE_CHECKING:
    from stillroom.gate.passage import Passage

PACKAGES = ("stillroom", "numpy", "numba", "torch", "opacus")
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")},
    "OMP_WAIT_POLICY": "PASSIVE",
}
KEEPING = {**ONE_THREAD, "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
"""malloc keeps what is freed: faster for Opacus, and larger, so peaks are taken without it."""

RECORDS, HELD_OUT, FEATURES, CLASSES = 20_000, 5_000, 3_969, 10
BATCH = 4_096
CLIP, MULTIPLIER = Fraction(1, 2), Fraction(2)
LEARNING_RATE, MOMENTUM = 8.0, 0.9
STEPS, SEEDS = 60, 3
ROUNDS = 15
TURN = 5
"""Steps in a row before the next contender has its turn, as in training; their mean is one run."""

SIGNAL = 0.05
"""How far the classes lie apart; noise on every side, so that nobody reaches 100 %."""

LEAST_RATIO = {"ghost": 3.0, "hooks": 10.0}
PEERS = {"ghost": "Opacus ghost clipping", "hooks": "Opacus default"}

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def problem(size: int, seed: int) -> tuple[Floats, Labels]:
    """Rows of norm 1 around the centres of their classes, made by blocks."""
    centres = np.random.default_rng(0).standard_normal((CLASSES, FEATURES), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, size)
    rows = np.empty((size, FEATURES), dtype=np.float32)
    for start in range(0, size, 500):
        part = slice(start, start + 500)
        rng.standard_normal(out=rows[part], dtype=np.float32)
        rows[part] /= FEATURES**0.5
        rows[part] += np.float32(SIGNAL) * centres[labels[part]]
        rows[part] /= np.linalg.norm(rows[part], axis=1, keepdims=True) * np.float32(1.00001)
    return rows, labels


class Contender(Protocol):
    """One way to train, in its own process."""

    def train(self, seed: int, steps: int) -> Floats:
        """The weights after some steps from zero."""

    def parts(self) -> dict[str, float]:
        """Seconds of one `step`, one `whole` step, and whatever is printed beside them."""


class Ours:
    """Coins, clipped sums, exact noise, a ledger on disk."""

    def __init__(self, rows: Floats, labels: Labels, folder: str) -> None:
        from stillroom.gate.entropy import Entropy
        from stillroom.private import LinearRecords
        from stillroom.sources.training import TrainingSection

        self._records = LinearRecords(rows, labels, CLASSES)
        rate = Fraction(BATCH, RECORDS)
        self._plan = TrainingSection.of(
            steps=STEPS,
            rate=rate,
            clip=CLIP,
            learning_rate=LEARNING_RATE,
            momentum=MOMENTUM,
        )
        self._mechanism = self._plan.mechanism(self._records.width, MULTIPLIER)
        self._entropy = Entropy()
        self._folder = folder
        self._passage = self._reserve("timing", ROUNDS * TURN)

    def _reserve(self, name: str, count: int) -> Passage:
        from stillroom.gate import Budget, Gate, Ledger

        ids = [f"record-{i}" for i in range(RECORDS)]
        ledger = Ledger.create(Path(self._folder) / name, ids=ids, purpose="benchmark")
        ledger.set_budget(Budget(8.0, 1e-5), reason="bench-direct-speed")
        return Gate(ledger, ids=ids).reserve(self._mechanism, count)

    def train(self, seed: int, steps: int) -> Floats:
        """Its noise has no seed: every call is a new draw."""
        from stillroom.sources.training import train_linear

        passage = self._reserve(f"training-{seed}", steps)
        self._layer = train_linear(passage, self._records, self._plan, RECORDS)
        return self._layer.result()

    def parts(self) -> dict[str, float]:
        from stillroom.gate.mechanisms import discrete_gaussian
        from stillroom.gate.sampling import coins
        from stillroom.private import Clip
        from stillroom.vocabulary import Bounded, SecretSample

        rate, clip, weights = self._plan.rate, Clip(CLIP), self._layer.weights

        def step() -> None:
            sample = SecretSample(rate, lambda size: coins(self._entropy, rate, size))
            self._records.clipped_sum(weights, clip, sample)

        def noise() -> None:
            sigma, width = self._mechanism.sigma, self._records.width
            discrete_gaussian.noise(self._entropy, sigma, width)

        summing = 0.0

        def whole() -> None:
            def bounded() -> Bounded:
                nonlocal summing
                sample = self._passage.poisson()
                start = time.perf_counter()
                found = self._records.clipped_sum(weights, clip, sample)
                summing += time.perf_counter() - start
                return found

            question = b"sum %d" % self._passage.left
            self._layer.step(self._passage.answer(question, bounded))

        seconds = {
            "step": timed(step),
            "noise": timed(noise),
            "whole": timed(whole),
        }
        seconds["ledger"] = seconds["whole"] - summing / TURN - seconds["noise"]
        return seconds


class Opacus:
    """The same steps by Opacus; `mode` is its grad_sample_mode."""

    def __init__(self, rows: Floats, labels: Labels, mode: str) -> None:
        torch = import_module("torch")  # not by name: lint knows neither it nor Opacus
        torch.set_num_threads(1)
        self._torch, self._mode = torch, mode
        self._rows, self._labels = torch.from_numpy(rows), torch.from_numpy(labels)
        self._buffer = torch.empty((BATCH * 3 // 2, FEATURES))

    def train(self, seed: int, steps: int) -> Floats:
        engine = import_module("opacus").PrivacyEngine()
        samplers = import_module("opacus.utils.uniform_sampler")
        torch = self._torch
        torch.manual_seed(seed)
        layer = torch.nn.Linear(FEATURES, CLASSES, bias=False)
        torch.nn.init.zeros_(layer.weight)
        data = torch.utils.data.TensorDataset(self._rows, self._labels)
        made = engine.make_private(
            module=layer,
            optimizer=torch.optim.SGD(layer.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM),
            criterion=torch.nn.CrossEntropyLoss(),
            data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
            noise_multiplier=float(MULTIPLIER),
            max_grad_norm=float(CLIP),
            grad_sample_mode=self._mode,
        )
        self._model, self._optimizer = made[0], made[1]
        # Only the ghost mode wraps the loss.
        self._loss = made[2] if self._mode == "ghost" else torch.nn.CrossEntropyLoss()
        # The loader divides by the whole number of its batches; both sides divide by BATCH.
        self._optimizer.expected_batch_size = BATCH
        sampler = samplers.UniformWithReplacementSampler(
            num_samples=RECORDS, sample_rate=BATCH / RECORDS, steps=10**6
        )
        self._samples = iter(sampler)
        for _ in range(steps):
            self._gradients()
            self._optimizer.step()
            self._optimizer.zero_grad()
        weights: Floats = layer.weight.detach().numpy().copy()
        return weights

    def _gradients(self) -> None:
        chosen = self._torch.tensor(next(self._samples))
        rows = self._buffer[: len(chosen)]
        self._torch.index_select(self._rows, 0, chosen, out=rows)
        self._loss(self._model(rows), self._labels[chosen]).backward()

    def parts(self) -> dict[str, float]:
        def step() -> None:
            self._gradients()
            if self._mode == "ghost":
                self._optimizer.accumulate()
            else:
                self._optimizer.clip_and_accumulate()

        def whole() -> None:
            self._gradients()
            self._optimizer.step()
            self._optimizer.zero_grad()

        return {"step": timed(step, self._optimizer.zero_grad), "whole": timed(whole)}


def timed(step: Callable[[], object], after: Callable[[], object] = lambda: None) -> float:
    """Seconds of one step, the mean of a turn; what comes after a step is not counted."""
    taken = 0.0
    for _ in range(TURN):
        start = time.perf_counter()
        step()
        taken += time.perf_counter() - start
        after()
    return taken / TURN


def serve(name: str) -> None:
    """A contender's process: a question a line on stdin, an answer a line on stdout."""
    warnings.filterwarnings("ignore")  # Opacus and torch warn about things that do not matter here
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as folder:
        rows, labels = problem(RECORDS, seed=1)
        contender: Contender = (
            Ours(rows, labels, folder) if name == "ours" else Opacus(rows, labels, name)
        )
        del rows
        for line in sys.stdin:
            question, *rest = line.split()
            answer: object
            if question == "peak":
                contender.train(seed=SEEDS, steps=3)
                answer = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            elif question == "parts":
                answer = contender.parts()
            else:
                weights = contender.train(int(rest[0]), STEPS)
                spare, truth = problem(HELD_OUT, seed=2)
                answer = float(((spare @ weights.T).argmax(axis=1) == truth).mean())
            print(json.dumps(answer), flush=True)


class Process:
    """The other end of `serve`."""

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, name],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: str) -> Any:
        """The answer, as soon as it is there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(question, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a contender ended while it was asked for: {question}")
        return json.loads(line)

    def end(self) -> None:
        """Let it clean up."""
        self._process.communicate()


@dataclass(frozen=True)
class Figure:
    """One measured number, beside the peer's.

    Args:
        metric: what was measured, with its unit.
        runs: one number a repetition.
        peer: whose numbers `peer_runs` are.
        target: what the figure must fulfil, for people; empty where there is none.
        met: whether it does.
    """

    metric: str
    runs: list[float]
    peer: str = ""
    peer_runs: tuple[float, ...] = ()
    target: str = ""
    met: bool = True

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's, of medians."""
        return median(self.runs) / median(self.peer_runs) if self.peer_runs else None

    def to_json(self, seconds: float, peak: float) -> dict[str, Any]:
        """A line of the results, every field of the format present."""
        return result_line(
            "direct-speed",
            PACKAGES,
            dataset=f"synthetic, {RECORDS} x {FEATURES}, {CLASSES} classes",
            method="direct",
            unit="record",
            metric=self.metric,
            **compared(self.runs, self.peer, self.peer_runs),
            ratio=self.ratio,
            seconds=seconds,
            peak_mb=peak,
            recipe=f"batch {BATCH}, clip {CLIP}, noise {MULTIPLIER}, {STEPS} steps, "
            f"lr {LEARNING_RATE}, momentum {MOMENTUM}",
        )


def figures(
    scores: dict[str, list[float]],
    parts: dict[str, list[dict[str, float]]],
    peaks: dict[str, float],
) -> Iterator[Figure]:
    """All figures, those with a target first."""
    rates = {
        name: {part: [1 / one[part] for one in runs] for part in ("step", "whole")}
        for name, runs in parts.items()
    }
    for name, peer in PEERS.items():
        ours, theirs, least = rates["ours"]["step"], rates[name]["step"], LEAST_RATIO[name]
        met = median(ours) / median(theirs) >= least
        metric = "steps a second: sampling, clipping, sum"
        yield Figure(metric, ours, peer, tuple(theirs), f"ratio >= {least:g}", met)
    for name, peer in PEERS.items():
        less = peaks["ours"] < peaks[name]
        yield Figure("peak MB", [peaks["ours"]], peer, (peaks[name],), "less", less)
    for name, peer in PEERS.items():
        ours, theirs = scores["ours"], scores[name]
        spread = 2 * hypot(stdev(ours), stdev(theirs))
        met = abs(mean(ours) - mean(theirs)) <= spread
        target = f"apart by at most {spread:.4f}, two sd of a difference"
        yield Figure("accuracy held out", ours, peer, tuple(theirs), target, met)
    for name, peer in PEERS.items():
        runs = tuple(rates[name]["whole"])
        yield Figure("steps a second: whole step", rates["ours"]["whole"], peer, runs)
    for part, words in (
        ("step", "sampling, clipping, sum"),
        ("noise", "exact noise"),
        ("ledger", "ledger, two rows forced to disk, and the step"),
        ("whole", "whole step"),
    ):
        yield Figure(f"milliseconds: {words}", [1e3 * one[part] for one in parts["ours"]])


def main() -> int:
    """Measure, print, append; 1 if a target was missed."""
    start = time.perf_counter()
    peaks = {}
    for name in ("ours", *PEERS):
        small = Process(name, ONE_THREAD)
        peaks[name] = small.ask("peak")
        small.end()
    processes = {name: Process(name, KEEPING) for name in peaks}
    scores = {
        name: [process.ask(f"train {seed}") for seed in range(SEEDS)]
        for name, process in processes.items()
    }
    parts: dict[str, list[dict[str, float]]] = {name: [] for name in processes}
    for _ in range(ROUNDS):
        for name, process in processes.items():
            parts[name].append(process.ask("parts"))
    for process in processes.values():
        process.end()
    found = list(figures(scores, parts, peaks))
    show(found)
    seconds = round(time.perf_counter() - start, 3)
    append("direct-speed", (one.to_json(seconds, peaks["ours"]) for one in found))
    missed = [figure for figure in found if not figure.met]
    for figure in missed:
        print(
            f"missed: {figure.metric}, {figure.peer}: wanted {figure.target}, "
            f"got {_short(median(figure.runs))} against {_short(median(figure.peer_runs))}",
            file=sys.stderr,
        )
    return 1 if missed else 0


def _short(number: float) -> str:
    return f"{number:,.3g}" if number < 1000 else f"{number:,.0f}"


def show(found: list[Figure]) -> None:
    """The table, one line a figure."""
    wide = max(len(figure.metric) for figure in found)
    head = ("median", "sd", "theirs", "sd", "ratio")
    print(f"{'figure':<{wide}}" + "".join(f"{h:>9}" for h in head) + "   peer, target")
    for f in found:
        cells = [
            cell
            for runs in (f.runs, f.peer_runs)
            for cell in (
                _short(median(runs)) if runs else "",
                _short(stdev(runs)) if len(runs) > 1 else "",
            )
        ]
        cells.append(_short(f.ratio) if f.ratio else "")
        verdict = f": {f.target}: {'met' if f.met else 'MISSED'}" if f.target else ""
        line = f"{f.metric:<{wide}}" + "".join(f"{cell:>9}" for cell in cells)
        print(f"{line}   {f.peer}{verdict}".rstrip())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        sys.exit(main())
