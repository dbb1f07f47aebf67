"""What a method hands to the road when it is done; the certificate's words are its `terms`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.data import Dataset
from stillroom.release.model import ReleasedModel
from stillroom.release.sections.compression import CompressionReport
from stillroom.vocabulary import Integers

Guesses = Callable[[Dataset], Integers]


@dataclass(frozen=True)
class Outcome:
    """A finished model and what only its method knows of it.

    Args:
        model: what is released.
        guesses: the class it gives to each record.
        facts: what was observed of sanitised things, for `terms_of`.
        rivals: the models it is compared with, by their names in the terms.
        compression: teacher and student side by side.
        samples: pictures drawn from a sketch.
    """

    model: ReleasedModel
    guesses: Guesses
    facts: Mapping[str, bool | int]
    rivals: Mapping[str, Guesses] = field(default_factory=dict)
    compression: CompressionReport | None = None
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
