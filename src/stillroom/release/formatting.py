"""Figures in words for people: on the card and on the terminal."""

from __future__ import annotations

from typing import Any

from stillroom.gate.rounding import shown
from stillroom.release.files import number


def epsilon(figure: Any) -> str:
    """A figure of the certificate, rounded up."""
    return "-" if figure is None else shown(number(figure))


def share(accuracy: float | None, digits: int = 2) -> str:
    """An accuracy, or a word where there is none.

    >>> share(0.9312), share(None)
    ('93.12%', 'not told')
    """
    return "not told" if accuracy is None else f"{accuracy:.{digits}%}"


def file_size(count: int) -> str:
    """A number of bytes.

    >>> file_size(950), file_size(40_709), file_size(12_485_514)
    ('950 bytes', '40.7 kB', '12.5 MB')
    """
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"


def duration(seconds: float) -> str:
    """A time.

    >>> duration(0.00471), duration(0.0312), duration(2.5)
    ('4.71 ms', '31.2 ms', '2.50 s')
    """
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
