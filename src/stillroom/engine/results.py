"""Results of units: arrays by name, and a folder that keeps them whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.durable import sweep, write_whole
from stillroom.errors import BadInput

Result = dict[str, npt.NDArray[Any]]


def checked(result: Mapping[str, npt.NDArray[Any]], name: str) -> Result:
    """The arrays as a file would give them back: sorted by name, in this machine's byte order.

    Raises:
        BadInput: the task gave something else than arrays of numbers by name.
    """
    if not isinstance(result, Mapping) or not all(
        isinstance(key, str) and _holds_numbers(array) for key, array in result.items()
    ):
        raise BadInput(
            "a task must give arrays of numbers of at most 64 bits by name",
            where=name,
            why="nothing else can be kept without code in the file",
            remedy="return a dictionary of numpy arrays",
        )
    return {
        key: np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
        for key, array in sorted(result.items())
    }


def _holds_numbers(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "biuf" and array.itemsize <= 8


class Keeper(Protocol):
    """Keeps what is finished, and gives it back."""

    def load(self, name: str) -> Result | None:
        """What is kept of a unit; None if there is nothing, or it is damaged."""

    def save(self, name: str, arrays: Result) -> Result:
        """Keep a unit's result, on disk when this ends; gives what need not be read again."""


class Store:
    """Finished units in a folder, for one plan only."""

    def __init__(self, folder: Path, key: str) -> None:
        if not key:
            raise BadInput(
                "results on disk need a key",
                where=str(folder),
                why="without one, the results of another plan would be taken for this one's",
                remedy="give a digest of everything the results depend on",
            )
        self._folder, self._key = folder, key
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        plan = folder / "units.json"
        try:
            known = json.loads(plan.read_text(encoding="utf-8"))["key"] if plan.exists() else key
        except (ValueError, KeyError, TypeError):
            known = None
        if known != key:
            raise BadInput(
                "the folder holds the results of another plan",
                where=str(folder),
                why="results of two plans must not be mixed",
                remedy="go on with the old plan, use another folder, or remove this one",
            )
        if not plan.exists():
            write_whole(plan, json.dumps({"key": key}).encode())

    def save(self, name: str, arrays: Result) -> Result:
        """Keep a unit's result in a file of its own."""
        from safetensors.numpy import save

        path = self._folder / f"{name}.safetensors"
        write_whole(path, save(arrays, self._marks(name, arrays)))
        sweep(path)
        return arrays

    def load(self, name: str) -> Result | None:
        """The unit's result; None if there is none, or a damaged one."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._folder / f"{name}.safetensors", framework="numpy") as file:
                arrays = {key: file.get_tensor(key) for key in sorted(file.keys())}
                marks = file.metadata()
        except (OSError, SafetensorError):
            return None
        return arrays if marks == self._marks(name, arrays) else None

    def _marks(self, name: str, arrays: Result) -> dict[str, str]:
        digest = hashlib.sha256()
        for key, array in sorted(arrays.items()):
            digest.update(json.dumps([key, array.dtype.str, array.shape]).encode())
            digest.update(array.tobytes())
        return {"key": self._key, "unit": name, "sha256": digest.hexdigest()}
