"""Features of tables: scaled numbers, bins, categories one by one, and products of columns.

Guarantee: row i depends on record i and the schema only, and has a Euclidean norm of at most 1 by
a constant that the schema fixes: each column, each set of bins and each product has norm 1 at most,
so all of them together are divided by the root of their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from stillroom.data.columns import Category, Number
from stillroom.data.schema import Schema
from stillroom.errors import BadInput
from stillroom.features.fixed import BIAS, NEARLY_ONE, Rows

TABLE = "table"
"""What a recipe calls them."""
MOST_FEATURES = 65_536
FURTHEST = np.float32(3e38)
"""Beyond every stored number."""
Pairs = Literal["all"] | tuple[tuple[str, str], ...]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """How the features are computed: one line of numbers per kind, all public.

    The features stand in this order: scaled numbers, missing numbers, bins, listed categories,
    other categories, products; and a constant.

    Args:
        low, high, middle, per_half: of each number: its range, and how it is brought to [-1, 1].
        absent: which numbers may be missing; what lies below their range is.
        binned, lower, upper: of each bin: the place of its number, and its ends.
        columns, codes: of each listed category: the place of its column, and its number.
        first, last: of each column of categories: the places of its own among the listed.
        left, right: of each product: the places of its factors among the features before.
        scale: what all are multiplied with.
    """

    low: Rows
    high: Rows
    middle: Rows
    per_half: Rows
    absent: Places
    binned: Places
    lower: Rows
    upper: Rows
    columns: Places
    codes: Rows
    first: Places
    last: Places
    left: Places
    right: Places
    scale: np.float32

    @property
    def width(self) -> int:
        """How many features there are, the constant included."""
        return self._single + len(self.left) + 1

    @property
    def _single(self) -> int:
        kinds = (self.low, self.absent, self.binned, self.codes, self.first)
        return sum(part.size for part in kinds)


@dataclass(frozen=True)
class TableFeatures:
    """From stored records of a table to feature rows.

    Args:
        schema: of the table.
        pairs: columns whose products are features too, by name; or all of those that are
            categories or have bins.

    Raises:
        BadInput: a pair names no two columns, or there would be too many features.

    >>> schema = Schema.of({
    ...     "label": {"column": "state", "classes": ["well", "ill"]},
    ...     "numbers": {"age": {"low": 0, "high": 100}},
    ...     "categories": {"ward": {"values": ["north", "south"], "missing": "refuse"}},
    ... })
    >>> features = TableFeatures(schema)
    >>> rows = features(np.array([[100.0, 1.0], [-100.0, 2.0]]))
    >>> (rows > 0).astype(int).tolist()
    [[1, 0, 0, 1, 0, 1], [0, 1, 0, 0, 1, 1]]
    """

    schema: Schema
    pairs: Pairs = ()

    def __post_init__(self) -> None:
        names, named = set(self.schema.columns), () if self.pairs == "all" else self.pairs
        odd = [pair for pair in named if len({*pair} & names) != 2]
        if odd or len({frozenset(pair) for pair in named}) != len(named):
            raise BadInput(
                "a pair does not name two columns of the schema, or stands there twice",
                where="features.pairs",
                why="a product needs two factors",
                remedy="name pairs of numbers and categories of the schema, each once",
            )
        if self._count > MOST_FEATURES:
            raise BadInput(
                f"{self._count:,} features are more than {MOST_FEATURES:,}",
                where="features.pairs",
                why="every feature has a weight per class, and noise on each of them",
                remedy="name fewer pairs, or fewer bins",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a stored record."""
        return (len(self.schema.columns),)

    @property
    def width(self) -> int:
        """How many features there are, a constant included."""
        return self._count + 1

    @property
    def _named(self) -> tuple[tuple[str, str], ...]:
        return tuple(combinations(self._whole, 2)) if self.pairs == "all" else self.pairs

    @property
    def _whole(self) -> list[str]:
        """Columns of which one feature is 1 and all others are 0."""
        return [c.name for c in self.schema.of_records if isinstance(c, Category) or c.cuts]

    @property
    def _count(self) -> int:
        """Without a constant; known before any of them is laid out."""
        sizes = {column.name: _sizes(column) for column in self.schema.of_records}
        if self.pairs == "all":  # counted before so many pairs are named
            each = [sizes[name][1] for name in self._whole]
            of_pairs = (sum(each) ** 2 - sum(size**2 for size in each)) // 2
        else:
            of_pairs = sum(sizes[one][1] * sizes[two][1] for one, two in self.pairs)
        return sum(size for size, _ in sizes.values()) + of_pairs

    @cached_property
    def layout(self) -> Layout:
        """How the features are computed."""
        numbers, categories = self.schema.numbers, self.schema.categories
        low, high = (_floats([getattr(c, end) for c in numbers]) for end in ("low", "high"))
        half = (high.astype(np.float64) - low) / 2
        absent = [place for place, column in enumerate(numbers) if column.missing == "own"]
        factors: dict[str, list[int]] = {}
        at = len(numbers)
        for place, column in enumerate(numbers):
            factors[column.name] = [] if column.cuts else [place]
        for place in absent:
            factors[numbers[place].name].append(at)
            at += 1
        binned: list[int] = []
        lower: list[float] = []
        upper: list[float] = []
        for place, column in enumerate(numbers):
            ends = [-float(FURTHEST), *column.cuts, float(FURTHEST)] if column.cuts else [0.0]
            binned += [place] * (len(ends) - 1)
            lower += ends[:-1]
            upper += ends[1:]
            factors[column.name] += range(at, at + len(ends) - 1)
            at += len(ends) - 1
        columns: list[int] = []
        codes: list[int] = []
        first: list[int] = []
        last: list[int] = []
        for place, category in enumerate(categories):
            other = len(category.values)
            own = [code for code in range(category.places) if code != other]
            first.append(len(codes))
            last.append(len(codes) + len(own) - 1)
            factors[category.name] = list(range(at, at + len(own)))
            columns += [len(numbers) + place] * len(own)
            codes += own
            at += len(own)
        for category in categories:
            factors[category.name].append(at)
            at += 1
        products = [(a, b) for one, two in self._named for a in factors[one] for b in factors[two]]
        blocks = len(numbers) + sum(bool(c.cuts) for c in numbers) + len(categories)
        blocks += len(self._named)
        return Layout(
            low,
            high,
            middle=_floats(low.astype(np.float64) + half),
            per_half=_floats(1 / half),
            absent=_places(absent),
            binned=_places(binned),
            lower=_floats(lower),
            upper=_floats(upper),
            columns=_places(columns),
            codes=_floats(codes),
            first=_places(first),
            last=_places(last),
            left=_places([a for a, _ in products]),
            right=_places([b for _, b in products]),
            scale=np.float32(np.sqrt((1 - BIAS**2) / blocks) * NEARLY_ONE),
        )

    def __call__(self, x: npt.NDArray[Any]) -> Rows:
        """The feature rows of stored records, each from its own record alone."""
        how = self.layout
        with np.errstate(all="ignore"):
            stored = x.astype(np.float32)
        numbers = stored[:, : len(how.low)]
        missing = numbers < how.low
        missing[:, np.setdiff1d(np.arange(len(how.low)), how.absent)] = False
        clamped = np.minimum(np.maximum(numbers, how.low), how.high)
        scaled = np.clip((clamped - how.middle) * how.per_half, -1, 1).astype(np.float32)
        scaled *= ~missing
        cut = clamped[:, how.binned]
        within = (cut >= how.lower) & (cut < how.upper) & ~missing[:, how.binned]
        listed = (stored[:, how.columns] == how.codes).astype(np.float32)
        # At most one of a column's own is 1; sums of so few ones are exact.
        counted = np.cumsum(listed, axis=1)
        own = counted[:, how.last] - counted[:, how.first] + listed[:, how.first]
        other = np.float32(1) - own
        found = [scaled, missing[:, how.absent], within, listed, other]
        single = np.concatenate(found, axis=1, dtype=np.float32)
        rows = np.empty((len(x), how.width), dtype=np.float32)
        size = single.shape[1]
        rows[:, :size] = single
        np.multiply(single[:, how.left], single[:, how.right], out=rows[:, size:-1])
        rows[:, :-1] *= how.scale
        rows[:, -1] = np.float32(BIAS) * NEARLY_ONE
        return rows

    def examples(self) -> npt.NDArray[np.float32]:
        """Records at every end, at every edge and on every list, and beyond all of them."""
        wanted = []
        for column in self.schema.of_records:
            if isinstance(column, Number):
                told = [column.low, column.high, column.absent, *column.cuts]
                told += [np.nextafter(np.float32(cut), np.float32(-3e38)) for cut in column.cuts]
                wanted.append([*told, -float(FURTHEST), float(FURTHEST), 0.0])
            else:
                wanted.append([*map(float, range(column.places + 1)), -1.0, 0.5])
        size = max(map(len, wanted))
        whole = [[told[place % len(told)] for place in range(size)] for told in wanted]
        return np.asarray(whole, dtype=np.float32).T.copy()


def _sizes(column: Number | Category) -> tuple[int, int]:
    """How many features a column has, and how many of them are factors of products."""
    if isinstance(column, Category):
        return column.places, column.places
    absent, bins = column.missing == "own", len(column.cuts) + bool(column.cuts)
    return 1 + absent + bins, absent + (bins or 1)


def _floats(values: Any) -> Rows:
    return np.asarray(values, dtype=np.float32)


def _places(values: Sequence[int]) -> Places:
    return np.asarray(values, dtype=np.int64)
