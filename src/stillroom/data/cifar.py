"""Reader of CIFAR-10 batches, binary or as Python pickles; never runs what a pickle asks for."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import numpy.typing as npt

from stillroom.data.dataset import Dataset, class_names
from stillroom.data.files import CIFAR_RECORD, DAMAGE, file_kind, opened
from stillroom.data.readers import Classes
from stillroom.errors import BadInput

THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
"""Part -> the official names of its batches; the binary ones end in `.bin`."""

MOST_OPCODES = 300_000
"""A published batch has some forty thousand: a label or a file's name each."""

Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def read_cifar(path: str | Path | Sequence[Path], classes: Classes = None) -> Dataset:
    """Read CIFAR-10 batches, binary or Python, as pictures of shape (32, 32, 3).

    Args:
        path: a batch, or several that belong together, in their order; plain or gzipped.
        classes: other names for the ten classes.

    Raises:
        BadInput: a file is missing, cut, or no such batch; or a pickle asks for anything but
            arrays, lists, texts and numbers.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "batch.bin").write_bytes(bytes([3] + [0] * 3072))
    ...     pets = read_cifar(Path(folder) / "batch.bin")
    >>> pets.classes[pets.y[0]], pets.shape
    ('cat', (32, 32, 3))
    """
    paths = [Path(path)] if isinstance(path, str | Path) else list(path)
    name = str(paths[0] if len(paths) == 1 else paths[0].parent)
    names = THINGS if classes in (None, len(THINGS)) else class_names(classes, name)
    batches = [_batch(file) for file in paths]
    planes = batches[0][0] if len(batches) == 1 else np.concatenate([x for x, _ in batches])
    pictures = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    labels = np.concatenate([y for _, y in batches])
    return Dataset(np.ascontiguousarray(pictures), labels, names, name=name)


def _batch(path: Path) -> Arrays:
    return _python_batch(path) if file_kind(path) == "cifar-python" else _binary_batch(path)


def _binary_batch(path: Path) -> Arrays:
    with opened(path) as stream:
        content = np.frombuffer(stream.read(), dtype=np.uint8)
        if len(content) == 0 or len(content) % CIFAR_RECORD:
            raise BadInput(
                f"the file does not hold whole CIFAR-10 records of {CIFAR_RECORD} bytes",
                why="records would be cut or shifted against their labels",
                remedy="get the file again; it may be an unfinished copy, or of another kind",
            )
    records = content.reshape(-1, CIFAR_RECORD)
    return records[:, 1:], records[:, 0]


def _python_batch(path: Path) -> Arrays:
    with opened(path) as stream:
        try:
            batch = _Unpickler(stream).load()
            content = {key.decode() if isinstance(key, bytes) else key: batch[key] for key in batch}
            return _pixels(content["data"]), _labels(content["labels"])
        except (BadInput, MemoryError, *DAMAGE):
            raise
        except Exception:
            # A damaged pickle fails in a dozen ways; their messages may quote the file.
            raise BadInput(
                "the file is no CIFAR-10 batch as Python pickles it",
                why="only `data` (bytes, 3072 per record) and `labels` (a list) can be used",
                remedy="get the published file again, or use the binary version",
            ) from None


class _Piece:
    """A numpy object as a pickle tells it: what it is made with and its state, and no more."""

    made_with: tuple[Any, ...] = ()
    state: Any = ()

    def __init__(self, *made_with: Any) -> None:
        self.made_with = made_with

    def __setstate__(self, state: Any) -> None:
        self.state = state


_OPCODES = frozenset(
    getattr(pickle, name)[0]
    for names in (
        ("PROTO", "FRAME", "STOP", "MARK", "BINPUT", "LONG_BINPUT", "MEMOIZE"),
        ("BINGET", "LONG_BINGET", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2"),
        ("EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS"),
        ("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        ("BINSTRING", "SHORT_BINSTRING", "BINUNICODE", "SHORT_BINUNICODE"),
        ("BINBYTES", "SHORT_BINBYTES", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
    )
    for name in names
)
"""What protocols 2 to 4 write for dicts, lists, tuples, texts, bytes, numbers and arrays."""

_ARRAY_PARTS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _Dispatch(dict[int, Any]):
    """What reads each opcode, for so many of them: an empty list takes one byte, and sixty read."""

    left = MOST_OPCODES

    def __getitem__(self, code: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ValueError
        return super().__getitem__(code)


class _Unpickler(pickle._Unpickler):
    """Makes plain containers and inert pieces; looks nothing up and calls nothing else.

    It is the variant in Python: the one in C sets aside whatever memory a damaged index names.
    """

    allowed: ClassVar = {
        code: read for code, read in pickle._Unpickler.dispatch.items() if code in _OPCODES
    }

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream, encoding="bytes")
        self.dispatch = _Dispatch(self.allowed)  # type: ignore[misc]

    def find_class(self, module: str, name: str) -> type[_Piece]:
        if (module, name) in _ARRAY_PARTS:
            return _Piece
        wanted = f"{module}.{name}"
        plain = re.fullmatch(r"[A-Za-z0-9_.]{1,80}", wanted)
        asked = wanted if plain else "something with an unusual name"
        raise BadInput(
            f"the pickle asks for {asked}, which no CIFAR-10 batch needs",
            why="a pickle can run any program when it is read, so nothing more is let in",
            remedy="get the published file; do not open this one with Python",
        )


def _pixels(piece: _Piece) -> npt.NDArray[np.uint8]:
    _, (count, width), dtype, by_columns, content = piece.state
    if dtype.made_with[0] not in ("u1", b"u1") or width != CIFAR_RECORD - 1:
        raise ValueError
    pixels = np.frombuffer(content, dtype=np.uint8)
    return pixels.reshape((count, width), order="F" if by_columns else "C")


def _labels(listed: list[int]) -> npt.NDArray[np.uint8]:
    if not isinstance(listed, list):
        raise TypeError
    return np.frombuffer(bytes(listed), dtype=np.uint8)
