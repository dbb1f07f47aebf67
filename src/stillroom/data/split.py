"""Who may see which record: public, sensitive and test parts, and shards, by keyed hash of the id.

A record's position in a file depends on the records before it; the hash of its id depends on no
other record. So adding or removing one record never moves another to a different part or shard,
which is what "one record more or less" means in every guarantee.
"""

from __future__ import annotations

import copy
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from stillroom.data.dataset import Dataset, numbered_together
from stillroom.data.parts import About, Parts
from stillroom.errors import BadInput
from stillroom.vocabulary import Sealed

Share = int | float | str | Fraction
"""A part of the whole, meant as written: 0.4 and "2/5" are both exactly two fifths."""

SPLIT = b"stillroom/split/1"
SHARDS = b"stillroom/shards/1"
WHOLE = 1 << 256
"""The number of places a SHA-256 digest can fall on."""


@dataclass(frozen=True)
class Split:
    """The three parts of the data: free to use, to be protected, and to be measured on.

    Guarantee: no id and no person is in two parts. In `by_fraction` and `by_class` the part of a
    record depends on the key, on its own id (its person where persons are known, its content where
    the id is made of it) and, in `by_class`, on the classes of that unit's own records; adding or
    removing one moves no other.

    Assumes: the key is public (it comes from the recipe), and `public` really may be seen by all.

    Args:
        public: may be used without charge.
        sensitive: is used only through the gate.
        test: never trained on.

    Raises:
        BadInput: the parts overlap, or their records or classes are not alike.

    >>> from stillroom.data import digits
    >>> split = Split.by_fraction(digits(), key="an example", public="2/5", test="1/10")
    >>> split.sensitive
    Dataset('digits', shape=(8, 8), classes=10)
    """

    public: Dataset
    sensitive: Dataset
    test: Dataset

    def __post_init__(self) -> None:
        parts = {"public": self.public, "sensitive": self.sensitive, "test": self.test}
        for (first, a), (second, b) in combinations(parts.items(), 2):
            where = f"{first} and {second} part"
            if a.shape != b.shape or a.classes != b.classes:
                raise BadInput(
                    "two parts differ in the shape of their records or in their classes",
                    where=where,
                    why="what is learnt on one part is measured on another",
                    remedy="bring all parts to one shape and one list of classes",
                )
            for kind, ours, theirs in (
                ("record id", a.ids, b.ids),
                ("person", a.persons or (), b.persons or ()),
            ):
                if not set(ours).isdisjoint(theirs):
                    raise BadInput(
                        f"a {kind} is in two parts",
                        where=where,
                        why="what is protected in one part would be open or measured in another",
                        remedy=f"keep each {kind} in one part only",
                    )

    def sealed(self, test_is_public: bool) -> Parts:
        """The parts as methods get them: the sensitive one sealed, the test one unless public.

        Args:
            test_is_public: whether the recipe declares the test part public.

        >>> from stillroom.data import digits
        >>> parts = Split.by_fraction(digits(), key="an example").sealed(test_is_public=True)
        >>> parts.sensitive, parts.test
        (Sealed(<hidden>), Dataset('digits', shape=(8, 8), classes=10))
        >>> parts.about.shape, parts.about.names_persons
        ((8, 8), False)
        """
        test = self.test if test_is_public else Sealed(self.test)
        return Parts(self.public, Sealed(self.sensitive), test, About.of(self.sensitive))

    def members(self, mask: npt.ArrayLike) -> Split:
        """The same split with only some of the sensitive records, under their old ids.

        For shadow models of an audit, which need it hundreds of times: nothing is read, hashed or
        compared again.

        Args:
            mask: one truth value per sensitive record.

        Raises:
            BadInput: it is no such mask.

        >>> from stillroom.data import digits
        >>> split = Split.by_fraction(digits(), key="an example")
        >>> half = split.members(np.arange(len(split.sensitive)) % 2 == 0)
        >>> len(half.sensitive) == (len(split.sensitive) + 1) // 2, half.test is split.test
        (True, True)
        """
        chosen = np.asarray(mask)
        if chosen.dtype != bool or chosen.shape != (len(self.sensitive),):
            raise BadInput(
                "a mask of members must have one truth value per sensitive record",
                where="mask",
                why="numbers would be taken for positions, and other records would be kept",
                remedy="give an array of booleans as long as the sensitive part",
            )
        # Parts of disjoint parts are disjoint, so the checks of a new split are not repeated.
        kept = copy.copy(self)
        object.__setattr__(kept, "sensitive", self.sensitive.select(chosen))
        return kept

    @classmethod
    def by_fraction(
        cls,
        dataset: Dataset,
        key: str,
        public: Share = Fraction(2, 5),
        test: Share = Fraction(1, 10),
    ) -> Split:
        """Give each record (each person, where known) a part by its own keyed hash.

        Args:
            dataset: all records.
            key: the recipe's public split key; another key gives another split.
            public: the expected share that is public.
            test: the expected share that is tested on.

        Raises:
            BadInput: the shares leave nothing to protect, or the key is empty.
        """
        free, measured = _shares(public, test)
        if free + measured == 1:
            raise BadInput(
                "the public and the test share leave no sensitive part",
                where="public, test",
                why="there would be nothing to protect, and nothing to learn from",
                remedy="let the two shares add up to less than 1",
            )
        return cls.by_class(dataset, key, (), free, measured)

    @classmethod
    def by_class(
        cls,
        dataset: Dataset,
        key: str,
        sensitive_classes: Sequence[str],
        public: Share = Fraction(2, 5),
        test: Share = Fraction(1, 10),
    ) -> Split:
        """As `by_fraction`, but no record of the named classes is ever public.

        With persons known, a person who owns any record of a sensitive class is wholly withheld
        from the public part, because splitting the person would put half a protected unit in the
        open. Such a person's other records then show nothing by their absence as long as the unit
        is the person. They do if it is the record: one more record of a sensitive class takes its
        owner's others out of the public part, so such a split supports person guarantees only.
        Likewise a *changed* label can move a record: the split supports add-or-remove, not change.

        Args:
            dataset: all records.
            key: the recipe's public split key.
            sensitive_classes: names of the classes that must not be public.
            public: the expected public share of the others.
            test: the expected share that is tested on, of all classes alike.

        Raises:
            BadInput: a class is unknown, the shares exceed 1, or the key is empty.
        """
        number_of = {name: number for number, name in enumerate(dataset.classes)}
        if isinstance(sensitive_classes, str) or not set(sensitive_classes) <= set(number_of):
            raise BadInput(
                "a sensitive class is not among the classes of the data set",
                where="sensitive_classes",
                why="a misspelt class would silently stay public",
                remedy=f"list some of: {', '.join(dataset.classes)}",
            )
        named = [number_of[name] for name in sensitive_classes]
        rows = np.flatnonzero(np.isin(dataset.y, named))
        units = dataset.units  # made anew by each look
        withheld = frozenset(units[row] for row in rows)
        free, measured = _shares(public, test)
        places = _places(SPLIT, key, units)
        tested = np.array([place < measured * WHOLE for place in places])
        shown = np.array(
            [
                place < (measured + free) * WHOLE and unit not in withheld
                for place, unit in zip(places, units, strict=True)
            ]
        )
        chosen = (shown & ~tested, ~shown & ~tested, tested)
        return cls(*(dataset.select(mask) for mask in chosen))

    @classmethod
    def as_given(
        cls,
        train: Dataset,
        test: Dataset,
        public: Share | Dataset = 0,
        key: str = "",
        sensitive_classes: Sequence[str] = (),
    ) -> Split:
        """Keep the official train and test parts; the public part comes from train or elsewhere.

        The same picture can stand in both official files. Ids from a column would then name one
        record twice, which is refused. Ids made from the content only say that two records look
        alike, so equal ones are numbered over both parts, those of the test part first.

        Args:
            train: the records to train on.
            test: the records to measure on.
            public: an expected share of train, by keyed hash, or a data set that is public.
            key: the recipe's public split key; needed when `public` is a share above 0.
            sensitive_classes: names of classes of which a share must take nothing; see `by_class`
                for what such a split supports.

        Raises:
            BadInput: a record or person is in two parts, only one of train and test names
                persons, or a class is unknown.
        """
        if (train.persons is None) != (test.persons is None):
            raise BadInput(
                "only one of train and test names the persons of its records",
                where="train and test",
                why="a person could be in both without being noticed",
                remedy="give persons for both, or for neither",
            )
        parts = numbered_together({"train": train, "test": test})
        train, measured = parts["train"], parts["test"]
        if isinstance(public, Dataset):
            return cls(public, train, measured)
        share, _ = _shares(public, 0)
        if share == 1:
            raise BadInput(
                "the public share leaves no sensitive part",
                where="public",
                why="there would be nothing to protect, and nothing to learn from",
                remedy="give a public share below 1",
            )
        if share == 0:
            return cls(train.select([]), train, measured)
        open_or_not = cls.by_class(train, key, sensitive_classes, public=share, test=0)
        return cls(open_or_not.public, open_or_not.sensitive, measured)


