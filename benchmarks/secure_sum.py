"""The secure sum of 50 to 1,000 entities: seconds and bytes, all pairs against a neighbour graph.

Every figure is appended to results/secure-sum.jsonl; a wrong sum ends 1. Everybody adds 2,000
queries of 10 classes, in words of 32 bits. One in twenty may vanish and one in a hundred (at least
one) may collude. As many as may vanish do so after sharing their secrets, which costs most: their
mask keys are opened, and their masks are taken off one by one.

- entity: what one survivor does in all five stages, the mean over survivors.
- aggregator: everything else, the recovery of masks included.
- bytes: what one survivor sends and receives.

Every run has its own process and one thread. Seconds are of the processor, so that other work on
the machine counts little. In one process there is no network: bytes are counted, not timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from measuring import append, peak_mb, result_line
from selection import ONE_THREAD
from stillroom.federation import (
    Leg,
    Plan,
    Stage,
    enrol,
    new_session,
    run,
    suggested_neighbours,
)

PACKAGES = ("stillroom", "numpy", "cryptography")
SIZES = (50, 100, 200, 1000)
SHAPE, LARGEST = (2000, 10), 1000
METRICS = ("CPU seconds, entity", "CPU seconds, aggregator", "bytes, entity")


class Meter:
    """A network that loses some entities after they shared, and counts seconds and bytes."""

    def __init__(self, vanish: set[int]) -> None:
        self.vanish = vanish
        self.seconds, self.bytes = defaultdict[int, float](float), Counter[int]()
        self._since = 0.0

    def __call__(self, leg: Leg, data: bytes) -> Iterable[bytes]:
        now = time.process_time()
        if leg.stage >= Stage.MASKED and leg.position in self.vanish:
            return ()
        self.bytes[leg.position] += len(data)
        if leg.up:
            self.seconds[leg.position] += now - self._since
        self._since = time.process_time()
        return (data,)


def planned(roster: Mapping[str, bytes], way: str) -> Plan:
    """The plan for so many entities."""
    dropouts, colluders = len(roster) // 20, max(1, len(roster) // 100)
    near = suggested_neighbours(len(roster), dropouts, colluders, pairs_pay=0)
    return Plan(
        *(new_session(), roster, dropouts, colluders, SHAPE, LARGEST),
        neighbours=near if way == "graph" else None,
    )


def measure(entities: int, way: str) -> dict[str, Any]:
    """One session, in this process."""
    identities, roster = enrol(f"entity-{number:04}" for number in range(entities))
    plan = planned(roster, way)
    draws = np.random.default_rng(7)
    rows = {name: draws.integers(-LARGEST, LARGEST, SHAPE, endpoint=True) for name in roster}
    meter = Meter(set(range(entities - plan.dropouts, entities)))
    cpu, wall = time.process_time(), time.perf_counter()
    session = run(plan, identities, rows, meter)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    survivors = plan.names[: plan.floor]
    right = session.opened is not None and np.array_equal(
        session.opened.total, sum(rows[name] for name in survivors)
    )
    alive = range(plan.floor)
    return {
        "CPU seconds, entity": sum(meter.seconds[one] for one in alive) / len(alive),
        "CPU seconds, aggregator": cpu - sum(meter.seconds.values()),
        "bytes, entity": sum(meter.bytes[one] for one in alive) / len(alive),
        "seconds": round(wall, 2),
        "peak_mb": peak_mb(),
        "exact": right,
        "entities": entities,
        "neighbours": plan.neighbours,
        "threshold": plan.threshold,
        "recipe": f"d {plan.dropouts}, c {plan.colluders}, one thread",
    }


def in_process_of_its_own(entities: int, way: str) -> dict[str, Any]:
    """One session, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, str(entities), way],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def lines(entities: int, found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures of a size; those of the graph stand beside those of all pairs."""
    told = []
    for way, figures in found.items():
        for metric in METRICS:
            beside: dict[str, Any] = {}
            if way == "graph":
                theirs = found["all pairs"][metric]
                beside = {
                    "peer": "all pairs",
                    "peer_mean": theirs,
                    "ratio": theirs / figures[metric],
                }
            told.append(
                result_line(
                    "secure-sum",
                    PACKAGES,
                    dataset=f"{entities:,} entities, {SHAPE[0]:,} queries of {SHAPE[1]} classes",
                    method=f"secure sum, {way}",
                    metric=metric,
                    mean=figures[metric],
                    draws=1,
                    **{name: figures[name] for name in figures if name not in METRICS},
                    **beside,
                )
            )
    return told


def main() -> int:
    """Measure, print, append; 1 if a sum is wrong."""
    wrong = False
    print(f"{'figure':<26}{'entities':>9}{'neighbours':>12}{'graph':>12}{'all pairs':>12}")
    for entities in SIZES:
        found = {way: in_process_of_its_own(entities, way) for way in ("all pairs", "graph")}
        told = lines(entities, found)
        append("secure-sum", told)
        for one in told:
            wrong |= not one["exact"]
            if one["peer"]:
                cells = f"{one['neighbours']:>12}{one['mean']:>12,.3f}{one['peer_mean']:>12,.3f}"
                print(f"{one['metric']:<26}{entities:>9,}{cells}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
    else:
        sys.exit(main())
