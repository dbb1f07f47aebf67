"""The words of a schema: names, numbers and policies, checked as they are read from a document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Missing = Literal["own", "refuse", "fill"]

FILL_IN = "fill in"
"""What a draft leaves open."""
LARGEST = 1e30
LONGEST = 1000


class Faulty(ValueError):
    """What is wrong with a part of a schema."""


def policy(told: Mapping[str, Any], usual: Any) -> tuple[Missing, Any]:
    """What a missing cell of a column means, and what it is filled in with."""
    if "fill" in told:
        if "missing" in told:
            raise Faulty("fill says what a missing cell means; leave missing out")
        refuse_open(told, ("fill",))
        return "fill", told["fill"]
    found = told.get("missing", usual)
    if found not in ("own", "refuse"):
        raise Faulty("missing is own or refuse; or give a fill")
    return found, None


def refuse_open(told: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse what a draft leaves open."""
    left = [n for n in names if told.get(n) == FILL_IN or told.get(n) == [FILL_IN]]
    if left:
        raise Faulty(f'{" and ".join(left)} still say "{FILL_IN}"')


def check_keys(told: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that means nothing."""
    odd = [name for name in told if name not in known]
    if odd:
        raise Faulty(f"unknown key {str(odd[0])[:60]!r}; known ones are {', '.join(known)}")


def number(told: Mapping[str, Any], name: str) -> float:
    """A number of a reasonable size."""
    value = told.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Faulty(f"{name} is no number" if name in told else f"{name} is missing")
    if not abs(value) <= LARGEST:
        raise Faulty(f"{name} is no number, or beyond {LARGEST:g}")
    return float(value)


def texts(values: Any, *, empty: bool = False) -> tuple[str, ...]:
    """Different texts of one line each, without spaces around them."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise Faulty("is no list of texts" if values is not None else "is missing")
    if not all(v.isprintable() and v == v.strip() and len(v) <= LONGEST for v in values):
        raise Faulty("a text is too long, or has line breaks or spaces around it")
    if not empty and not all(values):
        raise Faulty("a text is empty")
    if len(set(values)) != len(values):
        raise Faulty("a text stands there twice")
    return tuple(values)


def plain(value: float) -> int | float:
    """Whole numbers without a point."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def exact_text(value: str) -> str:
    """A text as TOML and JSON both write it."""
    return json.dumps(value, ensure_ascii=False)
