"""What is cited can be read: decisions, theory and pages are all in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("benchmarks/*.md")])
SOURCES = sorted(
    path
    for folder in ("src", "tests", "docs", "benchmarks", "examples")
    for ending in ("py", "toml", "html")
    for path in (ROOT / folder).rglob(f"*.{ending}")
    if path != Path(__file__)
)
DECISION = re.compile(r"(?<![\w.-])[ELK]\d{1,2}b?(?![\w.-]*\w)")
ANCHOR = re.compile(r"\b(decisions|theory)\.md#([\w-]+)")
PAGE = re.compile(r"(?<![\w*])([A-Za-z][\w-]*\.md)\b")
MODULE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")


def name_of(path):
    return str(path.relative_to(ROOT))


def headings(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def uncited(text, decisions, theory):
    """What a text cites of the two pages and they do not have."""
    known = {"decisions": decisions, "theory": theory}
    named = {("decisions", name.lower()) for name in DECISION.findall(text)}
    return {(page, place) for page, place in named | {*ANCHOR.findall(text)}} - {
        (page, place) for page, places in known.items() for place in places
    }


def elsewhere(text):
    """The pages a text cites that are not in the repository."""
    return {*PAGE.findall(text)} - {page.name for page in PAGES}


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=name_of)
def test_cited_decisions_and_theory_exist(path):
    text = path.read_text(encoding="utf-8")
    assert not uncited(text, headings("decisions"), headings("theory"))


CITING = [*PAGES, *SOURCES]


@pytest.mark.parametrize("path", CITING, ids=name_of)
def test_nothing_outside_the_repository_is_cited(path):
    assert not elsewhere(path.read_text(encoding="utf-8"))


def test_every_decision_says_why_and_where():
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        name, _, said = part.partition("\n")
        assert DECISION.fullmatch(name), name
        assert all(f"*{word}*" in said for word in ("Why", "Where")), name


@pytest.mark.parametrize("page", ["decisions", "architecture"])
def test_modules_that_are_named_exist(page):
    path = ROOT / "docs" / f"{page}.md"
    named = set(MODULE.findall(path.read_text(encoding="utf-8")))
    assert named
    places = (ROOT, ROOT / "src" / "stillroom")
    assert [name for name in sorted(named) if not any((at / name).exists() for at in places)] == []


def test_nothing_is_left_to_fill_in():
    assert not [name_of(page) for page in PAGES if "TO FILL IN" in page.read_text("utf-8")]


def test_a_citation_that_leads_nowhere_is_found():
    text = "K11 and E1; decisions.md#e1, theory.md#none; see Norm.L9, E1-E3 and 1E5, plans.md"
    assert uncited(text, {"e1"}, {"shards"}) == {("decisions", "k11"), ("theory", "none")}
    assert elsewhere(text) == {"plans.md"}
