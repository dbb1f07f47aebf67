"""The format of a figure, the same for all benchmarks."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import mean, stdev
from typing import Any

FIELDS = (
    *("bench", "dataset", "method", "source", "mode", "unit", "epsilon", "delta"),
    *("metric", "mean", "sd", "draws", "published", "peer", "peer_mean", "ratio"),
    *("seconds", "peak_mb", "recipe", "versions"),
)


def result_line(bench: str, packages: Sequence[str], **known: Any) -> dict[str, Any]:
    """A line of the results: every field of the format, then what else is known."""
    told = {"bench": bench, **known, "versions": {"python": sys.version.split()[0]}}
    told["versions"] |= {package: version(package) for package in packages}
    return {**{field: told.pop(field, None) for field in FIELDS}, **told}


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation."""
    return {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else None}


def compared(
    runs: Sequence[float], peer: str, peer_runs: Sequence[float]
) -> dict[str, float | int | str | None]:
    """Several runs beside those of a peer, which may have none."""
    return {
        **spread(runs),
        "draws": len(runs),
        "peer": peer or None,
        "peer_mean": mean(peer_runs) if peer_runs else None,
    }


def peak_mb() -> int:
    """The most memory this process had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def append(bench: str, figures: Iterable[dict[str, Any]]) -> None:
    """Add lines to a benchmark's results."""
    with _results(bench).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in figures)


def read(bench: str) -> list[dict[str, Any]]:
    """The lines of a benchmark's results; none where it never ran."""
    if not _results(bench).exists():
        return []
    return [json.loads(line) for line in _results(bench).read_text(encoding="utf-8").splitlines()]


def _results(bench: str) -> Path:
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    return folder / f"{bench}.jsonl"
