"""Which records and persons a ledger belongs to: HMACs under a key of its own, nothing else (L1).

The key lies beside the ledger in a file only its owner can read. Without it the HMACs say nothing
about an id; with it lost, no data can be recognised any more and nothing more may be drawn.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from stillroom.errors import BadInput


def key_path(ledger: Path) -> Path:
    """Where a ledger's key lies."""
    return ledger.with_name(ledger.name + ".key")


def make_key(path: Path) -> bytes:
    """A new key in a file that only its owner can read."""
    key = os.urandom(32)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise BadInput(
            "there is already a key at that place",
            where=str(path),
            why="overwriting it would make its ledger useless",
            remedy="open the existing ledger, or choose another place",
        ) from None
    except OSError as error:
        raise BadInput(
            f"the key cannot be written ({error.strerror})",
            where=str(path),
            why="without a key the ledger cannot recognise its data",
            remedy="choose a folder that exists and can be written to",
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key


def read_key(path: Path) -> bytes:
    """The key of a ledger."""
    try:
        key = path.read_bytes()
    except OSError:
        key = b""
    if len(key) != 32:
        raise BadInput(
            "the key is missing or damaged",
            where=str(path),
            why="without it no record can be recognised",
            remedy="restore the key file from the same backup as the file it belongs to",
        )
    return key


def fingerprints(
    key: bytes, ids: Iterable[str], persons: Iterable[str] | None = None
) -> list[bytes]:
    """One HMAC a distinct id, records and persons in separate spaces."""
    named = [f"record {i}" for i in ids] + [f"person {p}" for p in persons or ()]
    return sorted({hmac.digest(key, name.encode(), "sha256")[:20] for name in named})


def digest(key: bytes, nonce: str, prints: Sequence[bytes]) -> str:
    """A digest of a set of fingerprints, for the chain.

    Keyed and with a nonce, so that a row for no new record looks like any other (K10).
    """
    return hmac.digest(key, nonce.encode() + b"".join(sorted(prints)), "sha256").hex()