def shards(ids: Sequence[str], count: int, key: str) -> npt.NDArray[np.int64]:
    """The shard of each id, by keyed hash; give persons instead of ids to keep persons together.

    Guarantee: a shard number depends on the key, the count and the id alone, so one id more or
    less touches one shard, and no other id moves. Shares the key of the split without sharing its
    hash: the shards of the sensitive part are as even as those of the whole.

    Args:
        ids: record ids, or the person of each record.
        count: how many shards.
        key: the recipe's public split key.

    Raises:
        BadInput: there is not at least one shard, or the key is empty.

    >>> shards(["anna", "ben", "cleo"], 4, key="an example")
    array([3, 3, 2])
    >>> shards(["cleo", "anna"], 4, key="an example")
    array([2, 3])
    """
    if count < 1:
        raise BadInput(
            "there must be at least one shard",
            where="count",
            why="a shard holds the records of one teacher or model",
            remedy="give a number of shards such as 100",
        )
    return np.array([place % count for place in _places(SHARDS, key, ids)], dtype=np.int64)


def _places(purpose: bytes, key: str, units: Sequence[str]) -> list[int]:
    """Where each unit falls: an exact integer below WHOLE that knows of no other unit."""
    if not key:
        raise BadInput(
            "the split key is empty",
            where="key",
            why="the key is what makes a split repeatable and another one independent of it",
            remedy="put any text into the recipe as its split key",
        )
    salt, opening = key.encode("utf-8", "surrogatepass"), purpose + b"\0"
    digests = (
        hmac.digest(salt, opening + unit.encode("utf-8", "surrogatepass"), "sha256")
        for unit in units
    )
    return [int.from_bytes(digest) for digest in digests]


def _shares(public: Share, test: Share) -> tuple[Fraction, Fraction]:
    exact = []
    for name, share in (("public", public), ("test", test)):
        try:
            exact.append(Fraction(str(share)))
        except (ValueError, ZeroDivisionError):
            raise BadInput(
                "a share is not a number",
                where=name,
                why="it decides which records are public, sensitive or tested",
                remedy="give a share such as 0.4 or 2/5",
            ) from None
    if min(exact) < 0 or sum(exact) > 1:
        raise BadInput(
            "the shares are below 0 or add up to more than 1",
            where="public, test",
            why="every record belongs to exactly one part",
            remedy="give shares such as 0.4 public and 0.1 test; the rest is sensitive",
        )
    return exact[0], exact[1]
