"""The plan of one secure sum: who takes part, who may vanish, who may collude, what is added.

Of n entities d may vanish and c may work together with the aggregator. A sum is opened only when at
least n - d rows are in it, which is what the noise shares are calculated for. This rests on

- n > 2 d + c: no two lists of survivors can both be signed by n - d, as honest entities sign once.
  So all who hand out shares agree on one list of survivors and on one list of those who shared;
- 2 t > m + c, for a secret that t of its m holders can open: what m holders keep of an entity opens
  its self mask or its mask key, never both, and colluders alone open nothing. If an entity was told
  of so few neighbours that none of them signed, too few of its holders signed to open its self
  mask. So nobody can be cut off from the sum;
- k > c + d, for k neighbours: honest signers hang together by masks that nobody else knows, since
  the graph stays connected unless k entities are taken out. So nothing but their common sum opens.

Among all pairs m = n, t = n - d and k = n - 1, and the first rule implies the others (or leaves one
honest entity, which needs no company). In a graph m = k + 1. It is a ring, in an order that follows
from the plan by hash; everybody has the k / 2 nearest on each side. A neighbourhood may lose k - t
entities; a session that loses more in one place, and no more than d in all, opens nothing although
it might have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import comb

from stillroom.errors import BadInput, check_ranges
from stillroom.federation.keys import SIZE, digest, fresh

MOST_ENTITIES = 1 << 16
MOST_CELLS = 1 << 28
PAIRS_PAY = 100
"""Up to so many entities all pairs cost little, and any d of them may vanish."""


def new_session() -> str:
    """An id for a session, which no other session has."""
    return fresh()[:16].hex()


@dataclass(frozen=True)
class Plan:
    """What everybody knows before a session, and agrees on by its digest.

    Guarantee: a plan that exists keeps the rules above, and no sum of it can leave its words.

    Args:
        session: an id that was never used before.
        roster: the entities' names, and their public Ed25519 keys as enrolled.
        dropouts: d, how many may vanish.
        colluders: c, how many may tell the aggregator everything.
        shape: queries and classes: the rows and columns of what each entity adds.
        largest: no entry of an entity's rows is larger than this or smaller than minus this.
        bits: of a word, 32 or 64.
        neighbours: k, an even number; all pairs if it is not given.
        subject: what is added: a digest of queries, mechanism and noise, say.

    Raises:
        BadInput: a rule is broken, or sums could leave the words.

    >>> roster = {name: bytes([number] * 32) for number, name in enumerate("abcde")}
    >>> plan = Plan("first", roster, dropouts=1, colluders=1, shape=(2000, 10), largest=100)
    >>> plan.threshold, plan.neighbours_of(2)
    (4, (0, 1, 3, 4))
    >>> Plan("first", roster, dropouts=2, colluders=1, shape=(2000, 10), largest=100)
    Traceback (most recent call last):
        ...
    stillroom.errors.BadInput: 5 entities cannot lose 2 ... [plan first]. Why it matters: ...
    """

    session: str
    roster: Mapping[str, bytes] = field(repr=False)
    dropouts: int
    colluders: int
    shape: tuple[int, int]
    largest: int
    bits: int = 32
    neighbours: int | None = None
    subject: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "roster", dict(sorted(self.roster.items())))
        object.__setattr__(self, "shape", tuple(self.shape))
        numbers = (self.dropouts, self.colluders, self.largest, *self.shape)
        check_ranges(
            "Plan",
            {
                "session": 0 < len(self.session) <= 100,
                "roster": 2 <= self.size <= MOST_ENTITIES
                and all(len(key) == SIZE for key in self.roster.values()),
                "numbers": all(type(number) is int and number >= 0 for number in numbers),
                "shape": len(self.shape) == 2 and 0 < self.cells <= MOST_CELLS,
                "bits": self.bits in (32, 64),
            },
        )
        self._check_survivors()
        if self.neighbours is not None:
            self._check_graph(self.neighbours)
        if self.size * self.largest >= 1 << (self.bits - 1):
            raise self.refusal(
                f"{self.size} entries of up to {self.largest} do not fit {self.bits} bits",
                "a sum that wraps around is another sum",
                "use words of 64 bits, or a coarser grid",
            )

    def _check_survivors(self) -> None:
        n, d, c = self.size, self.dropouts, self.colluders
        if not (n - d > c and n > 2 * d + c):
            raise self.refusal(
                f"{n} entities cannot lose {d} while {c} collude",
                "an aggregator could have two sums opened, or one with too little noise",
                "have n - d > c and n > 2 d + c: more entities, or fewer of the others",
            )

    def _check_graph(self, k: int) -> None:
        enough = k > self.colluders + self.dropouts and self.threshold <= k
        if not (enough and k % 2 == 0 and k < self.size - 1):
            raise self.refusal(
                f"{k} neighbours do not suffice, or are not fewer than all",
                "a neighbourhood must open its secrets after losses, and never without honest help",
                "give an even number above c + d and below n - 1; see `suggested_neighbours`",
            )

    @property
    def size(self) -> int:
        """n, how many entities there are."""
        return len(self.roster)

    @property
    def floor(self) -> int:
        """n - d, the fewest rows in an opened sum."""
        return self.size - self.dropouts

    @property
    def cells(self) -> int:
        """How many numbers each entity adds."""
        return self.shape[0] * self.shape[1]

    @property
    def threshold(self) -> int:
        """How many holders open a secret; an entity is one of its own holders."""
        if self.neighbours is None:
            return self.floor
        return neighbourhood_threshold(self.neighbours, self.colluders)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The entities in order; a position in it stands for an entity everywhere else."""
        return tuple(self.roster)

    @cached_property
    def identities(self) -> tuple[bytes, ...]:
        """The public identity keys in order."""
        return tuple(self.roster.values())

    @cached_property
    def digest(self) -> bytes:
        """What every message and every key is bound to."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        told["roster"] = {name: key.hex() for name, key in self.roster.items()}
        return digest(b"stillroom secure sum 1", json.dumps(told, sort_keys=True).encode())

    @cached_property
    def _ring(self) -> tuple[int, ...]:
        marks = [digest(self.digest, number.to_bytes(4, "little")) for number in range(self.size)]
        return tuple(sorted(range(self.size), key=lambda number: marks[number]))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {number: place for place, number in enumerate(self._ring)}

    def neighbours_of(self, position: int) -> tuple[int, ...]:
        """With whom an entity shares masks and secrets, in order."""
        if self.neighbours is None:
            return tuple(other for other in range(self.size) if other != position)
        place, half = self._places[position], self.neighbours // 2
        steps = [step for step in range(-half, half + 1) if step]
        return tuple(sorted(self._ring[(place + step) % self.size] for step in steps))

    def refusal(self, what: str, why: str, remedy: str) -> BadInput:
        """An error that names this plan."""
        return BadInput(what, where=f"plan {self.session}", why=why, remedy=remedy)


def neighbourhood_threshold(neighbours: int, colluders: int) -> int:
    """The smallest t with 2 t > k + 1 + c: an entity and its k neighbours hold its secrets.

    >>> neighbourhood_threshold(62, 10), neighbourhood_threshold(8, 1)
    (37, 6)
    """
    return (neighbours + 1 + colluders) // 2 + 1


def suggested_neighbours(
    entities: int, dropouts: int, colluders: int, *, pairs_pay: int = PAIRS_PAY
) -> int | None:
    """The fewest neighbours that a session should have; None where all pairs are as good.

    Privacy holds for every number that a plan accepts. This one is also large enough that d
    entities which vanish at random leave some neighbourhood below its threshold in at most one
    session of a million; such a session opens nothing.

    Args:
        entities, dropouts, colluders: n, d and c of the plan.
        pairs_pay: up to so many entities, all pairs are taken.

    >>> suggested_neighbours(100, 5, 1) is None, suggested_neighbours(1000, 50, 10)
    (True, 62)
    """
    if entities <= pairs_pay:
        return None
    for k in range(2, entities - 1, 2):
        spare = k - neighbourhood_threshold(k, colluders)
        if spare >= 0 and k > colluders + dropouts:
            ways = comb(entities - 1, k)
            lost = range(spare + 1, min(k, dropouts) + 1)
            bad = sum(comb(dropouts, x) * comb(entities - 1 - dropouts, k - x) for x in lost)
            if bad * entities * 10**6 <= ways:
                return k
    return None
