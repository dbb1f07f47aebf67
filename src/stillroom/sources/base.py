"""What a source is: where knowledge of sensitive records comes from, and what it costs.

A method says what it will want to know (`Ask`). A source turns that into requests at the gate,
looks at the sealed records before anything is paid for, and then answers. Methods and sources know
of each other only what stands here.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.gate import Ledger, Mechanism, Passage
from stillroom.recipe import Recipe
from stillroom.sources.trials import Phase
from stillroom.vocabulary import Integers, Sealed

Records = npt.NDArray[Any]
Reals = npt.NDArray[np.float64]
Passages = Mapping[str, Mapping[str, Passage]]
"""Paid passages, by the party's name and the request's."""
Observed = Mapping[str, bool | int | float | str]
"""What was observed of sanitised things and stands on the certificate, by name."""
PUBLIC_RECORDS = "public records"
"""How many there are: observed where a plan rests on it."""


@dataclass(frozen=True)
class Party:
    """Who holds sensitive records: one party is the ordinary case.

    Args:
        name: what the certificate calls it.
        data: the records, sealed; or a sealed model, where that is all there is.
        held: the ledger of these records, or what opens it once it is needed.
    """

    name: str
    data: Sealed[Any]
    held: Ledger | Callable[[], Ledger]

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of these records."""
        return self.held() if callable(self.held) else self.held


@dataclass(frozen=True)
class Facts:
    """What is public about the data beside the recipe.

    Args:
        shape: of one record.
        classes: their names.
        public_records: how many there are.
        width: coordinates of a gradient sum, or of a hint; only the table error depends on it.
        names_persons: whether the records name persons.
    """

    shape: tuple[int, ...]
    classes: tuple[str, ...]
    public_records: int = 0
    width: int | None = None
    names_persons: bool = False


@dataclass(frozen=True)
class Ask:
    """What a method will want to know, as far as the source's own section does not say it.

    Args:
        scores: public records that it asks for, where each one is charged.
        hint_shape: the shape of a hint; None without hint learning.
    """

    scores: int = 0
    hint_shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Request:
    """A named wish at the gate.

    Args:
        name: under which its passage is found.
        at: the mechanism, at a scale of the noise.
        count: the most answers.
        sought: whether the scale is sought for the recipe's epsilon, or the recipe fixes it.
        wide: whether its width is that of the facts, which follows from networks.
        of_party: what a party pays in its place, by the party's name, None for nothing; where all
            parties pay alike there is no need of it.
    """

    name: str
    at: Callable[[Fraction], Mechanism]
    count: int
    sought: bool = True
    wide: bool = False
    of_party: Callable[[str], Request | None] | None = None

    def to(self, party: str) -> Request | None:
        """What one party pays; at most as much as the request itself costs."""
        return self if self.of_party is None else self.of_party(party)

    @classmethod
    def fixed(cls, name: str, mechanism: Mechanism, count: int, *, wide: bool = False) -> Request:
        """A request whose noise the recipe fixes."""
        return cls(name, lambda scale: mechanism, count, sought=False, wide=wide)


@dataclass(frozen=True)
class Scores:
    """What a source says of records.

    Args:
        values: one row per answered record, one score per class; logits up to a constant.
        answered: positions of the answered records.
        noise: standard deviation of the noise in an answer before it became scores; 0 where the
            source itself is sanitised.
    """

    values: Reals
    answered: Integers
    noise: float = 0.0


@dataclass(frozen=True)
class Places:
    """Where a run keeps things.

    Args:
        work: trainings on public records, by content; shared by many runs.
        private_work: as sensitive as the records; only `private/` writes there.
        checkpoint: sanitised state of this run.
        files: the folder that file names in the recipe are relative to.
    """

    work: Path
    private_work: Path
    checkpoint: Path
    files: Path


@dataclass(frozen=True)
class Progress:
    """Who is told how far a run has come.

    Args:
        tell: told what is being done.
        step: told how much of it is done, and of how much.
        expect: told the phases of a run and the seconds each will take, about, before anything is
            paid; None for nobody: they are not tried then.
    """

    tell: Callable[[str], None] = lambda line: None
    step: Callable[[int, int], None] = lambda done, total: None
    expect: Callable[[Sequence[tuple[str, float]]], None] | None = None


@dataclass(frozen=True)
class PublicSide:
    """What may be used without charge.

    Args:
        records: all public records.
        labelled: those whose labels may be used.
        tested: the test part, where it is declared public.
        auxiliary: a network trained on them, from pictures to logits, a sequence of blocks; None
            where the method has none.
        training: how the method trains an ordinary network on labelled records; None leaves that
            to the source.
    """

    records: Dataset
    labelled: Dataset
    tested: Dataset | None = None
    auxiliary: Any = None
    training: Callable[[Dataset], Any] | None = None


class Begin(Protocol):
    """Called when what can be refused at once was refused, before work or a look at records.

    A release opens its ledgers here, and refuses where there is no budget. A check of a recipe ends
    here, unless what follows is quick.
    """

    def __call__(self, *, quick: bool = False) -> None:
        """Go on.

        Args:
            quick: whether all that follows is a look at the records that takes seconds, trains
                nothing and writes nothing.
        """


