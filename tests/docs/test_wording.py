"""Pages are written in plain present-day English; what commands print is not judged here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("benchmarks/*.md")])
BLOCK = re.compile(r"^```.*?^```$", re.S | re.M)
COUNTED = "row|column|vote|map|picture|record|file|line|step|answer|call|teacher|purpose|pass|visit"
OVER = (
    "class|record|step|coordinate|person|picture|call|teacher|shard|page|composition|budget|commit"
    "|method|channel|core|group|count|answer|question|query|feature|run|block|pick|epoch|second"
)
OLD = re.compile(
    r"\b(who(?:so)?ever|whatever|wherever|whichever|bears? out|by its deeds|born with|one's own"
    r"|felt in another|as one likes|lest|thereof|hereby|the outcome|this road|the door)\b"
    rf"|\b(?:one|two|three|\d+|discrete Gaussian|(?:{COUNTED})s?) an? (?:{OVER})\b(?! of)",
    re.I,
)


def name_of(path):
    return str(path.relative_to(ROOT))


def turns(text):
    """Turns of phrase that a reader of today stumbles over; quoted ones are allowed."""
    prose = re.sub(r'"[^"]{,40}"', "", BLOCK.sub("", text))
    return [found[0] for found in OLD.finditer(prose)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_use_plain_words(page):
    assert turns(page.read_text(encoding="utf-8")) == []


def test_old_turns_are_found():
    text = "Whoever has it: one row a class.\n```text\nwhoever\n```\n"
    assert turns(text) == ["Whoever", "row a class"]
    assert turns("One row per class; two records of a class; a picture of a record.") == []
