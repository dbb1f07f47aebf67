"""K-centre query selection (RONA's Algorithm 3) against the naive one: seconds, memory, growth.

Part of `make bench-rona`. A fifth of 12,000, 24,000 and 48,000 public samples is picked, by the
softmax of seeded random logits of 10 classes. Every figure is appended to results/selection.jsonl;
a missed target ends 1, and so do two ways that pick different samples.

- ours: `stillroom.public.selection.k_centre`, three runs; its kernel is loaded before.
- naive: for every pick the distances from all samples to all picked ones anew, by one product of
  matrices. Its work grows as samples * picks^2, by 8 where both double. It is run in full at 3,000
  and 6,000 samples; its time at 48,000 is EXTRAPOLATED from the larger of them by that growth, and
  so is its largest table (samples * picks numbers). What the two sizes measured say about the
  growth is printed beside it.
- numpy: the running minimum of ours with one product of numpy per pick, run in full at 48,000:
  what is left of the ratio when the peer knows that trick.

Every run has its own process and one thread. Seconds are of the processor, so that other work on
the machine counts little; peak MB is that of the process, most of it libraries.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from itertools import pairwise
from statistics import mean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt

from measuring import append, result_line
from stillroom.public.selection import FLOOR, k_centre
from stillroom.vocabulary import Integers

PACKAGES = ("stillroom", "numpy", "numba")
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")},
    "OMP_WAIT_POLICY": "PASSIVE",
}
SIZES = (12_000, 24_000, 48_000)
NAIVE_SIZES = (3_000, 6_000)
CLASSES, SPREAD, PART, SEED = 10, 3.0, 5, 7
RUNS = 3
LEAST_RATIO = 50.0

Floats = npt.NDArray[np.float64]


def outputs(samples: int) -> Floats:
    """Probabilities like a student's."""
    logits = SPREAD * np.random.default_rng(SEED).standard_normal((samples, CLASSES))
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def naive(shares: Floats, count: int, first: int) -> Integers:
    """Every distance anew for every pick."""
    shares = np.maximum(shares, FLOOR)
    shares /= shares.sum(axis=1, keepdims=True)
    logs = np.log(shares)
    negative_entropy = (shares * logs).sum(axis=1)
    picked = [first]
    while len(picked) < count:
        nearest = (negative_entropy[:, None] - shares @ logs[picked].T).min(axis=1)
        nearest[picked] = -np.inf
        picked.append(int(nearest.argmax()))
    return np.array(picked, dtype=np.int64)


def running_minimum(shares: Floats, count: int, first: int) -> Integers:
    """Each distance once, by numpy."""
    shares = np.maximum(shares, FLOOR)
    shares /= shares.sum(axis=1, keepdims=True)
    logs = np.log(shares)
    negative_entropy = (shares * logs).sum(axis=1)
    nearest = np.full(len(shares), np.inf)
    picked = [first]
    while len(picked) < count:
        np.minimum(nearest, negative_entropy - shares @ logs[picked[-1]], out=nearest)
        nearest[picked[-1]] = -np.inf
        picked.append(int(nearest.argmax()))
    return np.array(picked, dtype=np.int64)


def measure(way: str, samples: int) -> dict[str, Any]:
    """One run, in this process."""
    shares, count = outputs(samples), samples // PART
    first = int(k_centre(shares, 1, seed=SEED)[0])
    k_centre(shares[:10], 2, seed=SEED)  # the first one loads its kernel
    start = time.process_time()
    if way == "ours":
        picked = k_centre(shares, count, seed=SEED)
    else:
        picked = (naive if way == "naive" else running_minimum)(shares, count, first)
    return {
        "seconds": time.process_time() - start,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "picked": hashlib.sha256(picked.tobytes()).hexdigest(),
    }