def _go_on(*, quick: bool = False) -> None:
    """Where nobody keeps a ledger."""


@dataclass(frozen=True)
class Setting:
    """Everything a run is prepared with.

    Args:
        recipe: the recipe.
        facts: what is public about the data.
        parties: whose sealed records.
        public: what may be used without charge.
        places: where things are kept.
        progress: told.
        begin: see `Begin`.
    """

    recipe: Any
    facts: Facts
    parties: Sequence[Party]
    public: PublicSide
    places: Places
    progress: Progress
    begin: Begin = _go_on

    @property
    def engine(self) -> Engine:
        """Where independent work runs."""
        return Engine(**self.recipe.engine.model_dump())

    def state_file(self, name: str, passage: Passage) -> Path:
        """Where this run keeps sanitised state: that of another, paid for by others, is not found.

        Args:
            name: what is kept.
            passage: that its answers came through.
        """
        digest = hashlib.sha256((self.recipe.model_dump_json() + passage.paid_as).encode())
        return self.places.checkpoint / f"{name}-{digest.hexdigest()[:16]}.pt"

    def only_party(self) -> Party:
        """The one party of a source that cannot join several.

        Raises:
            BadInput: there are several.
        """
        if len(self.parties) != 1:
            raise BadInput(
                f"source {self.recipe.source} takes the records of one party, got "
                f"{len(self.parties)}",
                where="source",
                why="it would have to pool what its parties keep apart",
                remedy="use a source that asks each party",
            )
        return self.parties[0]


class Answers(ABC):
    """A source that is open: everything it says came through the gate.

    As it stands here it is free to ask and has nothing of its own but scores.
    """

    left: int | None = None
    """How many scores may still be asked for; None where asking is free."""
    network: Any = None
    """A sanitised module from stored records to logits; None where every answer is charged."""

    @property
    def observed(self) -> Observed:
        """What was observed of sanitised things."""
        return {}

    @abstractmethod
    def scores(self, x: Records, groups: Integers | None = None) -> Scores:
        """What it says of public or synthetic records.

        Args:
            x: the records.
            groups: the group of each record, numbered from 0, -1 for none: one answer per group,
                charged once, where answers are charged.
        """

    def hints(self, x: Records, centre: Reals, known: Records, values: Reals) -> Reals:
        """What a student's guided layer shall say of the first records, as far as it is paid for.

        The public hints, where the source has no hidden layer to ask.

        Args:
            x: public records.
            centre: what the auxiliary teacher's hint layer says of them.
            known: public records that a teacher's map to hints is fitted on.
            values: the auxiliary teacher's hints at those.
        """
        return centre

    def samples(self, count: int, seed: int) -> Records | None:
        """Records drawn from a sketch, in the units of the data; None where there is none."""
        return None

    def sample_scores(self, count: int, seed: int) -> Reals | None:
        """What it says of these samples before they were retouched; None where it must be asked."""
        return None

    def close(self) -> None:  # noqa: B027 (most sources keep nothing)
        """Let go of everything that saw sensitive records; nothing is asked after this."""


@dataclass(frozen=True)
class Prepared:
    """A source whose records were looked at; nothing is paid for yet.

    Args:
        width: coordinates of a gradient sum, or of a hint.
        open: draws what is drawn once; answers from then on.
    """

    width: int
    open: Callable[[Passages], Answers]


@dataclass(frozen=True)
class SourceTerms:
    """What a source fixes about a certificate; derived again by `verify`.

    Args:
        about: what kind of model answers.
        assumptions: what its figures rest on.
        knowledge: the public things it used.
        warnings: what a reader must see.
        observed: the names of what it observes.
    """

    about: str
    assumptions: Mapping[str, str]
    knowledge: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    observed: frozenset[str] = field(default_factory=frozenset)


class Source(Protocol):
    """Where knowledge comes from; one object per source."""

    name: ClassVar[str]

    def misfits(self, recipe: Recipe) -> dict[str, bool]:
        """Keys of a recipe with this source that make no sense together."""

    def requests(self, recipe: Recipe, facts: Facts, ask: Ask) -> list[Request]:
        """What must be paid for; pure, and without torch."""

    def terms(self, recipe: Recipe, observed: Observed, paid: int) -> SourceTerms:
        """What it says on the certificate; pure, and without torch.

        Args:
            recipe: the recipe.
            observed: what was observed.
            paid: how many answers of the first request were paid for.
        """

    def phases(self, recipe: Recipe, facts: Facts, ask: Ask) -> Sequence[Phase]:
        """What a run with this source tells that it is doing, as work that can be tried."""

    def prepare(self, setting: Setting, ask: Ask) -> Prepared:
        """Look at the sealed records; refuse what does not fit (K10).

        Raises:
            BadInput, NumericalDoubt: something does not fit; nothing is paid for yet.
        """
