"""Ray and dask: clusters that are there already, or small ones started and stopped here.

Both are called directly and not through joblib: there ray gives its results only all together, and
dask waits forever for a worker that was killed. Machines of a cluster need the same packages as
this one.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from stillroom.errors import BadInput
from stillroom.extras import needed

ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    # Threads that wait must sleep: spinning ones take the cores from the other workers.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Machines of a cluster are told as this one is: no package reports to its makers.
    "ORT_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # What ray will do in future anyway; until then it warns about it at every start.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""The environment that workers start with."""

DEATHS = {
    "loky": ("joblib.externals.loky.process_executor", "TerminatedWorkerError"),
    "ray": ("ray.exceptions", "WorkerCrashedError", "OutOfMemoryError"),
    "dask": ("distributed", "KilledWorker"),
}
"""Engine -> the module and the names of the exceptions that say so when a worker was killed."""


@contextmanager
def environment(wished: Mapping[str, str]) -> Iterator[None]:
    """What processes inherit that are started meanwhile."""
    before = {name: os.environ.get(name) for name in wished}
    os.environ.update(wished)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def ray(address: str | None, workers: int | None) -> Iterator[Any]:
    """Ray, connected: to the address, to what the caller started, or to a local cluster."""
    package = _package("ray")
    if package.is_initialized():
        yield package
        return
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
    variables = dict(ENVIRONMENT)
    with _scratch() as scratch:
        if address is None:
            settings |= {"num_cpus": workers, "include_dashboard": False, "_temp_dir": scratch}
            # Local workers find what this process finds, such as a model of one's own.
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
            variables["HOME"] = str(Path.home())
        try:
            alone = _for_this_machine_alone(scratch) if address is None else nullcontext()
            with _own_sigterm(), alone:
                package.init(address, runtime_env={"env_vars": variables}, **settings)
            if address is None and package.util.get_node_ip_address() != "127.0.0.1":
                raise BadInput(
                    "ray listens for other machines",
                    where="engine",
                    why="whoever reaches its ports can read the records and run code here",
                    remedy="use the engine loky, the ray that stillroom's constraints name, or a "
                    "cluster of your own by its address",
                )
            yield package
        finally:
            package.shutdown()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray takes the signal over when it starts, and would end the process with code 1."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _for_this_machine_alone(scratch: str) -> Iterator[None]:
    """Ray, started meanwhile, listens on the loopback and asks no host outside.

    By itself it listens on every address of the machine, and asks the hosts of three clouds where
    it runs, for its usage statistics and also where these are off.
    """
    Path(scratch, "ray_bootstrap_config.yaml").write_text("{}\n", encoding="utf-8")
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        with environment({"HOME": scratch}):
            yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def ray_stream(
    package: Any, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Generator[Any]:
    """Results in any order; a few calls are on their way, not all."""
    remote = package.remote(num_cpus=1, max_retries=0)(function)
    waiting, ahead = iter(calls), 2 * int(package.cluster_resources().get("CPU", 1))
    running = [remote.remote(*call) for call in islice(waiting, ahead)]
    while running:
        (done,), running = package.wait(running, num_returns=1)
        try:
            result = package.get(done)
        except package.exceptions.RayTaskError as error:
            raise error.cause from error
        running += [remote.remote(*call) for call in islice(waiting, 1)]
        yield result


@contextmanager
def dask(address: str | None, workers: int | None) -> Iterator[Any]:
    """A dask client: of the address, or of a local cluster."""
    client = _package("distributed").Client
    if address is not None:
        with client(address) as connected:
            yield connected
        return
    local = {
        "n_workers": workers or os.cpu_count(),
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "host": "127.0.0.1",
        # Keys for this cluster only: other users of the machine can reach the port as well.
        "security": True,
        # What a worker logs about a failure can quote data; the failure itself comes back anyway.
        "silence_logs": logging.CRITICAL,
    }
    # A worker that is killed is reported at once: who started it decides what to do.
    settings: dict[str, object] = {"distributed.scheduler.allowed-failures": 0}
    with (
        _scratch() as scratch,
        importlib.import_module("dask").config.set(settings | {"temporary-directory": scratch}),
        client(local_directory=scratch, **local) as connected,
    ):
        yield connected


def dask_stream(
    client: Any, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Generator[Any]:
    """Results in any order; a few calls are on their way, not all."""

    def submit(most: int) -> list[Any]:
        # As partials: dask would otherwise look through every payload for its own objects.
        return [client.submit(partial(function, *c), pure=False) for c in islice(waiting, most)]

    waiting, ahead = iter(calls), 2 * sum(client.ncores().values())
    running = importlib.import_module("distributed").as_completed(submit(ahead))
    for future in running:
        result = future.result()
        running.update(submit(1))
        yield result


def deaths(kind: str) -> tuple[type[Exception], ...]:
    """How an engine says that a worker was killed; its package is there once it has run."""
    package, *names = DEATHS.get(kind, ("", ""))
    if not sys.modules.get(package.partition(".")[0]):
        return ()
    faults = importlib.import_module(package)
    return tuple(getattr(faults, name) for name in names)


def _package(name: str) -> Any:
    with needed(name, where="engine", why="this engine is made of it", extra="cluster"):
        return importlib.import_module(name)


@contextmanager
def _scratch() -> Iterator[str]:
    """A folder for what a local cluster spills: readable by its owner only, and gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="still-", ignore_cleanup_errors=True) as folder:
        yield folder
