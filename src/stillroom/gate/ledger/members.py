"""Which records and persons a ledger belongs to: HMACs under a key of its own, nothing else (L1).

The key lies beside the ledger in a file only its owner can read. Without it the HMACs say nothing
about an id; with it lost, no data can be recognised any more and nothing more may be drawn.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stillroom.data.dataset import is_from_content
from stillroom.durable import sweep, write_whole
from stillroom.errors import BadInput
from stillroom.gate.ledger.store import Store
from stillroom.vocabulary import Identities, Sealed


def whose(
    sealed: Sequence[Sealed[Any]],
    ids: Iterable[str] | None = None,
    persons: Iterable[str] | None = None,
    *,
    from_content: bool = False,
) -> Identities:
    """Everybody in the sealed parts, and those who are named beside them.

    Raises:
        BadInput: neither are given.
    """
    if not sealed and ids is None:
        raise BadInput(
            "a ledger of nobody's records",
            where="ids",
            why="it would answer for none, and nothing would be charged to anybody",
            remedy="give the sealed records, or their ids",
        )
    parts = [part.sealed_ids() for part in sealed]
    if ids is not None:
        told = None if persons is None else tuple(map(str, persons))
        named = tuple(map(str, ids))
        parts.append(Identities(named, told, any(map(is_from_content, named))))
    known = any(part.persons is not None for part in parts)
    return Identities(
        tuple(i for part in parts for i in part.ids),
        tuple(p for part in parts for p in part.persons or ()) if known else None,
        from_content or any(part.from_content for part in parts),
    )


def key_path(ledger: Path) -> Path:
    """Where a ledger's key lies."""
    return ledger.with_name(ledger.name + ".key")


def key_for_new(path: Path) -> bytes:
    """The key of a file that holds nothing yet: the one a crash left there, or a new one.

    Only its owner can read it. Assumes: nobody else makes one there meanwhile.
    """
    sweep(path)
    key = path.read_bytes() if path.exists() else b""
    if not key:  # an empty file is what a crash leaves; nothing was ever entered under it
        key = os.urandom(32)
        write_whole(path, key)
    if len(key) != 32:
        raise BadInput(
            "what lies at the place of the key is no key",
            where=str(path),
            why="it may be a file of yours, and is not overwritten",
            remedy="move it away: nothing has been entered under it",
        )
    return key


def read_key(path: Path) -> bytes:
    """The key of a ledger or of the register."""
    try:
        key = path.read_bytes()
    except OSError as error:
        key, what = b"", f"the key cannot be read ({error.strerror})"
    else:
        what = f"the key is damaged: {len(key)} bytes instead of 32"
    if len(key) != 32:
        raise BadInput(
            what,
            where=str(path),
            why="without it no record can be recognised, and nothing more may be drawn",
            remedy="put the key back that was there when records were entered under it",
        )
    return key


def fingerprints(
    key: bytes, ids: Iterable[str], persons: Iterable[str] | None = None
) -> list[bytes]:
    """One HMAC per distinct id, records and persons in separate spaces."""
    named = [f"record {i}" for i in ids] + [f"person {p}" for p in persons or ()]
    return sorted({hmac.digest(key, name.encode(), "sha256")[:20] for name in named})


def digest(key: bytes, nonce: str, prints: Sequence[bytes]) -> str:
    """A digest of a set of fingerprints, for the chain.

    Keyed and with a nonce, so that a row for no new record looks like any other (K10).
    """
    return hmac.digest(key, nonce.encode() + b"".join(sorted(prints)), "sha256").hex()


def seen(store: Store) -> set[bytes]:
    """The fingerprints that the ledger holds."""
    return {known for (known,) in store.query("SELECT hmac FROM members")}


def enter(store: Store, key: bytes, prints: Sequence[bytes]) -> None:
    """Enter fingerprints; the chained row holds a digest, never a count of records.

    Only inside a transaction.
    """
    nonce = os.urandom(16).hex()
    row = store.append("members", {"nonce": nonce, "digest": digest(key, nonce, prints)})
    store.insert_members([(p, row.seq) for p in prints])
