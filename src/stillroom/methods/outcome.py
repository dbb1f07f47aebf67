"""What a method hands to the road when it is done, for the certificate to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.release.compression import CompressionReport
from stillroom.release.controls import Claim
from stillroom.release.model import ReleasedModel
from stillroom.vocabulary import Integers

Guesses = Callable[[Dataset], Integers]


@dataclass(frozen=True)
class Rival:
    """A model that is measured beside the released one.

    Args:
        name: such as "Base".
        about: what it is, in words.
        guesses: the class it gives to each record.
        public_only: it saw public records alone.
        private: it saw sensitive records without protection.
    """

    name: str
    about: str
    guesses: Guesses
    public_only: bool = False
    private: bool = False


@dataclass(frozen=True)
class Outcome:
    """A finished model and everything about it that only its method knows."""

    model: ReleasedModel
    guesses: Guesses
    assumptions: Mapping[str, str]
    knowledge: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    rivals: tuple[Rival, ...] = ()
    compression: CompressionReport | None = None
    claim: Claim | None = None
    samples: npt.NDArray[Any] | None = None


def guesser(model: ReleasedModel, *, alone: bool) -> Guesses:
    """The classes a model gives to records.

    Args:
        model: the model.
        alone: one record at a time, so that no record sways another's in the last bit; needed
            where the records are sensitive.
    """

    def guesses(data: Dataset) -> Integers:
        step = 1 if alone else max(1, len(data))
        # Copied, because torch warns of records that cannot be written to.
        chunks = (np.array(data.x[at : at + step]) for at in range(0, len(data), step))
        parts = [model.logits(chunk).argmax(axis=1) for chunk in chunks]
        return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)

    return guesses
