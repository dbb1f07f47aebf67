"""Plans, rows and packets for the tests of the secure argmax."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from stillroom.federation.argmax_plan import ArgmaxPlan
from stillroom.federation.argmax_shares import SharePacket, share_rows


def planned(queries: int = 4, classes: int = 3, entities: int = 3, **more) -> ArgmaxPlan:
    """A plan without noise: what is tested is exact."""
    return ArgmaxPlan("a test", queries, classes, entities, **({"sigma": Fraction(0)} | more))


def tied_rows(plan: ArgmaxPlan, seed: int = 7) -> list[np.ndarray]:
    """Rows whose sums take few values, the largest and smallest that fit among them: many ties."""
    draws = np.random.default_rng(seed)
    wanted = draws.integers(-(2 ** (plan.bits - 1)), 2 ** (plan.bits - 1), (plan.queries, 10))
    half = wanted // 2
    rest = [np.zeros_like(wanted)] * (plan.entities - 2)
    return [half, wanted - half, *rest]


def shared(plan: ArgmaxPlan, rows: Sequence[np.ndarray]) -> list[SharePacket]:
    """The packets of all entities for all parties."""
    return [packet for entity, own in enumerate(rows) for packet in share_rows(plan, entity, own)]


def running(process: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z" and process != os.getpid()
