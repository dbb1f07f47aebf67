"""Figures in words for people: on the card and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stillroom.gate.rounding import shown
from stillroom.release.files import number

ROOM_LEFT = (
    "room left says what still fits: equal releases take equal parts of it, while epsilon grows "
    "more slowly with each"
)
"""What that figure of a budget is good for."""


def epsilon(figure: Any) -> str:
    """A figure of the certificate, rounded up."""
    return "-" if figure is None else shown(number(figure))


def share(accuracy: float | None, digits: int = 2) -> str:
    """An accuracy, or a word where there is none.

    >>> share(0.9312), share(None)
    ('93.12%', 'not told')
    """
    return "not told" if accuracy is None else f"{accuracy:.{digits}%}"


def with_interval(told: Mapping[str, float] | None) -> str:
    """A share and its interval.

    >>> with_interval({"value": 0.9, "low": 0.8196, "high": 0.9484})
    '90.0% (82.0% to 94.8%)'
    """
    if told is None:
        return "not told"
    return f"{told['value']:.1%} ({told['low']:.1%} to {told['high']:.1%})"


def measured(measures: Mapping[str, Any]) -> str:
    """The measures that matter most, in one line.

    >>> from stillroom.release.measures import measures_of
    >>> measured(measures_of([[9, 1, 0], [0, 8, 2], [1, 0, 9]], ["a", "b", "c"], None))
    'balanced accuracy 86.7% (95 % interval 66.0% to 93.8%)'
    >>> measured(measures_of([[90, 10], [40, 160]], ["well", "ill"], None, positive="ill"))
    ... # doctest: +ELLIPSIS
    'sensitivity 80.0% (73.6% to 85.2%) for ill, specificity 90.0% (82.0% to 94.8%), balanced ...'
    """
    balanced = measures["balanced_accuracy"]
    told = f"balanced accuracy {with_interval(balanced)}"
    if balanced is None:
        told += ": a class has too few test records for the noise"
    if measures["positive"] is None:
        return told.replace("(", "(95 % interval ")
    sensitivity, specificity = (with_interval(measures[n]) for n in ("sensitivity", "specificity"))
    return (
        f"sensitivity {sensitivity} for {measures['positive']}, specificity {specificity}, {told}; "
        "95 % intervals in brackets"
    )


def room_left(used: Any) -> str:
    """How much of a budget's allowance is left, from the share that is used; rounded down.

    >>> room_left(0.333), room_left(0), room_left(1.02)
    ('66%', '100%', '0%')
    """
    return f"{math.floor(100 * max(0.0, 1 - number(used)))}%"


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
