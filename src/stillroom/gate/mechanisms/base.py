"""What every mechanism is: a frozen description that knows its event, its sampler and its law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from stillroom.documents import LARGEST_COUNT
from stillroom.errors import BadInput
from stillroom.gate.entropy import Entropy
from stillroom.gate.event_base import Line
from stillroom.vocabulary import Integers, Sensitivity, Unit

_LARGEST_VALUE = 2**61


@dataclass(frozen=True)
class Mechanism(ABC):
    """A frozen description of one way through the gate."""

    name: ClassVar[str]
    one_row: ClassVar[bool] = False
    """Whether each answer is a draw of its own, which no other question may share (L7)."""

    @property
    def rate(self) -> Fraction:
        """The share of the units that an answer is computed on; below 1 it is a secret sample."""
        return Fraction(1)

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """The sensitivity that is paid for; a Bounded that may move further is refused."""

    @property
    def coordinates(self) -> int:
        """Numbers in one row of the value: the field `width`, where a mechanism has one."""
        return int(vars(self)["width"])

    @abstractmethod
    def lines(self, count: int) -> list[Line]:
        """The events of at most `count` answers."""

    @abstractmethod
    def draw(self, entropy: Entropy, value: Integers, allowance: int) -> Integers:
        """Noisy answers to the rows of `value`, answering at most `allowance` of them."""

    def check(self, value: Integers) -> None:
        """Refuse a value that cannot have the declared sensitivity."""
        if value.ndim != 2 or value.shape[1] != self.coordinates:
            raise BadInput(
                f"{self.name} takes rows of {self.coordinates} integers, got shape {value.shape}",
                why="the block was paid for rows of that width",
                remedy="give an array of shape (answers, coordinates)",
            )
        if value.size and (value.max() > _LARGEST_VALUE or value.min() < -_LARGEST_VALUE):
            raise BadInput(
                f"a value given to {self.name} is too large",
                why="adding noise could wrap around 64-bit integers",
                remedy="use a coarser grid",
            )

    def capacity(self, count: int) -> int:
        """How many of `count` asked rows may be answered at most."""
        return count

    def answered(self, answers: Integers) -> int:
        """How many rows of a drawn result really were answered."""
        return len(answers)

    def describe(self) -> dict[str, Any]:
        """A JSON object that identifies the mechanism; part of cache keys and blocks."""
        body: dict[str, Any] = {"mechanism": self.name}
        for part in fields(self):
            value = getattr(self, part.name)
            told = str(value) if isinstance(value, (Fraction, Unit)) else value
            body[part.name] = list(told) if isinstance(told, tuple) else told
        return body


LARGEST_SQUARE = 2**200
"""Of a distance in grid units: its numbers have 64 bits, and there are at most 2^62 of them."""


def check_count(what: str, value: int, smallest: int = 1, largest: int = LARGEST_COUNT) -> int:
    """A whole number in its range, or a clear refusal."""
    if type(value) is not int or not smallest <= value <= largest:
        raise BadInput(
            f"{what} must be a whole number of at least {smallest}, got {str(value)[:60]}"
            + ("" if type(value) is not int or value < smallest else ": too large"),
            where=what,
            why="a guessed size would give a false epsilon",
            remedy=f"give {what} as a whole number",
        )
    return value


def check_nominal(value: Integers, classes: int, smallest: int = 0) -> None:
    """Refuse nominal answers that are none of the classes."""
    if value.size and (value.min() < smallest or value.max() >= classes):
        raise BadInput(
            f"an answer is not one of the {classes} classes",
            why="an answer outside the set would be recognisable through any noise",
            remedy="number the classes from 0",
        )
