"""The batched parameter generator against a loop over `scipy.stats.gaussian_kde`: time and memory.

Part of `make bench-pg`. Every figure is appended to results/pg-speed.jsonl; a missed target ends 1.
50 models of as many weights as MNIST-Net has, a quarter and four times as many, and 25 million,
stand in a matrix on disk that is mapped, as a collection's does; 128 points of a fixed grid.

- scores: entries on the grid, and the score of every point for every weight.
- drawn: the same, and one point per weight by exact sampling.
- loop, integrate_box: for each weight an estimate by scipy, and its mass in a window around each
  point. It is run for few weights, and its time for all of them is EXTRAPOLATED: each weight costs
  the same.
- loop, pdf: the same with the density at each point times the width of the window, which is not the
  score but close to it.

Every run has its own process and one thread. Seconds are of the processor, so that other work on
the machine counts little; what the disk takes does not count, and is in `seconds`. Memory is the
most that arrays took at any moment beside the matrix, in a run of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from measuring import append, result_line
from selection import ONE_THREAD
from stillroom.gate import ExponentialChoice
from stillroom.gate.entropy import Entropy
from stillroom.methods.pg.claims import steepness
from stillroom.methods.pg.requests import TOGETHER
from stillroom.parameters import ParameterGrid
from stillroom.private.parameter_slices import ParameterSlices

PACKAGES = ("stillroom", "numpy", "scipy")
MODELS, SEED = 50, 7
GRID = ParameterGrid(radius=1.0, points=128, bandwidth=0.25)
MNIST_NET, LARGEST = 1_199_882, 25_000_000
SIZES = (MNIST_NET // 4, MNIST_NET, 4 * MNIST_NET, LARGEST)
LOOPED = {"integrate_box": 300, "pdf": 2000}
"""Weights that each loop is run for."""
LEAST = {
    ("scores", "integrate_box"): 500.0,
    ("scores", "pdf"): 150.0,
    ("drawn", "integrate_box"): 300.0,
    ("drawn", "pdf"): 50.0,
}
MOST_MB = 200.0
Matrix = npt.NDArray[np.float32]


def written(file: Path, weights: int) -> None:
    """Models that lie around a common one, a part of the weights at a time."""
    matrix = np.memmap(file, np.float32, "w+", shape=(MODELS, weights))
    draws = np.random.default_rng(SEED)
    for first in range(0, weights, 1 << 20):
        last = min(first + (1 << 20), weights)
        common = draws.normal(0, 0.1, last - first)
        for model in range(MODELS):
            matrix[model, first:last] = common + draws.normal(0, 0.03, last - first)
    matrix.flush()


def mapped(file: Path) -> Matrix:
    """The matrix of a file."""
    weights = file.stat().st_size // (4 * MODELS)
    return np.memmap(file, np.float32, "r", shape=(MODELS, weights))


def generated(matrix: Matrix, *, drawn: bool) -> None:
    """Scores of every weight, or points drawn by them, a part of the weights at a time."""
    slices = ParameterSlices(matrix, 1)
    rate = steepness(GRID, MODELS, Fraction(1), "true")
    choice = ExponentialChoice(MODELS, GRID.points, GRID.window, rate)
    entropy, step = Entropy(), (1 << 20) // GRID.points
    for first in range(0, slices.size, TOGETHER):
        places = slice(first, min(first + TOGETHER, slices.size))
        entries = slices.entries(places, GRID, None).open_bounded()
        if drawn:
            choice.draw(entropy, entries, 0)
            continue
        for at in range(0, len(entries), step):
            choice.scores(entries[at : at + step])


def looped(matrix: Matrix, way: str) -> None:
    """Some weights by scipy, one by one."""
    from scipy.stats import gaussian_kde

    half, points = GRID.bandwidth / 2, GRID.values
    for values in matrix[:, : LOOPED[way]].T.astype(np.float64):
        estimate = gaussian_kde(values, bw_method=GRID.bandwidth / values.std(ddof=1))
        if way == "pdf":
            _ = estimate(points) * GRID.bandwidth
        else:
            _ = [estimate.integrate_box_1d(point - half, point + half) for point in points]


def measure(way: str, file: Path) -> dict[str, float]:
    """One run, in this process; seconds for all weights."""
    matrix = mapped(file)
    if way == "memory":
        generated(matrix[:, :TOGETHER], drawn=True)  # what is loaded once
        tracemalloc.start()
        generated(matrix, drawn=True)
        return {"mb": tracemalloc.get_traced_memory()[1] / 2**20}
    cpu, wall = time.process_time(), time.perf_counter()
    if way in LOOPED:
        looped(matrix, way)
    else:
        generated(matrix, drawn=way == "drawn")
    share = matrix.shape[1] / LOOPED[way] if way in LOOPED else 1.0
    return {
        "cpu": (time.process_time() - cpu) * share,
        "wall": (time.perf_counter() - wall) * share,
    }


def run(way: str, file: Path) -> dict[str, float]:
    """One run, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, way, str(file)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def line(metric: str, mean: float, weights: int, **more: Any) -> dict[str, Any]:
    """A line of the results, every field of the format present."""
    return result_line(
        "pg-speed",
        PACKAGES,
        dataset=f"{MODELS} models of {weights:,} weights around a common one, {GRID.points} points",
        method="pg",
        metric=metric,
        mean=mean,
        draws=1,
        recipe=f"seed {SEED}, one thread",
        **({"weights": weights, "least": None, "most": None} | more),
    )


def of_size(weights: int, file: Path) -> list[dict[str, Any]]:
    """Time and memory for so many weights; beside the loops for those of MNIST-Net."""
    written(file, weights)
    found = {way: run(way, file) for way in ("scores", "drawn")}
    ways = LOOPED if weights == MNIST_NET else ()
    peers = {way: run(way, file)["cpu"] for way in ways}
    lines = []
    for way, took in found.items():
        known = {"seconds": round(took["wall"], 2)}
        for peer, theirs in peers.items() or (("", None),):
            beside: dict[str, Any] = {}
            if theirs is not None:
                beside = {
                    "peer": f"loop, {peer}, extrapolated from {LOOPED[peer]} weights",
                    "peer_mean": theirs,
                    "ratio": theirs / took["cpu"],
                    "least": LEAST[way, peer],
                }
            lines.append(line(f"CPU seconds, {way}", took["cpu"], weights, **known, **beside))
    mb = run("memory", file)["mb"]
    return [*lines, line("MB of arrays, drawn", mb, weights, most=MOST_MB)]


def main() -> int:
    """Measure, print, append; 1 if a target is missed."""
    missed = False
    print(f"{'figure':<24}{'weights':>12}{'ours':>10}{'theirs':>12}{'ratio':>9}   peer")
    for weights in SIZES:
        with tempfile.TemporaryDirectory(prefix="stillroom-speed-") as folder:
            found = of_size(weights, Path(folder) / "matrix")
        append("pg-speed", found)
        for one in found:
            cells = f"{one['mean']:>10,.2f}"
            if one["peer"]:
                met = one["ratio"] >= one["least"]
                cells += f"{one['peer_mean']:>12,.1f}{one['ratio']:>9,.0f}   {one['peer']}, "
                cells += f"wanted {one['least']:g}: {'met' if met else 'MISSED'}"
                missed |= not met
            missed |= one["most"] is not None and one["mean"] > one["most"]
            print(f"{one['metric']:<24}{weights:>12,}{cells}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
    else:
        sys.exit(main())
