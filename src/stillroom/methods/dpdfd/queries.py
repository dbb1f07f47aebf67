"""The pictures a round asks about: nobody took them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stillroom.methods.dpdfd.section import DpdfdSection
from stillroom.public.query_mixing import Variety
from stillroom.public.structured_queries import structured_queries
from stillroom.sources.base import Answers

Floats = npt.NDArray[np.float32]


class Queries:
    """Samples of the sketch, random structured pictures, both joined, and those of a generator.

    Guarantee: made of sanitised things and public numbers only.

    Args:
        answers: a source, for samples of its sketch where it has one.
        plan: how many of each kind.
        shape: of one stored record.
        full_scale: the largest value of a stored record.
        generated: pictures of a generator in [0, 1], (count, *shape), by count and seed.
    """

    def __init__(
        self,
        answers: Answers,
        plan: DpdfdSection,
        shape: tuple[int, ...],
        full_scale: float,
        generated: Callable[[int, int], Floats] | None = None,
    ) -> None:
        self._answers, self._plan, self._generated = answers, plan, generated
        self._shape, self._full_scale = tuple(shape), full_scale

    def start(self, number: int) -> int:
        """The seed of a round's draws, apart from those of other rounds."""
        return self._plan.start_seed + 1000 * (number + 1)

    def of_round(self, number: int) -> Tensor:
        """A round's queries, in the units of stored records; rounds are counted from 0."""
        plan, seed, shape, variety = self._plan, self.start(number), self._shape, self._variety
        samples = self.samples(variety.samples, seed)
        if samples is None:
            made = [structured_queries(plan.structured, shape, seed=seed)]
        elif len(shape) == 1:
            made = [samples]  # rows of features are neither retouched nor joined
        else:
            made = [variety.of(samples, seed=seed)]
        if self._generated is not None:
            made.append(self._generated(plan.generated, seed))
        return torch.from_numpy(np.concatenate(made)) * self._full_scale

    def known(self, number: int) -> Tensor | None:
        """The scores of a round's first queries, where the source need not be asked about them."""
        scores = self._answers.sample_scores(self._variety.samples, self.start(number))
        return None if scores is None else torch.from_numpy(scores[: self._plan.samples]).float()

    @property
    def _variety(self) -> Variety:
        plan = self._plan
        return Variety(plan.samples, plan.mixed, plan.structured, plan.candidates)

    def samples(self, count: int, seed: int) -> Floats | None:
        """Pictures of the sketch in [0, 1]; None where there is none."""
        drawn = self._answers.samples(count, seed)
        return None if drawn is None else (drawn / self._full_scale).astype(np.float32)
