"""The chain of a ledger's rows: each carries the hash of the one before.

Row n carries the SHA-256 of row n-1 and of itself, so a changed, removed or reordered row breaks
the chain. This finds accidents and clumsy edits, not a forger who rewrites the whole file: heads
kept elsewhere (register.py, run folders, certificates) find that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillroom.errors import BadInput, DoesNotVerify, StillroomError


@dataclass(frozen=True)
class Row:
    """One line of the ledger; `at` is a day, or empty."""

    seq: int
    at: str
    kind: str
    block: int | None
    body: dict[str, Any]
    hash: str


@dataclass(frozen=True)
class Head:
    """The last row's number and hash: enough to notice a ledger that went back in time."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        seq, _, digest = text.partition(":")
        if not re.fullmatch("[0-9]{1,18}", seq) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise BadInput(
                f"{text!r} is not a ledger head",
                where="head",
                why="a head is how a rolled-back ledger is noticed",
                remedy="copy it from `stillroom ledger show`: NUMBER:HASH",
            )
        return cls(int(seq), digest)


def canonical(body: Any) -> str:
    """One spelling for one JSON value, so that a hash is a hash of the meaning."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def row_hash(previous: str, seq: int, at: str, kind: str, block: int | None, body: str) -> str:
    """The link of one row to all before it."""
    return hashlib.sha256(canonical([previous, seq, at, kind, block, body]).encode()).hexdigest()


def check_links(
    rows: Iterable[tuple[int, str, str, int | None, str, str]], where: Path | str
) -> None:
    """Recompute every link of rows as they are stored, from the first on.

    Raises:
        DoesNotVerify: a row was changed, removed, added or reordered.
    """
    previous = ""
    for expected, (seq, at, kind, block, body, digest) in enumerate(rows, 1):
        texts = all(isinstance(text, str) for text in (at, kind, body))
        linked = texts and row_hash(previous, seq, at, kind, block, body) == digest
        if seq != expected or not linked:
            raise broken(where, expected, "the chain of hashes breaks")
        previous = digest


def broken(path: Path | str, seq: int, what: str) -> StillroomError:
    """The error for a ledger that was tampered with."""
    return DoesNotVerify(
        f"the ledger does not verify at row {seq}: {what}",
        where=str(path),
        why="an altered ledger may hide what was spent, so no epsilon can be vouched for",
        remedy="restore the newest backup; do not release anything from this ledger",
    )
