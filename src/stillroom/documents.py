"""JSON and exact numbers from untrusted files, bounded before anything is computed with them.

A few bytes can name a number that fills the memory ("1e999999999"), and a document can be nested
deeper than any reader goes. So every number of a file is read here: its digits are counted first.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from fractions import Fraction
from numbers import Rational
from pathlib import Path
from typing import Any

LARGEST = 2**400
"""Numerators and denominators stay below: a ratio of two such numbers is a float all the same."""
LARGEST_COUNT = 2**62
"""Counts are 64-bit integers wherever they are really counted."""
MOST_VALUES = 2_000_000
"""Objects, lists and values of one document; each takes up to some 200 bytes once it is read."""
MOST_LEVELS = 32

_NUMBER = re.compile(
    r"[+-]?(?:\d{1,121}/\d{1,121}|(?:\d{1,121}(?:\.\d{0,121})?|\.\d{1,121})(?:[eE][+-]?\d{1,3})?)",
    re.ASCII,
)


def exact(value: Any) -> Fraction:
    """A number from a file as an exact fraction: 0.5, "0.5" and "1/2" are all one half.

    Raises:
        ValueError: it is none, or its numerator or denominator reaches 2^400.

    >>> exact("1/2"), exact(0.1), exact(3)
    (Fraction(1, 2), Fraction(1, 10), Fraction(3, 1))
    >>> exact("1e999999999")
    Traceback (most recent call last):
        ...
    ValueError: not a number of a reasonable length
    """
    if isinstance(value, float):
        # A float's decimal spelling is what its writer meant; its binary value is not.
        value = repr(float(value))
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text) or re.search(r"/0+\Z", text):
            raise ValueError("not a number of a reasonable length")
        value = Fraction(text)
    if isinstance(value, bool) or not isinstance(value, Rational):
        raise ValueError("not a number")
    found = Fraction(value)
    if abs(found.numerator) >= LARGEST or found.denominator >= LARGEST:
        raise ValueError("not a number of a reasonable length")
    return found


def count(value: Any, least: int = 0) -> int:
    """A whole number from a file that something was counted to.

    Raises:
        ValueError: it is none, or out of range.

    >>> count(3)
    3
    """
    if type(value) is not int or not least <= value <= LARGEST_COUNT:
        raise ValueError("not a count")
    return value


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object in a file.

    Guarantee: each key stands there once, every number is finite and of a reasonable length, and
    the document is no deeper and no longer than `MOST_LEVELS` and `MOST_VALUES`.

    Raises:
        ValueError: it is none.

    >>> json_object(b'{"epsilon": 2.0}')
    {'epsilon': 2.0}
    """
    # Counted before it is read: what is counted takes a byte, what is read a hundred.
    if sum(map(content.count, (b"{", b"[", b","))) > MOST_VALUES:
        raise ValueError("too long a document")
    try:
        document = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_each_once,
            parse_constant=_no_number,
            parse_int=_whole,
            parse_float=_finite,
        )
    except RecursionError:
        raise ValueError("too deep a document") from None
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    _refuse_depth(document)
    return document


def has_long_keys(text: str) -> bool:
    """Whether TOML has a key of ten or more parts, or a text in three quotes.

    A key of many parts takes a reader of TOML the square of their number; in texts of several lines
    keys cannot be told from text.

    >>> has_long_keys("a.b = 1"), has_long_keys("a.b.c.d.e.f.g.h.i.j = 1")
    (False, True)
    """
    quoted = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'")
    several_lines = '"""' in text or "'''" in text
    dotted = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){9}")
    return several_lines or dotted.search(quoted.sub("q", text)) is not None


def file_content(path: Path, most: int) -> bytes:
    """The content of a plain file; no pipe and no device is waited for.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no plain file, or longer than `most`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a plain file")
        if about.st_size > most:
            raise ValueError(f"it is longer than {most} bytes")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is longer than {most} bytes")
    return content


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys one reader would take the first and another the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _whole(text: str) -> int:
    if len(text) > 121:
        raise ValueError("not a number of a reasonable length")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


def _refuse_depth(document: Any) -> None:
    level = [document]
    for _ in range(MOST_LEVELS):
        inner = [part.values() if isinstance(part, dict) else part for part in level]
        level = [value for part in inner for value in part if isinstance(value, (dict, list))]
        if not level:
            return
    raise ValueError("too deep a document")
