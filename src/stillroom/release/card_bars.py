"""Bars in plain SVG inside the page: no script, nothing loaded, all text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stillroom.release.card_parts import text

_WIDE, _LEFT, _RIGHT = 880, 110, 190
_THICK, _STEP, _HEAD, _GAP = 18, 24, 26, 14
_NEXT_TO = 8


@dataclass(frozen=True)
class Bar:
    """One bar.

    Args:
        name: what it is for; its words become its classes in the style sheet.
        share: its length, 1 being the whole.
        figure: what it says, in words.
    """

    name: str
    share: float
    figure: str


def bars(title: str, groups: Mapping[str, Sequence[Bar]]) -> str:
    """Groups of lying bars on one scale from zero, each with its figure and its share.

    Args:
        title: what the picture shows; read aloud where it cannot be seen.
        groups: a heading and its bars.
    """
    longest = max((bar.share for group in groups.values() for bar in group), default=1.0)
    unit = (_WIDE - _LEFT - _RIGHT) / max(1.0, longest)
    parts, y = [], 0
    for heading, group in groups.items():
        parts.append(f'<text class="heading" x="0" y="{y + 15}">{text(heading)}</text>')
        y += _HEAD
        top = y
        for bar in group:
            long = max(1.0, unit * bar.share)
            middle = y + _THICK - 4
            parts.append(
                f'<text class="name" x="{_LEFT - _NEXT_TO}" y="{middle}">{text(bar.name)}</text>'
                f'<rect class="{text(bar.name)}" x="{_LEFT}" y="{y}" width="{long:.1f}" '
                f'height="{_THICK}" rx="2"/>'
                f'<text x="{_LEFT + long + _NEXT_TO:.1f}" y="{middle}">{text(bar.figure)}, '
                f"{100 * bar.share:.3g} %</text>"
            )
            y += _STEP
        parts.append(f'<line x1="{_LEFT}" y1="{top - 3}" x2="{_LEFT}" y2="{y - 3}"/>')
        y += _GAP
    high = max(1, y - _GAP)
    return (
        f'<figure class="bars"><figcaption>{text(title)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDE} {high}" role="img" aria-label="{text(title)}">'
        + "".join(parts)
        + "</svg></figure>"
    )
