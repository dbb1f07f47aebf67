"""The secure argmax: seconds and bytes per 1,000 queries of 10 classes, from 250 entities.

`make bench-secure-argmax`. Every figure is appended to results/secure-argmax.jsonl; a wrong winner
ends 1. Votes are made up; the noise is the gate's, sigma 40 in all, a part of it from each entity.

- argmax: from the moment the three parties are connected, of the slowest one.
- session: the same with start of the parties, certificates, reading and adding of all shares.
- sharing: what one entity takes to share its rows.
- sent: by one party to the two others, without what TLS adds.
- packets: what one entity sends to the three parties.

Three parties share the cores of one machine here; on three machines each has its own, and a network
between them. MPyC needs gmpy2 to be as fast as this.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from typing import Any

import numpy as np

from measuring import append, result_line, spread
from stillroom.federation.secure_argmax import ArgmaxPlan, SharePacket, secure_argmax, share_rows
from stillroom.gate.entropy import Entropy
from stillroom.gate.mechanisms.discrete_gaussian import noise

PACKAGES = ("stillroom", "numpy", "mpyc", "gmpy2", "cryptography")
QUERIES, CLASSES, ENTITIES, SIGMA, SEED, RUNS = 1000, 10, 250, Fraction(40), 7, 3
DEADLINE = 600.0


def measured(plan: ArgmaxPlan) -> tuple[dict[str, float], bool]:
    """One session, and whether its winners are those of the sum."""
    draws, entropy, own = np.random.default_rng(SEED), Entropy(), SIGMA / Fraction(ENTITIES**0.5)
    truth = draws.integers(0, CLASSES, QUERIES)
    packets: list[SharePacket] = []
    total, sharing = np.zeros((QUERIES, CLASSES), np.int64), 0.0
    for entity in range(ENTITIES):
        right = draws.random(QUERIES) < 0.5
        votes = np.where(right, truth, draws.integers(0, CLASSES, QUERIES))
        rows = np.eye(CLASSES, dtype=np.int64)[votes]
        rows += noise(entropy, own, rows.size).reshape(rows.shape)
        began = time.perf_counter()
        packets += share_rows(plan, entity, rows)
        sharing += time.perf_counter() - began
        total += rows
    began = time.perf_counter()
    opened = secure_argmax(plan, packets, DEADLINE)
    told = {
        "seconds per 1,000 queries, argmax": opened.seconds,
        "seconds per 1,000 queries, session": time.perf_counter() - began,
        "seconds per entity, sharing": sharing / ENTITIES,
        "MB sent by one party": max(opened.sent) / 1e6,
        "MB of one entity's packets": sum(len(one.content) for one in packets[:3]) / 1e6,
    }
    return told, bool((opened.winners == total.argmax(1)).all())


def line(plan: ArgmaxPlan, metric: str, values: list[float], took: float) -> dict[str, Any]:
    """A line of the results, every field of the format present."""
    return result_line(
        "secure-argmax",
        PACKAGES,
        dataset=f"{ENTITIES} entities' made-up votes, {QUERIES:,} queries, {CLASSES} classes",
        method="votes",
        metric=metric,
        **spread(values),
        draws=RUNS,
        seconds=round(took, 2),
        recipe=f"sigma {SIGMA}, {plan.bits} bits, 3 parties on one machine, TLS, seed {SEED}",
        bits=plan.bits,
        runs=values,
    )


def main() -> int:
    """Measure, print, append; 1 if a winner is wrong."""
    plan = ArgmaxPlan("benchmark", QUERIES, CLASSES, ENTITIES, SIGMA)
    began = time.perf_counter()
    runs = [measured(plan) for _ in range(RUNS)]
    took = time.perf_counter() - began
    lines = [line(plan, name, [told[name] for told, _ in runs], took) for name in runs[0][0]]
    for one in lines:
        print(f"{one['metric']:<40}{one['mean']:>10.3f}   sd {one['sd']:.3f}")
    right = all(same for _, same in runs)
    print("every winner is NumPy's" if right else "WRONG winners")
    append("secure-argmax", lines)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
