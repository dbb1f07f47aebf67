"""What a method is: one object that says what it needs, what that costs, and how it learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.recipe import Recipe
from stillroom.release.generator import ReleasedGenerator
from stillroom.release.model import ReleasedModel
from stillroom.release.sections.compression import CompressionReport
from stillroom.release.sections.controls import Control
from stillroom.release.sections.published import Claim
from stillroom.sources import Facts, Request, Setting
from stillroom.sources.base import Observed, Passages
from stillroom.sources.trials import Phase
from stillroom.vocabulary import Integers

SHOWN_SAMPLES = 100
"""Pictures of a sketch, or of a generator, on a card."""


class Measured(Protocol):
    """Whatever gives records a class: a released model, or an ordinary network."""

    def guesses(self, data: Dataset) -> Integers:
        """The class of each record."""


@dataclass(frozen=True)
class Plan:
    """What a recipe will draw and be compared with; pure, and without torch.

    Args:
        requests: what is paid for. Where the budget is short there is less of the first.
        controls: the models it is compared with, in order, without their accuracies.
        claim: what the method's paper publishes, and whether it holds.
    """

    requests: Sequence[Request]
    claim: Claim
    controls: tuple[Control, ...] = ()


@dataclass(frozen=True)
class Terms:
    """What else a certificate says; stated by the writer, derived again by `verify`.

    Args:
        about: what kind of model is released.
        assumptions: what the figures rest on, beside what holds for every method.
        knowledge: the public things that were used.
        teacher: what kind of model it is measured beside, where it is a compressed one.
        warnings: what a reader must see.
        observed: the names of what the statements rest on.
        samples: how many pictures of a sketch or a generator are shown.
        generator: what the certificate states of a generator that is released beside the model.
        compact: whether the model's compact file is released beside it.
    """

    about: str
    assumptions: Mapping[str, str]
    knowledge: tuple[str, ...]
    teacher: str | None = None
    warnings: tuple[str, ...] = ()
    observed: frozenset[str] = frozenset()
    samples: int = 0
    generator: Mapping[str, Any] | None = None
    compact: bool = False


@dataclass(frozen=True)
class Result:
    """A finished model and what only its method knows of it.

    Args:
        model: what is released; answers in memory, without ONNX.
        observed: what was observed of sanitised things, for `Method.terms`.
        controls: the models it is compared with, by their names in the plan.
        compression: teacher and student side by side.
        samples: pictures drawn from a sketch or a generator.
        generator: what anyone may draw records from.
    """

    model: ReleasedModel
    observed: Observed = field(default_factory=dict)
    controls: Mapping[str, Measured] = field(default_factory=dict)
    compression: CompressionReport | None = None
    samples: npt.NDArray[Any] | None = None
    generator: ReleasedGenerator | None = None


@dataclass(frozen=True)
class Job:
    """A run that is prepared and not paid for.

    Args:
        width: coordinates of a gradient sum, or of a hint: the prices' last fact.
        run: from paid passages to a result. What it raises depends on public and sanitised things
            alone (K10).
    """

    width: int
    run: Callable[[Passages], Result]


class Method(Protocol):
    """One object per method; its folder and one line of the registry are all that know its name."""

    name: str
    recipe: type[Recipe]

    def plan(self, recipe: Any, facts: Facts) -> Plan:
        """What it will draw: pure, and without torch."""

    def terms(self, recipe: Any, observed: Observed, paid: int) -> Terms:
        """What it says on the certificate: pure, and without torch.

        Args:
            recipe: the recipe.
            observed: what was observed.
            paid: how many answers of the first request were paid for.
        """

    def phases(self, recipe: Any, facts: Facts, tested: float) -> Sequence[Phase]:
        """What a run tells that it is doing, as work that can be tried; see `sources.trials`.

        Args:
            recipe: the recipe.
            facts: what is public about the data.
            tested: records that are tested on, about.
        """

    def prepare(self, setting: Setting) -> Job:
        """Refusals, public work, a look at the sealed records; nothing is paid for yet.

        Raises:
            BadInput, NumericalDoubt: something does not fit.
        """


@dataclass(frozen=True)
class ModelGuesses:
    """The classes a model gives to records.

    Args:
        model: the model.
        alone: one record at a time, so that no record sways another's in the last bit; needed
            where the records are sensitive.
    """

    model: ReleasedModel
    alone: bool

    def guesses(self, data: Dataset) -> Integers:
        """The class of each record."""
        step = 1 if self.alone else max(1, len(data))
        # Copied, because torch warns of records that cannot be written to.
        chunks = (np.array(data.x[at : at + step]) for at in range(0, len(data), step))
        parts = [self.model.logits(chunk).argmax(axis=1) for chunk in chunks]
        return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
