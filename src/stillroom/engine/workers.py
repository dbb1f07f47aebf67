"""Workers: one thread each, in this process, on the cores of this machine or on a cluster."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from stillroom.engine import clusters
from stillroom.engine.clusters import ENVIRONMENT, environment
from stillroom.errors import BadInput, located
from stillroom.extras import needed

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Kind = Literal["serial", "loky", "ray", "dask"]

WATCH = 1.0
"""Seconds after which a worker whose parent was killed has noticed."""


@dataclass(frozen=True)
class Engine:
    """Where trainings run.

    Args:
        kind: "serial" in this process, "loky" on this machine's cores, "ray" or "dask" on a
            cluster (or, without an address, on one that is started here and stopped at the end).
        workers: how many at once; None for one per core. A single one works in this process.
        address: of a running ray or dask cluster.

    Raises:
        BadInput: the parts do not fit together.

    >>> Engine("loky", workers=2)
    Engine(kind='loky', workers=2, address=None)
    """

    kind: Kind = "loky"
    workers: int | None = None
    address: str | None = None

    @located("engine")
    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise BadInput(
                f"unknown engine {self.kind!r}",
                why="it says where independent work runs",
                remedy=f"use one of: {', '.join(get_args(Kind))}",
            )
        if self.workers is not None and self.workers < 1:
            raise BadInput(
                f"{self.workers} workers cannot work",
                why="somebody must do the work",
                remedy="give 1 or more, or none at all for one per core",
            )
        if self.address is not None and self.kind not in ("ray", "dask"):
            raise BadInput(
                f"the engine {self.kind!r} has no address",
                why="it runs on this machine only",
                remedy="leave the address out, or use ray or dask",
            )


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums in one order: how many threads share a sum decides its last bits."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 1
    with _thread_pools(len(sys.modules)).limit(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> ThreadpoolController:
    """The thread pools of all libraries; looked for again only once more modules are loaded.

    To look for them takes longer than many a sum does.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def stream(
    engine: Engine,
    workers: int | None,
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
) -> Generator[Any]:
    """What the function gives for each call, as soon as it is there, in any order."""
    # It must be there before workers start, as torch reads it once.
    with environment(ENVIRONMENT):
        if engine.kind == "serial":
            for call in calls:
                yield function(*call)
        elif engine.kind == "ray":
            with clusters.ray(engine.address, workers) as remote:
                yield from clusters.ray_stream(remote, function, calls)
        elif engine.kind == "dask":
            with clusters.dask(engine.address, workers) as client:
                yield from clusters.dask_stream(client, function, calls)
        else:
            yield from _loky_stream(workers, function, calls)


def _loky_stream(
    workers: int | None, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Generator[Any]:
    with needed("joblib", where="engine", why="this engine is made of it"):
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky import get_reusable_executor
    # A worker watches its parent from its first moment on: it may be killed while it still loads.
    watch = {"initializer": _end_with, "initargs": (os.getpid(),)}
    with parallel_config("loky", inner_max_num_threads=1, **watch):
        # Arrays stay out of joblib's temporary files; one call at a time, so none is held back.
        parallel = Parallel(
            n_jobs=workers or -1, return_as="generator_unordered", batch_size=1, max_nbytes=None
        )
        jobs = (delayed(function)(*call) for call in calls)
        finished = False
        try:
            with closing(parallel(jobs)) as results:
                yield from results
            finished = True
        finally:
            # Idle workers would stay for minutes, with the records they were given; busy ones
            # work on what nobody waits for any more.
            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=not finished)


def _end_with(parent: int) -> None:
    """Watch the parent from now on: killed, it cannot end its workers any more."""
    if os.getpid() == parent:
        return  # a single worker works in this very process

    def watch() -> None:
        # An orphan gets another parent. A signal of the kernel's would come when the thread
        # ends that started the worker, and not every system has one.
        while os.getppid() == parent:
            time.sleep(WATCH)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
