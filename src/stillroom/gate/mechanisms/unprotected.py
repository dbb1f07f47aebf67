"""No protection at all: what a published method really uses, recorded and priced as infinity.

Claim: none. One unit may move the value as far as it likes, no noise is added, and whoever sees the
answer sees the value. It exists so that a method which leaks can be run as it was published, with a
ledger that says so: the block has no finite price for any unit and relation.
"""

from __future__ import annotations

from dataclasses import dataclass

from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.events import Line, NonPrivateEvent
from stillroom.gate.mechanisms.base import Mechanism, check_count
from stillroom.vocabulary import Integers, Norm, Sensitivity, Unit


@dataclass(frozen=True)
class Unprotected(Mechanism):
    """Integers that leave as they are; the gate refuses them unless infinity is accepted.

    Guarantee: none, for no unit.

    Args:
        width: coordinates of a row.
        reason: why something leaves without protection; it stands in the ledger.
        unit: whose data it is.

    >>> Unprotected(width=10, reason="logits of an ordinary teacher").lines(3)
    [(NonPrivateEvent(reason='logits of an ordinary teacher'), 3)]
    """

    name = "unprotected"
    width: int
    reason: str
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        check_count("width", self.width)
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise BadInput(
                "nothing leaves without protection and without a reason",
                where="reason",
                why="whoever reads the ledger must learn what made it infinite",
                remedy="say what leaves, and why",
            )

    @property
    def sensitivity(self) -> Sensitivity:
        # Nothing is proven for any pair, so nothing more has to be proven of what passes.
        return Sensitivity(Norm.L2_SQUARED, {})

    def lines(self, count: int) -> list[Line]:
        return [(NonPrivateEvent(self.reason), count)]

    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        return value.copy()
