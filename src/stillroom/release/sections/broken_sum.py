"""Section `broken_sum`: what is left of an epsilon if single rows of a secure sum are seen.

The certified figure assumes that nobody sees a row by itself. Without that, a row has the noise of
its own entity alone. That figure is told beside the certified one; no budget counts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from stillroom.gate import GaussianShare, ResponseShare, mechanism_from_json
from stillroom.gate.accounting import DELTAS, price
from stillroom.gate.events import Line
from stillroom.release.files import spelled
from stillroom.release.sections.base import Body, Core, Section
from stillroom.vocabulary import Pair, Relation, Unit

ENTITY = Pair(Unit.ENTITY, Relation.CHANGE)
DELTA = DELTAS[0]
DIGITS = 3


def _local_lines(core: Core) -> Iterator[list[Line]]:
    """Of each block, what its rows would cost if they were seen."""
    for block in core.blocks:
        lines: list[Line] = []
        for wish in block["wishes"]:
            mechanism = mechanism_from_json(wish["mechanism"])
            if isinstance(mechanism, (GaussianShare, ResponseShare)):
                lines += mechanism.local_lines(wish["reserved"])
        if lines:
            yield lines


def _completed(body: Body | None, core: Core) -> Body | None:
    """Derived from what was reserved; whatever the releaser states is not looked at."""
    found = [price(lines, ENTITY).ideal(DELTA) for lines in _local_lines(core)]
    if not found:
        if body is not None:
            raise ValueError("no block is part of a secure sum")
        return None
    return {"epsilon": spelled(_rounded_up(max(found))), "delta": DELTA, "for": str(ENTITY)}


def _rounded_up(epsilon: float) -> float:
    """To a few digits, so that two processors say the same."""
    if not 0 < epsilon < math.inf:
        return epsilon
    step = 10.0 ** (math.floor(math.log10(epsilon)) + 1 - DIGITS)
    return float(f"{math.ceil(epsilon / step * (1 - 1e-9)) * step:.{DIGITS}g}")


def _stated(value: object) -> Body:
    return {}


def _shown(certificate: Mapping[str, Any]) -> dict[str, Any] | None:
    body = certificate["sections"].get("broken_sum")
    return None if body is None else {"epsilon": body["epsilon"], "delta": body["delta"]}


SECTION = Section("broken_sum", _stated, _completed, _shown, place="warnings")
