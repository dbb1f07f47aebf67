"""Randomness that hides nothing: initialisation, data order, augmentation, latent draws.

Every stream is keyed by the SHA-256 of a seed and some names, so a draw depends on what it is for
and never on what was drawn before it, in which process, or in which order. All of it can be
repeated by anyone who knows the recipe; privacy noise comes from the gate alone.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

Name = str | SupportsIndex
"""What a draw is for: a word, or a number such as an epoch; "1" and 1 are two names."""
Shape = int | tuple[int, ...]


def order(seed: int, *names: Name, size: int) -> npt.NDArray[np.int64]:
    """The numbers from 0 to `size` - 1 in a random order.

    Args:
        seed: the recipe's seed.
        names: what the order is for, such as "batches", 3.
        size: how many numbers.

    >>> order(7, "batches", 0, size=5).tolist() == order(7, "batches", 0, size=5).tolist()
    True
    >>> sorted(order(7, "batches", 1, size=5).tolist())
    [0, 1, 2, 3, 4]
    """
    return _stream(seed, names).permutation(size).astype(np.int64)


def uniforms(seed: int, *names: Name, size: Shape) -> npt.NDArray[np.float64]:
    """Numbers spread evenly over [0, 1).

    >>> uniforms(7, "crops", size=(2, 3)).shape
    (2, 3)
    """
    return _stream(seed, names).random(size)


def normals(seed: int, *names: Name, size: Shape) -> npt.NDArray[np.float64]:
    """Standard normal numbers for latent draws and initial weights; never privacy noise.

    >>> bool((normals(7, "latent", size=4) != normals(8, "latent", size=4)).all())
    True
    """
    return _stream(seed, names).standard_normal(size)


def integers(seed: int, *names: Name, size: Shape, below: int) -> npt.NDArray[np.int64]:
    """Whole numbers from 0 to `below` - 1, all equally likely.

    >>> integers(7, "shifts", size=3, below=1).tolist()
    [0, 0, 0]
    """
    return _stream(seed, names).integers(below, size=size, dtype=np.int64)


@contextmanager
def seeded_torch(seed: int, *names: Name) -> Iterator[None]:
    """Torch's own CPU generator, seeded inside and put back afterwards: for new modules.

    Assumes: modules are made on the CPU and moved later; other devices keep their own state.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int.from_bytes(_digest(seed, names)[:8], "big"))
        yield


def _stream(seed: int, names: tuple[Name, ...]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(seed, names), "big")))


def _digest(seed: int, names: tuple[Name, ...]) -> bytes:
    # JSON keeps the names apart: ("ab", "c") and ("a", "bc") are two streams.
    words = [name if isinstance(name, str) else operator.index(name) for name in names]
    return hashlib.sha256(json.dumps([operator.index(seed), *words]).encode()).digest()
