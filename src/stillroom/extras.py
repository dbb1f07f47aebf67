"""Packages that come with an extra: told apart from those that are there and cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stillroom.errors import BadInput

EXTRA_OF = {
    **dict.fromkeys(
        (
            *("PIL", "joblib", "numba", "onnx", "onnxruntime", "onnxscript", "opacus"),
            *("safetensors", "sklearn", "threadpoolctl", "torch"),
        ),
        "train",
    ),
    **dict.fromkeys(("dask", "distributed", "ray"), "cluster"),
    **dict.fromkeys(("gmpy2", "mpyc"), "mpc"),
}
"""The packages that come with an extra, by their import names."""


@contextmanager
def needed(package: str, where: str, why: str, extra: str = "train") -> Iterator[None]:
    """Say what to do when an import inside the block fails.

    Only a missing module of that very package means that it is not installed. Where memory or
    another library is missing, the message says that the package cannot be loaded.

    Args:
        package: its import name.
        where: what needs it.
        why: what it is needed for.
        extra: the extra of stillroom it comes with.

    Raises:
        BadInput: the package is not installed, or it cannot be loaded.
        MemoryError: there is too little memory for it.

    >>> with needed("wings", where="flight", why="they carry"):
    ...     import wings
    Traceback (most recent call last):
        ...
    stillroom.errors.BadInput: the package wings is not installed [flight]. \
Why it matters: they carry. What to do: pip install 'stillroom[train]'.
    """
    try:
        yield
    except (ImportError, OSError) as fault:
        absent = is_absent(package, fault)
        raise unloaded(package, where, why, absent=absent, extra=extra) from None


def unloaded(package: str, where: str, why: str, *, absent: bool, extra: str = "train") -> BadInput:
    """The refusal of what needs a package that is absent, or there and cannot be loaded."""
    if absent:
        what, remedy = "is not installed", f"pip install 'stillroom[{extra}]'"
    else:
        what = "is installed, but cannot be loaded"
        remedy = (
            f"look at what `python -c 'import {package}'` says: too little memory (a limit on "
            "it?), or a library that is missing or of another version"
        )
    return BadInput(f"the package {package} {what}", where=where, why=why, remedy=remedy)


def is_absent(package: str, fault: Exception) -> bool:
    """Whether an import failed because the package, and nothing else, is not installed."""
    missing = isinstance(fault, ModuleNotFoundError)
    return missing and (getattr(fault, "name", None) or "").partition(".")[0] == package
