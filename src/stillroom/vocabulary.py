"""The shared words: units, relations, Sealed, Bounded, Sanitised, Budget, Guarantee, OpenGate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from stillroom.errors import BadInput

Integers = npt.NDArray[np.int64]
T = TypeVar("T")
S = TypeVar("S")


class Unit(StrEnum):
    """Whose presence or content is hidden."""

    RECORD = "record"
    PERSON = "person"
    ENTITY = "entity"
    LABEL = "label"
    """The class of one record, of which everything else is declared public."""


class Relation(StrEnum):
    """How two neighbouring data sets differ in one unit."""

    ADD_OR_REMOVE = "add-or-remove"
    CHANGE = "change"


@dataclass(frozen=True, order=True)
class Pair:
    """A unit and a relation: the two words without which an epsilon means nothing.

    >>> str(Pair(Unit.RECORD, Relation.ADD_OR_REMOVE))
    'record/add-or-remove'
    >>> Pair.parse("entity/change").unit
    <Unit.ENTITY: 'entity'>
    """

    unit: Unit
    relation: Relation

    def __str__(self) -> str:
        return f"{self.unit}/{self.relation}"

    @classmethod
    def of(cls, unit: Unit) -> Pair:
        """What a promise to such a unit is for: one more or less, or one for another.

        Where the only entity is a model, there is no release without one; a label comes with its
        record, which everyone sees.

        >>> str(Pair.of(Unit.PERSON)), str(Pair.of(Unit.ENTITY))
        ('person/add-or-remove', 'entity/change')
        """
        always_there = unit in (Unit.ENTITY, Unit.LABEL)
        return cls(unit, Relation.CHANGE if always_there else Relation.ADD_OR_REMOVE)

    @classmethod
    def parse(cls, text: str) -> Pair:
        unit, _, relation = text.partition("/")
        try:
            return cls(Unit(unit), Relation(relation))
        except ValueError:
            known = ", ".join(f"{u}/{r}" for u in Unit for r in Relation)
            raise BadInput(
                f"unknown unit and relation {text!r}",
                where="pair (--for)",
                why="a promise is made to somebody in particular",
                remedy=f"use one of: {known}",
            ) from None


RECORD = Pair(Unit.RECORD, Relation.ADD_OR_REMOVE)
"""The headline: one record more or less."""
CHANGED_RECORD = Pair(Unit.RECORD, Relation.CHANGE)
"""A record that keeps its id and changes its content."""
CHANGED_LABEL = Pair(Unit.LABEL, Relation.CHANGE)
"""A record that changes nothing but its class."""


class Norm(StrEnum):
    """How far a neighbour can move a value, and in which geometry."""

    UNIT_STEPS = "unit-steps"
    """Square of the Euclidean distance, where no integer coordinate moves by more than one.

    Only then is it also the number of coordinates that move, and the exact discrete law applies.
    """
    L2_SQUARED = "l2-squared"
    """Square of the Euclidean distance, in grid units."""
    CONTRIBUTION_SQUARED = "contribution-squared"
    """Square of the largest Euclidean norm of one unit's own term in a sum, in grid units."""
    L1 = "l1"
    """Sum of absolute differences, in grid units."""
    CHOICES = "choices"
    """Number of nominal answers that change to any other."""


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move a value, for each (unit, relation) for which that is proven.

    A pair that is missing has no proof and therefore an infinite price.
    """

    norm: Norm
    bounds: Mapping[Pair, Fraction]

    def __post_init__(self) -> None:
        for pair, bound in self.bounds.items():
            if not isinstance(bound, (int, Fraction)) or bound < 0:
                raise BadInput(
                    f"the sensitivity for {pair} is not an exact number >= 0",
                    why="a rounded or negative sensitivity gives a false epsilon",
                    remedy="give an int or a Fraction",
                )
        object.__setattr__(self, "bounds", {p: Fraction(b) for p, b in sorted(self.bounds.items())})

    def __hash__(self) -> int:
        return hash((self.norm, tuple(self.bounds.items())))

    def covers(self, proven: Sensitivity) -> bool:
        """Whether a value with the `proven` sensitivity may pass where this one was paid for."""
        return self.norm == proven.norm and all(
            pair in proven.bounds and proven.bounds[pair] <= bound
            for pair, bound in self.bounds.items()
        )

    @classmethod
    def of_counts(cls, records: int, unit: Unit) -> Sensitivity:
        """Counts in which each unit is counted at most `records` times, in any cells.

        All of a unit's records may share one cell, which then moves by `records`: the squared
        distance is records^2, and twice that for a changed unit, which leaves one cell and joins
        another (K1b).

        >>> of_one = Sensitivity.of_counts(1, Unit.RECORD)
        >>> of_ten = Sensitivity.of_counts(10, Unit.PERSON)
        >>> str(of_one.norm), str(of_ten.norm), max(of_ten.bounds.values())
        ('unit-steps', 'l2-squared', Fraction(200, 1))
        """
        times = {Relation.ADD_OR_REMOVE: 1, Relation.CHANGE: 2}
        if unit is Unit.LABEL:
            del times[Relation.ADD_OR_REMOVE]
        bounds = {Pair(unit, r): Fraction(often * records**2) for r, often in times.items()}
        return cls(Norm.UNIT_STEPS if records == 1 else Norm.L2_SQUARED, bounds)

    @classmethod
    def of_entries(cls, moved: int, unit: Unit) -> Sensitivity:
        """Rows with one entry per model: a unit changes `moved` of them, a whole model its own.

        >>> of_shared = Sensitivity.of_entries(50, Unit.RECORD)
        >>> [int(of_shared.bounds[pair]) for pair in (RECORD, Pair.parse("entity/change"))]
        [50, 1]
        """
        alone = cls.uniform(Norm.CHOICES, moved, unit)
        models = {Pair(Unit.ENTITY, relation): Fraction(1) for relation in Relation}
        return cls(Norm.CHOICES, {**alone.bounds, **models})

    @classmethod
    def uniform(cls, norm: Norm, bound: int | Fraction, unit: Unit = Unit.RECORD) -> Sensitivity:
        """One bound for every pair that sharding by `unit` proves.

        A record (or person, when whole persons share a shard) touches one entity whether it is
        added, removed or changed, so record, person and entity share the bound (theory.md#shards).
        A label is changed, and nothing else about its record is protected.
        """
        if unit is Unit.LABEL:
            return cls(norm, {CHANGED_LABEL: Fraction(bound)})
        units = [Unit.RECORD, Unit.ENTITY] + ([Unit.PERSON] if unit is Unit.PERSON else [])
        if unit is Unit.ENTITY:
            units = [Unit.ENTITY]
        return cls(norm, {Pair(u, r): Fraction(bound) for u in units for r in Relation})

    @classmethod
    def of_votes(cls, weight: int, unit: Unit, per_person: int = 1) -> Sensitivity:
        """A sum of votes, one row w e_k or zero per entity: two such rows are sqrt 2 w apart.

        A person known to several entities can change all of their rows in one direction, so the
        distance is so many times as large, and not the square root of it.

        >>> of_three = Sensitivity.of_votes(1, Unit.PERSON, per_person=3)
        >>> [int(of_three.bounds[Pair.of(unit)]) for unit in (Unit.RECORD, Unit.PERSON)]
        [2, 18]
        """
        steps = Norm.UNIT_STEPS if weight <= 1 and per_person == 1 else Norm.L2_SQUARED
        once = cls.uniform(steps, 2 * weight**2, unit).bounds
        often = {pair: per_person**2 if pair.unit is Unit.PERSON else 1 for pair in once}
        return cls(steps, {pair: bound * often[pair] for pair, bound in once.items()})


class SecretSample:
    """A Poisson sample drawn by the gate; only `private` opens it, once, and it is never stored."""

    __slots__ = ("_draw", "opened", "rate")

    def __init__(self, rate: Fraction, draw: Callable[[int], npt.NDArray[np.bool_]]) -> None:
        self.rate = rate
        self._draw = draw
        self.opened = False

    def open_secret(self, size: int) -> npt.NDArray[np.bool_]:
        """Which of `size` units are in the sample."""
        if self.opened:
            raise BadInput(
                "a Poisson sample was opened twice",
                why="two different samples would share the price of one",
                remedy="open it once and keep the mask inside the private room",
            )
        self.opened = True
        return self._draw(size)

    def __repr__(self) -> str:
        return f"SecretSample(rate={self.rate})"


class Identities(NamedTuple):
    """Whose records these are.

    Args:
        ids: of the records.
        persons: the records belong to, where they are known.
        from_content: whether ids are made from content: a changed record is then another record.
    """

    ids: tuple[str, ...]
    persons: tuple[str, ...] | None
    from_content: bool


class Sealed(Generic[T]):
    """Sensitive data on its way to `private/`: whoever passes it on cannot look.

    Guarantee: only `private/` calls `open_sealed` and only `gate/` calls `sealed_ids`; a contract
    test bans both elsewhere. Workers receive it sealed.

    Args:
        content: the records, such as a `Dataset`.

    >>> Sealed([1, 2, 3])
    Sealed(<hidden>)
    """

    __slots__ = ("_records",)

    def __init__(self, content: T) -> None:
        self._records = content

    def open_sealed(self) -> T:
        """The records."""
        return self._records

    def sealed_ids(self) -> Identities:
        """The ids of the records and, where known, of the persons they belong to."""
        content: Any = self._records
        return Identities(content.ids, content.persons, content.ids_from_content)

    def __repr__(self) -> str:
        return "Sealed(<hidden>)"


class Bounded:
    """An integer value with its proven sensitivity; made in `private`, opened only by the gate.

    Assumes: the maker has proven `sensitivity`; the gate checks what can be checked.

    Args:
        value: integers, one row per answer.
        sensitivity: how far one unit can move one row.
        sample: the secret sample the value was computed on, if any.

    Raises:
        BadInput: the value is not made of integers.

    >>> one = Sensitivity.uniform(Norm.UNIT_STEPS, 2)
    >>> Bounded(np.array([[3, 0, 1]]), one)
    Bounded(<hidden>, shape=(1, 3), norm=unit-steps)
    """

    __slots__ = ("_value", "sample", "sensitivity")

    def __init__(
        self, value: Integers, sensitivity: Sensitivity, sample: SecretSample | None = None
    ) -> None:
        array = np.asarray(value)
        if array.dtype.kind not in "iu":
            raise BadInput(
                f"a Bounded value must hold integers, not {array.dtype}",
                why="noise on floating-point numbers leaks through their rounding (Mironov 2012)",
                remedy="truncate to an integer grid before the gate",
            )
        if array.dtype == np.uint64:
            raise BadInput(
                "a Bounded value must fit int64",
                why="a silent wrap-around would move it further than its sensitivity says",
                remedy="use int64 and a coarser grid",
            )
        self._value: Integers = array.astype(np.int64)
        self.sensitivity = sensitivity
        self.sample = sample

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    def in_one_row(self) -> Bounded:
        """The same value as one row, for a mechanism that answers all of it at once."""
        return Bounded(self._value.reshape(1, -1), self.sensitivity, self.sample)

    def open_bounded(self) -> Integers:
        """The value. Only `gate/` may call this; a contract test bans it elsewhere."""
        return self._value

    def __repr__(self) -> str:
        return f"Bounded(<hidden>, shape={self.shape}, norm={self.sensitivity.norm})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise BadInput(
            "a Bounded value cannot be pickled",
            why="pickling writes the unprotected value to a file or a pipe",
            remedy="release it through the gate and store the Sanitised answer",
        )


@dataclass(frozen=True)
class Receipt:
    """Proof of payment: which ledger, which block, which draw."""

    ledger: str
    block: int
    draw: int


@dataclass(frozen=True)
class Sanitised(Generic[T]):
    """A value that came through the gate, with its receipts; everything done to it is free.

    Only `gate/` makes one; a contract test bans it elsewhere.
    """

    value: T
    receipts: tuple[Receipt, ...]

    def map(self, step: Callable[[T], S]) -> Sanitised[S]:
        """Post-process: the receipts stay, the price stays (post-processing as a functor)."""
        return Sanitised(step(self.value), self.receipts)


@dataclass(frozen=True)
class Budget:
    """The most that may ever be spent on a data set, for one unit and relation.

    >>> Budget(epsilon=2.0, delta=1e-5)
    Budget(epsilon=2.0, delta=1e-05, pair=record/add-or-remove)
    """

    epsilon: float
    delta: float
    pair: Pair = RECORD

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    def __repr__(self) -> str:
        return f"Budget(epsilon={self.epsilon}, delta={self.delta}, pair={self.pair})"


@dataclass(frozen=True)
class Guarantee:
    """An epsilon with everything needed to know what it means.

    Args:
        pair: the unit and the relation.
        epsilon: the tightest sound figure; infinity when nothing is promised.
        delta: the failure probability it holds at.
        accountant: whose figure `epsilon` is.
        by_accountant: every accountant's figure, None where it cannot price the events.
        assumptions: name -> checked, assumed or failed.
    """

    pair: Pair
    epsilon: float
    delta: float
    accountant: str
    by_accountant: Mapping[str, float | None]
    assumptions: Mapping[str, str] = field(default_factory=dict)


class OpenGate(Protocol):
    """A gate with a paid block: the only face of the gate that methods hand to the other rooms."""

    @property
    def count(self) -> int:
        """How many answers the block was paid for."""

    @property
    def left(self) -> int:
        """How many answers the block can still give; lost ones are gone."""

    @property
    def replaying(self) -> bool:
        """Whether an answer from before is still waiting to be asked for again."""

    def ahead(self, rows: int) -> int:
        """How many rows the next answer will have when up to `rows` are asked for."""

    def knows(self, question: bytes) -> bool:
        """Whether the question was answered already, so that to ask it now draws nothing."""

    def answer(self, question: bytes, ask: Callable[[], Bounded]) -> Sanitised[Integers]:
        """The answer to a public question: the old one, free, or a new one, drawn and kept."""

    def poisson(self) -> SecretSample:
        """Draw the block's Poisson sample."""


SMALLEST_DELTA = 1e-12


def check_epsilon(epsilon: float, where: str = "epsilon") -> float:
    """Refuse an epsilon that is no finite positive number."""
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < float("inf")):
        raise BadInput(
            f"epsilon must be a finite number above 0, got {epsilon}",
            where=where,
            why="epsilon 0 allows no answer and a negative one has no meaning",
            remedy="give an epsilon such as 1",
        )
    return float(epsilon)


def check_delta(delta: float, where: str = "delta") -> float:
    """Refuse a delta outside [1e-12, 1)."""
    if not (isinstance(delta, (int, float)) and SMALLEST_DELTA <= delta < 1):
        raise BadInput(
            f"delta must lie in [{SMALLEST_DELTA:g}, 1), got {delta}",
            where=where,
            why="delta is the chance that the promise fails; below 1e-12 the arithmetic "
            "cannot vouch for it",
            remedy="give a delta such as 1e-5, below one over the number of records",
        )
    return float(delta)
