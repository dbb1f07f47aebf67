"""The columns of a schema: how the text of a cell becomes a number, by public rules alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data.schema_words import (
    Faulty,
    Missing,
    check_keys,
    number,
    plain,
    policy,
    refuse_open,
    texts,
)

Stored = npt.NDArray[np.float64]

OTHER = "other"
"""What a category is called that is not on the list."""
SMALLEST_SPAN = 1e-30
NARROWEST = 1e-4
"""A range this much shorter than its numbers are large would lose its digits in single
precision, which is what a model is given."""
MOST_BINS, MOST_VALUES = 1000, 10_000


class Unusable(ValueError):
    """A cell that cannot be stored.

    Args:
        position: its place among the cells.
        what: what is wrong, without what it holds.
    """

    def __init__(self, position: int, what: str) -> None:
        super().__init__(what)
        self.position = position


@dataclass(frozen=True)
class Number:
    """A column of numbers.

    Args:
        name: of the column.
        low, high: its public range; what is outside is clamped to it.
        bins: so many bins of equal width; None for none.
        edges: or where one bin ends and the next begins.
        missing: a missing cell counts as one of its own, is refused, or is filled in.
        fill: with what.
        cells: what a missing cell holds.
    """

    name: str
    low: float
    high: float
    bins: int | None = None
    edges: tuple[float, ...] = ()
    missing: Missing = "own"
    fill: float | None = None
    cells: frozenset[str] = field(default=frozenset({""}), repr=False)

    @classmethod
    def of(cls, name: str, told: Any, usual: Any, cells: Sequence[str]) -> Number:
        """A column as a schema has it.

        Raises:
            Faulty: it does not fit.
        """
        name = texts([name])[0]
        if not isinstance(told, Mapping):
            raise Faulty("is no table; write {low = 0, high = 100}")
        check_keys(told, ("low", "high", "bins", "edges", "missing", "fill"))
        refuse_open(told, ("low", "high"))
        low, high = number(told, "low"), number(told, "high")
        if not low < high or high - low < SMALLEST_SPAN:
            raise Faulty("low must lie below high")
        if high - low < NARROWEST * max(abs(low), abs(high)):
            raise Faulty(
                "the range is too narrow for numbers so large; subtract a constant from the column"
            )
        edges = told.get("edges", [])
        if not isinstance(edges, list) or len(edges) >= MOST_BINS:
            raise Faulty(f"edges are a list of numbers, for at most {MOST_BINS} bins")
        cuts = tuple(number({"edges": edge}, "edges") for edge in edges)
        bins = told.get("bins")
        if bins is not None and (type(bins) is not int or not 2 <= bins <= MOST_BINS):
            raise Faulty(f"bins are a whole number from 2 to {MOST_BINS}")
        if bins is not None and edges:
            raise Faulty("bins and edges say the same; give one of them")
        missing, fill = policy(told, usual)
        if fill is not None:
            fill = number(told, "fill")
            if not low <= fill <= high:
                raise Faulty("fill lies outside of low and high")
        made = cls(name, low, high, bins, cuts, missing, fill, frozenset(cells))
        within = np.asarray([low, *made.cuts, high], dtype=np.float32)
        if not (np.diff(within) > 0).all():
            raise Faulty("edges must rise, and lie between low and high")
        return made

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain values."""
        told = {
            "low": plain(self.low),
            "high": plain(self.high),
            "bins": self.bins,
            "edges": list(map(plain, self.edges)) or None,
            "missing": None if self.missing == "fill" else self.missing,
            "fill": None if self.fill is None else plain(self.fill),
        }
        if told["missing"] == "own":
            told["missing"] = None
        return {name: value for name, value in told.items() if value is not None}

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where one bin ends and the next begins; nothing without bins."""
        if self.bins is None:
            return self.edges
        step = (self.high - self.low) / self.bins
        return tuple(self.low + place * step for place in range(1, self.bins))

    @property
    def absent(self) -> float:
        """What is stored for a missing cell that counts as one of its own: far below the range."""
        return self.low - (self.high - self.low)

    def stored(self, cells: Sequence[str]) -> Stored:
        """The numbers of some cells, clamped to the range.

        Guarantee: cell by cell; none moves another's number.

        Raises:
            Unusable: a cell holds no number, or nothing where something must be.
        """
        missing = self.cells
        instead = {"own": self.absent, "refuse": math.nan, "fill": self.fill}[self.missing]
        try:
            found = [None if cell in missing else float(cell) for cell in cells]
        except ValueError:
            raise Unusable(_first_text(cells, missing), "a cell is not a number") from None
        values = np.array(found, dtype=np.float64)  # None becomes NaN
        odd = np.flatnonzero(np.isnan(values))
        np.clip(values, self.low, self.high, out=values)
        for place in odd.tolist():
            if found[place] is not None:
                raise Unusable(place, "a cell is not a number")
            if self.missing == "refuse":
                raise Unusable(place, "a cell is missing")
        values[odd] = instead
        return values


@dataclass(frozen=True)
class Category:
    """A column of categories.

    Args:
        name: of the column.
        values: the public list; what is not on it is "other".
        missing: a missing cell counts as one of its own, is refused, or is filled in.
        fill: with what.
        cells: what a missing cell holds.
    """

    name: str
    values: tuple[str, ...]
    missing: Missing = "own"
    fill: str | None = None
    cells: frozenset[str] = field(default=frozenset({""}), repr=False)

    @classmethod
    def of(cls, name: str, told: Any, usual: Any, cells: Sequence[str]) -> Category:
        """A column as a schema has it: a list, or a table with `values`.

        Raises:
            Faulty: it does not fit.
        """
        name = texts([name])[0]
        told = {"values": told} if isinstance(told, (list, str)) else told
        if not isinstance(told, Mapping):
            raise Faulty('is no list; write ["north", "south"]')
        check_keys(told, ("values", "missing", "fill"))
        refuse_open(told, ("values",))
        values = texts(told.get("values"))
        if not 1 <= len(values) <= MOST_VALUES:
            raise Faulty(f"the list has from 1 to {MOST_VALUES} values")
        if OTHER in values:
            raise Faulty(f"{OTHER!r} is always there and catches what is not on the list")
        if {*values} & {*cells}:
            raise Faulty("a value on the list is also one of missing_cells")
        missing, fill = policy(told, usual)
        if fill is not None and fill not in (*values, OTHER):
            raise Faulty("fill is not on the list")
        return cls(name, values, missing, fill, frozenset(cells))

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain values."""
        told: dict[str, Any] = {"values": list(self.values)}
        if self.missing == "refuse":
            told["missing"] = "refuse"
        if self.fill is not None:
            told["fill"] = self.fill
        return told

    @property
    def places(self) -> int:
        """How many numbers can be stored: one per value, other, and missing where it counts."""
        return len(self.values) + 1 + (self.missing == "own")

    @cached_property
    def _place_of(self) -> dict[str, float]:
        known = {value: float(place) for place, value in enumerate(self.values)}
        other = float(len(self.values))
        filled = other if self.fill in (None, OTHER) else known[str(self.fill)]
        instead = {"own": other + 1, "refuse": -1.0, "fill": filled}[self.missing]
        return known | dict.fromkeys(self.cells, instead)

    def stored(self, cells: Sequence[str]) -> Stored:
        """The places of some cells on the list.

        Guarantee: cell by cell; none moves another's number.

        Raises:
            Unusable: a cell holds nothing where something must be.
        """
        place, other = self._place_of, float(len(self.values))
        values = np.array([place.get(cell, other) for cell in cells], dtype=np.float64)
        if self.missing == "refuse" and (values < 0).any():
            raise Unusable(int(np.argmin(values)), "a cell is missing")
        return values


