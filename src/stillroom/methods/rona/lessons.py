"""What RONA's student is shown when, by free answers and by paid ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.methods.rona.algorithm import probabilities
from stillroom.methods.rona.public_part import PublicPart
from stillroom.public.composites import composites
from stillroom.public.query_groups import group
from stillroom.public.selection import select
from stillroom.randomness import order
from stillroom.sources import Answers

if TYPE_CHECKING:
    from stillroom.methods.rona import RonaRecipe

HINT_MAPS = 2000
"""Public records that a teacher's map to the public hints is fitted on, at most."""


class Hinting:
    """The public network that hints are centred on, and their shape."""

    def __init__(self, public: PublicPart, network: nn.Module, shape: tuple[int, ...]) -> None:
        self._public, self._network, self.shape = public, network, shape

    def of(self, x: Tensor) -> Tensor:
        """What its hint layer says of public records."""
        return self._public.hints(self._network, self.shape, x)

    def flat(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The same as rows of numbers."""
        return self.of(torch.from_numpy(np.array(x))).flatten(1).double().numpy()


class FreeLessons:
    """What a sanitised teacher says of public pictures, in as many views as needed, and of more.

    Args:
        answers: a source that is asked without limit.
        public: its pictures are asked about.
        hinting: the public network that gives hints.
    """

    def __init__(self, answers: Answers, public: PublicPart, hinting: Hinting | None) -> None:
        self.rounds = public.part.rounds
        self._ask, self._public, self._hinting = answers, public, hinting
        self._seen = public.seen()
        self._extras = torch.from_numpy(self._made())
        self._on_extras = self._scores(self._extras) if len(self._extras) else None
        self._on_views: dict[int, Tensor] = {}

    def _scores(self, x: Tensor) -> Tensor:
        return torch.from_numpy(self._ask.scores(x.numpy()).values).float()

    def _made(self) -> npt.NDArray[Any]:
        """Pictures nobody took: composites of public ones, and samples of the sketch."""
        x, part = np.array(self._public.x), self._public.part
        made = [x[:0]]
        if part.composites:
            made.append(composites(x, part.composites, seed=part.start_seed))
        drawn = self._ask.samples(part.samples, part.start_seed + 2) if part.samples else None
        if drawn is not None:
            whole = np.issubdtype(x.dtype, np.integer)
            made.append((np.rint(drawn) if whole else drawn).astype(x.dtype))
        return np.concatenate(made)

    def hints(self, epoch: int) -> tuple[Tensor, Tensor]:
        """A view of the public pictures, and what the hint layer says of it."""
        assert self._hinting is not None
        x = self._seen[epoch % len(self._seen)]
        return x, self._hinting.of(x)

    def answers(self, number: int, epoch: int, student: nn.Module) -> tuple[Tensor, Tensor]:
        """A view of the public pictures, and all extras, with the teacher's logits."""
        view = (number * self._public.part.distillation_epochs + epoch) % len(self._seen)
        if view not in self._on_views:
            self._on_views[view] = self._scores(self._seen[view])
        if self._on_extras is None:
            return self._seen[view], self._on_views[view]
        scores = torch.cat([self._on_views[view], self._on_extras])
        return torch.cat([self._seen[view], self._extras]), scores

    def state(self) -> dict[str, Any]:
        """Nothing: to ask again costs nothing, whatever is asked."""
        return {}

    def restore(self, state: Mapping[str, Any], *, hinted: bool) -> None:
        """Nothing was kept."""


class PaidLessons:
    """A source that is asked a few questions per round, as many as were paid for.

    Args:
        recipe: its numbers.
        answers: a source whose answers are charged.
        paid: votes that were paid for.
        public: what is asked about.
        hinting: the public network that hints are centred on.
    """

    def __init__(
        self,
        recipe: RonaRecipe,
        answers: Answers,
        paid: int,
        public: PublicPart,
        hinting: Hinting | None,
    ) -> None:
        assert recipe.teachers is not None
        self._source, self._teachers, self._public = answers, recipe.teachers, public
        self._hinting, self._seen = hinting, public.seen()
        rounds, size = public.part.rounds, len(public.x)
        self._per_round = min(-(-recipe.teachers.questions // rounds), size)
        self.rounds = max(1, min(rounds, -(-paid // self._per_round)))
        self._asked = np.zeros(0, dtype=np.int64)
        self._scores = np.zeros((0, public.classes))
        self._hints: tuple[Tensor, Tensor] | None = None
        self._questions: list[npt.NDArray[np.int64]] = []

    def hints(self, epoch: int) -> tuple[Tensor, Tensor]:
        """The pictures that were asked about, at random, and the noisy hints on them."""
        if self._hints is None:
            assert self._hinting is not None
            public, hinting = self._public, self._hinting
            places = order(public.part.start_seed, "hint queries", size=len(public.x))
            x, known = public.x[places[: self._teachers.hints]], public.labelled.x[:HINT_MAPS]
            told = self._source.hints(x, hinting.flat(x), known, hinting.flat(known))
            shaped = torch.from_numpy(told).float().reshape(len(told), *hinting.shape)
            self._hints = torch.from_numpy(np.array(x[: len(told)])), shaped
        return self._hints

    def answers(self, number: int, epoch: int, student: nn.Module) -> tuple[Tensor, Tensor]:
        """A view of every picture asked so far, with its noisy scores."""
        if epoch == 0:
            self._ask(number, student)
            if number == self.rounds - 1:
                self._source.close()
        count = number * self._public.part.distillation_epochs + epoch
        view = self._seen[count % len(self._seen)]
        return view[self._asked], torch.from_numpy(self._scores).float()

    def state(self) -> dict[str, Any]:
        """The questions of each round."""
        return {"questions": [torch.from_numpy(asked) for asked in self._questions]}

    def restore(self, state: Mapping[str, Any], *, hinted: bool) -> None:
        """Ask the same questions in the same order: their answers are replayed."""
        if hinted:
            self.hints(0)
        for asked in state["questions"]:
            self._put(asked.numpy())
        if len(self._questions) == self.rounds:
            self._source.close()

    def _ask(self, number: int, student: nn.Module) -> None:
        public, seed = self._public, self._public.part.start_seed
        if self._teachers.grouped:
            # Each round's groups follow the student as it is then; the last word counts.
            self._put(group(public.features(student), self._per_round, seed=seed + number))
            return
        new = np.setdiff1d(np.arange(len(public.x)), self._asked)
        count = min(self._per_round, len(new))
        chances = probabilities(student, public.pictures, self._seen[0][new]).numpy()
        self._put(new[select(public.part.selection, chances, count, seed=seed, round=number)])

    def _put(self, question: npt.NDArray[np.int64]) -> None:
        """Put the groups of all records, or some records, to the source."""
        x = self._public.x
        self._questions.append(question)
        if self._teachers.grouped:
            told = self._source.scores(x, question)
            self._asked, self._scores = told.answered, told.values
            return
        told = self._source.scores(x[question])
        self._asked = np.concatenate([self._asked, question[told.answered]])
        self._scores = np.concatenate([self._scores, told.values])
