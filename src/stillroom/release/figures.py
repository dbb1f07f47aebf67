"""The figures of a certificate: priced here, or stated elsewhere and within what can be priced.

Another processor rounds its Fourier transforms differently, so a figure from elsewhere cannot be
compared digit by digit. It must lie between what is priced here at a little more delta and at a
little less; how much that is, is fixed here and never read from a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stillroom.gate.accounting import ROUNDING, Price
from stillroom.release.files import number, number_or_none, spelled
from stillroom.vocabulary import Guarantee, Pair

Line = dict[str, Any]


@dataclass(frozen=True)
class Figures:
    """How the figures of a certificate are found.

    Args:
        lines: guarantees stated elsewhere, by pair and delta; kept where they agree.
        totals: totals stated elsewhere, by pair.
        larger: whether a stated figure may exceed today's: where it was made with another
            version of an accountant, which may have been less tight.
    """

    lines: Mapping[tuple[str, float], Line] = field(default_factory=dict)
    totals: Mapping[str, Line] = field(default_factory=dict)
    larger: bool = False

    @classmethod
    def stated(cls, guarantees: Sequence[Line], totals: Sequence[Line], *, larger: bool) -> Figures:
        """Those of another certificate."""
        return cls(
            {(line["for"], line["delta"]): line for line in guarantees},
            {total["for"]: total for total in totals},
            larger,
        )

    def line(self, cost: Price, delta: float) -> Line:
        """One line of `guarantees`."""
        own = line_of(cost.guarantee(delta))
        stated = self.lines.get((own["for"], delta))
        if stated is None:
            return own
        low, high = cost.range(delta)
        for who in ("PLD", "RDP"):
            bounds = low.by_accountant[who], high.by_accountant[who]
            if not self._between(stated[who], own[who], *bounds):
                return own
        return _line(cost.pair, delta, number_or_none(stated["PLD"]), number(stated["RDP"]))

    def total(self, cost: Price, delta: float, *, single: bool) -> float:
        """What all blocks cost, had they been fixed beforehand; a single one has its own price."""
        if single:
            low, high = cost.range(delta)
            own, least, most = cost.epsilon(delta), low.epsilon, high.epsilon
        else:
            own = cost.rdp(delta)
            least, most = own * (1 - ROUNDING), own * (1 + ROUNDING)
        return self._kept(self.totals.get(str(cost.pair), {}).get("spent"), own, least, most)

    def share(self, pair: Pair, own: float) -> float:
        """How much of a budget's allowance is used."""
        stated = self.totals.get(str(pair), {}).get("share")
        return self._kept(stated, own, own * (1 - ROUNDING), own * (1 + ROUNDING))

    def _kept(self, stated: Any, own: float, least: float, most: float) -> float:
        if stated is not None and self._between(stated, own, least, most):
            return number(stated)
        return own

    def _between(self, stated: Any, own: Any, least: float | None, most: float | None) -> bool:
        # An accountant without a figure here may have had one elsewhere only near the border.
        if stated is None or least is None or most is None:
            return stated is None and (least is None or most is None or own is None)
        return least <= number(stated) <= (math.inf if self.larger else most)


def nothing_proven(pair: Pair, delta: float) -> Line:
    """The line of a pair for which nothing holds."""
    return line_of(Guarantee(pair, math.inf, delta, "none", {"PLD": None, "RDP": math.inf}))


def line_of(guarantee: Guarantee) -> Line:
    """A guarantee as a line of the certificate."""
    return {
        "for": str(guarantee.pair),
        "unit": str(guarantee.pair.unit),
        "relation": str(guarantee.pair.relation),
        "delta": guarantee.delta,
        "epsilon": spelled(guarantee.epsilon),
        "accountant": guarantee.accountant,
        "PLD": spelled(guarantee.by_accountant["PLD"]),
        "RDP": spelled(guarantee.by_accountant["RDP"]),
    }


def _line(pair: Pair, delta: float, pld: float | None, rdp: float) -> Line:
    """The line that two accountants' figures make: the smaller one is certified."""
    figures = {"PLD": pld, "RDP": rdp}
    if pld is None or rdp < pld:
        return line_of(Guarantee(pair, rdp, delta, "RDP", figures))
    return line_of(Guarantee(pair, pld, delta, "PLD", figures))
