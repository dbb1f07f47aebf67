"""The public numbers of a session in which only winners are opened, and what follows from them."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property

from stillroom.documents import exact
from stillroom.errors import BadInput, check_ranges

PARTIES = 3
THRESHOLD = 1
"""So many parties learn nothing from their shares; one more reconstruct every row."""
MODULUS = 2**127 - 1
"""A prime that is 3 modulo 4, as MPyC wants it; one for all bit lengths, so that none is sought."""
SECURITY = 80
"""Bits of the masks in MPyC: one comparison tells a party apart by at most 2^-(SECURITY - 3)."""
MOST_BITS = 32
"""MODULUS must have more than MOST_BITS + SECURITY + 1 bits."""
OVERFLOW = Fraction(1, 2**64)
"""How probable it may be that any sum of a session does not fit; it costs a label, no privacy."""
MOST_CELLS = 20_000_000


@dataclass(frozen=True)
class ArgmaxPlan:
    """The public numbers of one session; every entity and every party has the same.

    Guarantee: `bits` hold every sum of votes and noise, but with probability `OVERFLOW` for a whole
    session. The noise of n entities, each a discrete Gaussian of parameter s, is subgaussian with
    n s^2; each cell's two tails are added up over all cells.

    Assumes: each entity's votes on one query are at least 0 and at most `weight` in any class, and
    its noise has s = sigma / sqrt(entities - dropouts - colluding).

    Args:
        session: a name that is used once.
        queries: rows of every entity.
        classes: columns of every row.
        entities: how many are on the roster.
        sigma: the noise that surely remains, in votes.
        weight: the most that one entity adds to one class.
        dropouts: how many may be missing.
        colluding: how many may tell their noise to others.

    Raises:
        BadInput: the numbers are out of range, or need more than `MOST_BITS` bits.

    >>> ArgmaxPlan("monday", queries=1000, classes=10, entities=250, sigma=40).bits
    11
    """

    session: str
    queries: int
    classes: int
    entities: int
    sigma: Fraction
    weight: int = 1
    dropouts: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "sigma", exact(self.sigma))
        except ValueError:
            check_ranges("ArgmaxPlan", {"sigma": False})
        counts = ("queries", "classes", "entities", "weight", "dropouts", "colluding")
        whole = {name: type(getattr(self, name)) is int for name in counts}
        check_ranges("ArgmaxPlan", whole | {"session": isinstance(self.session, str)})
        check_ranges(
            "ArgmaxPlan",
            {
                "session": 0 < len(self.session) <= 200,
                "queries": self.queries >= 1,
                "classes": self.classes >= 2,
                "queries x classes": self.queries * self.classes <= MOST_CELLS,
                "entities": 1 <= self.entities < 2**31,
                "sigma": 0 <= self.sigma < 2**62,
                "weight": 1 <= self.weight < 2**62,
                "dropouts": self.dropouts >= 0,
                "colluding": self.colluding >= 0,
                "dropouts + colluding": self.dropouts + self.colluding < self.entities,
            },
        )
        if self.bits > MOST_BITS:
            raise BadInput(
                f"votes and noise need {self.bits} bits, and at most {MOST_BITS} are offered",
                where="sigma, weight and entities",
                why="a sum that does not fit gives a wrong winner, and its masks hide it less",
                remedy="share smaller weights, or less noise: divide both by one public number",
            )

    @cached_property
    def bits(self) -> int:
        """The fewest bits, sign included, that hold every sum."""
        present = self.entities - self.dropouts - self.colluding
        spread = float(self.sigma) * math.sqrt(self.entities / present)
        tails = 2 * self.queries * self.classes / float(OVERFLOW)
        reach = math.ceil(spread * math.sqrt(2 * math.log(tails)) * (1 + 1e-9))
        return (self.entities * self.weight + reach).bit_length() + 1

    @property
    def leakage(self) -> float:
        """At most so far, in total variation, is what one party sees from what it may see.

        Beside the cryptography of MPyC. It belongs into delta, where 1e-12 is the smallest stated.

        >>> ArgmaxPlan("monday", 10**6, 10, 250, 40).leakage < 1e-15
        True
        """
        return float(self.queries * (self.classes - 1) * Fraction(1, 2 ** (SECURITY - 3)))

    @cached_property
    def digest(self) -> bytes:
        """Tells plans apart; stands in every share."""
        return hashlib.sha256(self.document().encode()).digest()

    def document(self) -> str:
        """The plan as text, always the same for the same plan."""
        return json.dumps(asdict(self) | {"sigma": str(self.sigma)}, sort_keys=True)