def run(way: str, samples: int) -> dict[str, Any]:
    """One run, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, way, str(samples)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def line(
    metric: str,
    values: list[float],
    peer: tuple[str, float] | None,
    peak: float | None,
    seconds: float,
) -> dict[str, Any]:
    """A line of the results, every field of the format present."""
    return result_line(
        "selection",
        PACKAGES,
        dataset=f"softmax of seeded logits, {CLASSES} classes",
        method="k-centre",
        metric=metric,
        mean=mean(values),
        sd=stdev(values) if len(values) > 1 else None,
        draws=len(values),
        peer=peer[0] if peer else None,
        peer_mean=peer[1] if peer else None,
        ratio=peer[1] / mean(values) if peer else None,
        seconds=round(seconds, 3),
        peak_mb=round(peak) if peak else None,
        recipe=f"seed {SEED}, logits times {SPREAD:g}, one thread",
    )


def megabytes(numbers: int) -> float:
    """Of 8 bytes each."""
    return numbers * 8 / 2**20


def main() -> int:
    """Measure, print, append; 1 if the ratio is missed or two ways differ."""
    start = time.perf_counter()
    ours = {n: [run("ours", n) for _ in range(RUNS)] for n in (*NAIVE_SIZES, *SIZES)}
    slow = {n: run("naive", n) for n in NAIVE_SIZES}
    largest, known = SIZES[-1], NAIVE_SIZES[-1]
    peer = run("numpy", largest)
    growth = slow[known]["seconds"] / slow[NAIVE_SIZES[0]]["seconds"]
    extrapolated = slow[known]["seconds"] * (largest / known) ** 3
    took = time.perf_counter() - start

    seconds = {n: [one["seconds"] for one in runs] for n, runs in ours.items()}
    peaks = {n: max(one["peak_mb"] for one in runs) for n, runs in ours.items()}
    # The probabilities given, floored, turned over, and their logarithms; two numbers per sample.
    arrays = megabytes(largest * (4 * CLASSES + 2))
    table, square = megabytes(largest * largest // PART), megabytes(largest * largest)
    beside = {n: ("naive, measured", one["seconds"]) for n, one in slow.items()}
    beside[largest] = (f"naive, extrapolated from {known}", extrapolated)
    found = [
        line(f"CPU seconds to select {n // PART} of {n}", taken, beside.get(n), peaks[n], took)
        for n, taken in seconds.items()
    ]
    of_all = f"select {largest // PART} of {largest}"
    plain = ("running minimum in numpy, measured", peer["seconds"])
    found.append(line(f"CPU seconds to {of_all}", seconds[largest], plain, peaks[largest], took))
    for other in (("naive, table of a pick, computed", table), ("all distances, computed", square)):
        found.append(line(f"MB of arrays to {of_all}", [arrays], other, None, took))
    append("selection", found)

    print(f"{'figure':<46}{'ours':>10}{'theirs':>12}{'ratio':>9}   peer")
    for one in found:
        cells = f"{one['mean']:>10,.3f}"
        if one["peer"]:
            cells += f"{one['peer_mean']:>12,.2f}{one['ratio']:>9,.1f}   {one['peer']}"
        print(f"{one['metric']:<46}{cells}")
    means = [mean(seconds[n]) for n in SIZES]
    steps = ", ".join(f"{b / a:.1f}" for a, b in pairwise(means))
    print(f"ours, 12k to 24k to 48k: times {steps}; samples * picks grows by 4.0 each")
    cautious = slow[known]["seconds"] * growth**3 / mean(seconds[largest])
    print(f"naive, 3k to 6k, measured: times {growth:.1f}; samples * picks^2 grows by 8.0")
    print(f"ratio at {largest} if naive went on growing as from 3k to 6k: {cautious:,.0f}")
    print("peak MB of ours: " + ", ".join(f"{n}: {peaks[n]:.0f}" for n in SIZES))
    print("peak MB of naive: " + ", ".join(f"{n}: {slow[n]['peak_mb']:.0f}" for n in slow))

    picks = [{one["picked"] for one in ours[n]} | {slow[n]["picked"]} for n in slow]
    picks.append({one["picked"] for one in ours[largest]} | {peer["picked"]})
    same = all(len(one) == 1 for one in picks)
    print("the same samples in the same order at 3k, 6k and 48k:", "yes" if same else "NO")
    ratio = extrapolated / mean(seconds[largest])
    met = ratio >= LEAST_RATIO
    print(f"ratio at {largest}, wanted {LEAST_RATIO:g}: {'met' if met else 'MISSED'}")
    return 0 if same and met else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        sys.exit(main())
