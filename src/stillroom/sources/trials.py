"""How long work takes here: its inner part is tried on made-up records, and multiplied.

A method and a source name the phases of a run, each as pieces of work: a trial, and how often the
run does what the trial does once. No record is ever tried: the time that real ones take may tell of
them (K10). Trials that need torch import it when they are run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.data.dataset import class_names
from stillroom.randomness import integers
from stillroom.recipe import Recipe

AT_LEAST = 0.12
"""Seconds that a trial goes on, if once takes less."""
FEW_ROWS = 16
LONG = 0.5
"""Seconds of a batch that is not tried as a whole."""
STARTING = 3.0
"""Seconds until workers are there, with the packages that they need."""


class Trial(Hashable, Protocol):
    """A small piece of work on made-up records; equal ones are tried once."""

    def seconds(self) -> float:
        """How long one unit of it takes."""


@dataclass(frozen=True)
class Given:
    """Work whose length is known beforehand."""

    length: float

    def seconds(self) -> float:
        """What is known."""
        return self.length


@dataclass(frozen=True)
class Work:
    """Part of a phase.

    Args:
        trial: what one unit of it is.
        times: how many units a run does.
    """

    trial: Trial
    times: float = 1.0

    def seconds(self) -> float:
        """All units together.

        >>> Work(Given(0.5), times=4).seconds()
        2.0
        """
        return _tried(self.trial) * self.times if self.times else 0.0


@dataclass(frozen=True)
class Phase:
    """What a run tells that it is doing, and the work of it.

    Args:
        name: as progress is told it.
        works: its parts.
    """

    name: str
    works: Sequence[Work]

    def seconds(self) -> float:
        """All parts together."""
        return sum(work.seconds() for work in self.works)


@dataclass(frozen=True)
class Longest:
    """Pieces of work side by side.

    Args:
        works: the pieces.
        together: how many at once.
    """

    works: tuple[Work, ...]
    together: float

    def seconds(self) -> float:
        """Until the last has ended."""
        each = [work.seconds() for work in self.works]
        return max(*each, sum(each) / self.together) if len(each) > 1 else sum(each)


def seconds_of(work: Callable[[], object], *, first: bool = False) -> float:
    """How long a call takes, once everything it needs is loaded.

    Args:
        work: is called again and again, for a moment.
        first: whether the first call counts, because a run has no second one either.
    """
    taken: list[float] = []
    if not first:
        work()
    while sum(taken) < AT_LEAST and len(taken) < 20:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def seconds_per_row(work: Callable[[int], object], rows: int) -> float:
    """How long one row of a batch takes; where a batch takes long, by a few rows of it.

    Args:
        work: is called with a number of rows.
        rows: those of a batch.
    """
    few = min(rows, FEW_ROWS)
    once = seconds_of(lambda: work(few)) / few
    if few == rows or once * rows > LONG:
        return once
    return seconds_of(lambda: work(rows)) / rows


def told(seconds: float) -> str:
    """A length of time, as precise as an estimate is.

    >>> [told(seconds) for seconds in (0.03, 4.2, 95, 5400)]
    ['0.0 s', '4.2 s', '95 s', '1.5 h']
    """
    if seconds < 100:
        return f"{seconds:.{0 if seconds >= 10 else 1}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.2g} h"


@lru_cache(maxsize=256)
def _tried(trial: Trial) -> float:
    return trial.seconds()


def made_up(count: int, shape: Sequence[int], full_scale: float = 255.0) -> npt.NDArray[Any]:
    """Records that nobody took; the same ones each time."""
    below = max(2, min(256, int(full_scale) + 1))
    drawn = integers(0, "made-up records", size=count * int(np.prod(shape)), below=below)
    return drawn.astype(np.uint8).reshape(count, *shape)


def made_up_classes(count: int, classes: int) -> npt.NDArray[np.int64]:
    """Their classes, in turn."""
    return np.arange(count, dtype=np.int64) % classes


def made_up_data(count: int, shape: tuple[int, ...], classes: int, full_scale: float) -> Dataset:
    """Records that nobody took, with classes in turn."""
    return Dataset(
        made_up(count, shape, full_scale),
        made_up_classes(count, classes),
        class_names(classes),
        name="made up",
    )


def sensitive_records(recipe: Recipe) -> float:
    """How many there are as far as it is declared, if all persons have as many as count."""
    data = recipe.data
    each = data.max_records_per_person if data.unit == "person" else 1
    return float(data.declared_size * each)


def at_once(recipe: Recipe, units: float) -> float:
    """How many of so many independent units run at the same time."""
    engine = recipe.engine
    if engine.kind == "serial":
        return 1.0
    return max(1.0, min(units, engine.workers or os.cpu_count() or 1))


def in_parallel(recipe: Recipe, trial: Trial, each: float, units: float) -> list[Work]:
    """Independent units on the recipe's engine.

    Args:
        recipe: says where they run.
        trial: what a unit is made of.
        each: how often, per unit.
        units: how many there are.
    """
    together = at_once(recipe, units)
    start = [Work(Given(STARTING))] if together > 1 else []
    return [*start, Work(trial, each * units / together)]
