"""How much memory a release needs, about, and how much there is."""

from __future__ import annotations

import os
from pathlib import Path

from stillroom.errors import BadInput
from stillroom.pipeline.checking.report import Report
from stillroom.recipe import Recipe

ROW = 4 + 2
"""Bytes of a feature: as it is computed, and as it is summed."""
GRADIENT = 8
"""Bytes of a weight in one record's gradient, and of its copy on the grid."""
TOGETHER = 64
"""Records whose gradients by a network are kept at a time."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def needed(recipe: Recipe, stored: int, records: int, record: int, width: int | None) -> int:
    """Bytes that a release needs for its records and gradients, about.

    Args:
        recipe: the recipe.
        stored: bytes of all records as they were read.
        records: how many are sensitive.
        record: numbers in one.
        width: coordinates of a gradient sum, where it is known.
    """
    training = recipe.section("training")
    read = 2 * stored  # whole, and in parts
    if training is None or recipe.source != "trained":
        return read + records * record * ROW
    if training.linear:
        columns = record if width is None else width
        return read + records * columns * ROW
    return read + 2 * records * record * 4 + TOGETHER * (width or 0) * GRADIENT


def there() -> tuple[int, int]:
    """Bytes that are free now, and that this process may have at most."""
    page = os.sysconf("SC_PAGE_SIZE")
    most = os.sysconf("SC_PHYS_PAGES") * page
    free = os.sysconf("SC_AVPHYS_PAGES") * page
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) << 10
    limits = [int(text) for text in map(_text, map(Path, _LIMITS)) if text.strip().isdecimal()]
    most = min([most, *limits])
    return min(free, most), most


def tell_memory(report: Report, need: int) -> None:
    """Compare what is needed with what is there."""
    free, most = there()
    report.facts |= {"memory_needed": need, "memory_free": free}
    if need > most:
        report.misfit(
            BadInput(
                f"a release needs about {_gigabytes(need)} of memory, and there are at most "
                f"{_gigabytes(most)}",
                where="memory",
                why="records and their features are kept in memory",
                remedy="use a machine with more memory, smaller pictures or fewer features",
            )
        )
    elif need > free:
        report.notes.append(
            f"a release needs about {_gigabytes(need)} of memory, and {_gigabytes(free)} are free "
            "now: end other programs first"
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
