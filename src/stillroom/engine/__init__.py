"""Independent trainings, run on the cores of this machine or on a cluster.

A unit's result depends on its payload alone, never on the engine, the number of workers or the
order: one thread per worker, and the task brings its own seed. What is finished is on disk at once,
so a run that is stopped, or killed, goes on where it was.

Results may be models of sensitive data. They are written for their owner only, and payloads go to
local workers through pipes, not through files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from stillroom.engine.clusters import deaths
from stillroom.engine.results import Keeper, Result, Store, checked
from stillroom.engine.workers import Engine, one_thread, stream
from stillroom.errors import BadInput, StillroomError

__all__ = ["CORES", "Engine", "Keeper", "Result", "Task", "WorkItem", "run_all"]

Task = Callable[[Any], Mapping[str, npt.NDArray[Any]]]

RESTARTS = 2
"""How often killed workers are started anew, each time half as many."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


CORES = Engine()
"""One worker per core of this machine."""


@dataclass(frozen=True)
class WorkItem:
    """One training: a name that becomes a file name, and what the task is given."""

    name: str
    payload: Any = field(repr=False)


def run_all(
    task: Task,
    units: Sequence[WorkItem],
    *,
    engine: Engine = CORES,
    folder: Path | None = None,
    key: str = "",
    keeper: Keeper | None = None,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """Run the task on every unit; the results come in the order of the units.

    Args:
        task: a function at the top of a module, or a partial of one; gives arrays by name.
        units: what to run, under names of their own.
        engine: where to run.
        folder: keeps each result as soon as it is there; what it holds is not run again.
        key: a digest of everything the results depend on; needed with a folder.
        keeper: keeps results in another way than a folder does.
        on_done: told how many units are done, and of how many: at the start, then after each.

    Raises:
        BadInput: a name, a result or the folder cannot be used, the engine is not installed, or
            workers were killed again and again. What was finished before is kept.

    >>> import numpy as np
    >>> items = [WorkItem("a", 3)]
    >>> run_all(lambda side: {"area": np.array(side**2)}, items, engine=Engine("serial"))
    [{'area': array(9)}]
    """
    _refuse_bad_names(units)
    store = keeper if folder is None else Store(folder, key)
    results: dict[int, Result] = {}
    for position, unit in enumerate(units):
        found = None if store is None else store.load(unit.name)
        if found is not None:
            results[position] = found
    on_done(len(results), len(units))
    workers = engine.workers
    for restart in range(RESTARTS + 1):
        missing = [(task, i, unit) for i, unit in enumerate(units) if i not in results]
        if not missing:
            break
        try:
            with closing(stream(engine, workers, _run_one, missing)) as finished:
                for position, result in finished:
                    name = units[position].name
                    results[position] = result if store is None else store.save(name, result)
                    on_done(len(results), len(units))
        except deaths(engine.kind) as death:
            if restart == RESTARTS:
                left = [unit.name for i, unit in enumerate(units) if i not in results]
                raise _killed(left, len(units), kept=store is not None) from death
            # Mostly it is memory that ran out. One loky worker alone would be this very process.
            workers = workers or os.cpu_count() or 1
            workers = max(workers // 2, min(workers, 2))
    return [results[position] for position in range(len(units))]


def _run_one(task: Task, position: int, unit: WorkItem) -> tuple[int, Result]:
    with one_thread():
        try:
            result = task(unit.payload)
        except StillroomError as error:
            error.where = f"{unit.name}: {error.where}" if error.where else unit.name
            raise
        return position, checked(result, unit.name)


def _killed(left: list[str], total: int, *, kept: bool) -> BadInput:
    shown = ", ".join(left[:4]) + (" ..." if len(left) > 4 else "")
    return BadInput(
        f"the system killed workers {RESTARTS + 1} times; "
        f"{total - len(left)} of {total} units are done",
        where=f"not done: {shown}",
        why="mostly the memory did not suffice for all workers at once",
        remedy="use fewer workers or smaller models"
        + ("; run again: what is finished is kept" if kept else ""),
    )


def _refuse_bad_names(units: Sequence[WorkItem]) -> None:
    names = [unit.name for unit in units]
    if len({name.casefold() for name in names}) != len(names) or not all(
        _NAME.fullmatch(name) for name in names
    ):
        raise BadInput(
            "units need different names of letters, digits, '-', '_' and '.'",
            where="units",
            why="each name becomes the name of a file",
            remedy="name them such as teacher-017",
        )
