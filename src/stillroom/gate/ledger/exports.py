"""An export of a ledger: every row as JSON, to be checked and priced without the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stillroom.documents import count, file_content, json_object
from stillroom.errors import DoesNotVerify
from stillroom.gate.ledger.chain import Row, canonical, check_links
from stillroom.gate.ledger.ledger import Ledger

EXPORT_FORMAT = "stillroom ledger export"
EXPORT_VERSION = 2
LARGEST_EXPORT = 1 << 27


def export(ledger: Ledger) -> dict[str, Any]:
    """Every row as JSON, without fingerprints and answers: enough to check and to re-price."""
    return {
        "format": EXPORT_FORMAT,
        "version": EXPORT_VERSION,
        "rows": [asdict(row) for row in ledger.store.rows()],
    }


def rows_of_export(document: Mapping[str, Any], where: str) -> list[Row]:
    """The rows of an export, their chain checked.

    Raises:
        DoesNotVerify: it is not an export, or a row was changed.
    """
    known = (document.get("format"), document.get("version")) == (EXPORT_FORMAT, EXPORT_VERSION)
    try:
        rows = [_row(row) for row in document["rows"]] if known else []
    except (LookupError, TypeError, ValueError):
        rows = []
    if not rows or rows[0].kind != "open":
        raise DoesNotVerify(
            "the file is not a ledger export of a known version",
            where=where,
            why="its rows cannot be read with certainty",
            remedy="make it again with `stillroom ledger export`",
        )
    check_links(((r.seq, r.at, r.kind, r.block, canonical(r.body), r.hash) for r in rows), where)
    return rows


def _row(told: Mapping[str, Any]) -> Row:
    row = Row(**told)
    texts = all(isinstance(text, str) for text in (row.at, row.kind, row.hash))
    if not texts or not isinstance(row.body, dict):
        raise ValueError("not a row")
    count(row.seq, 1)
    if row.block is not None:
        count(row.block, 1)
    return row


def read_export(path: Path) -> dict[str, Any] | None:
    """The JSON document at `path`; None where the file is no JSON."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            if file.read(1) != b"{":
                return None
        return json_object(file_content(path, LARGEST_EXPORT))
    except OSError:
        return None
    except ValueError:
        return {}