@dataclass(frozen=True)
class Label:
    """The column of classes.

    Args:
        column: its name.
        classes: their names, in the order of their numbers.
        aliases: other spellings, and the class each of them means.
    """

    column: str
    classes: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, told: Any) -> Label:
        """The column as a schema has it.

        Raises:
            Faulty: it does not fit.
        """
        if not isinstance(told, Mapping):
            raise Faulty('is no table; write {column = "state", classes = ["well", "ill"]}')
        check_keys(told, ("column", "classes", "aliases"))
        refuse_open(told, ("column", "classes"))
        column, classes = texts([told.get("column")])[0], texts(told.get("classes"))
        if not 2 <= len(classes) <= MOST_VALUES:
            raise Faulty(f"there are fewer than two classes, or more than {MOST_VALUES}")
        aliases = told.get("aliases", {})
        known = isinstance(aliases, Mapping) and all(
            isinstance(name, str) for name in aliases.values()
        )
        if not known or not {*aliases.values()} <= {*classes}:
            raise Faulty("aliases are a table: each spelling and the class it means")
        if {*texts(list(aliases))} & {*classes}:
            raise Faulty("an alias is a class of its own")
        return cls(column, classes, tuple(sorted(aliases.items())))

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain values."""
        told: dict[str, Any] = {"column": self.column, "classes": list(self.classes)}
        return {**told, "aliases": dict(self.aliases)} if self.aliases else told

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number of a class, by each of its spellings."""
        known = {name: place for place, name in enumerate(self.classes)}
        return known | {spelling: known[name] for spelling, name in self.aliases}


def _first_text(cells: Sequence[str], missing: Collection[str]) -> int:
    for position, cell in enumerate(cells):
        try:
            float("0" if cell in missing else cell)
        except ValueError:
            return position
    raise AssertionError("every cell is a number")
