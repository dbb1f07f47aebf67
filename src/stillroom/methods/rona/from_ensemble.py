"""RONA with source ensemble (RONA-E): teachers on disjoint shards, each answer charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.data import PublicPictures, Split
from stillroom.engine import Engine
from stillroom.errors import BadInput
from stillroom.gate import Passage
from stillroom.methods.learners import LinearLearner
from stillroom.methods.outcome import Outcome
from stillroom.methods.recipe import Recipe
from stillroom.methods.rona.algorithm import probabilities
from stillroom.methods.rona.answers import EnsembleAnswers
from stillroom.methods.rona.bound import public_bound
from stillroom.methods.rona.ensemble import EnsembleSource
from stillroom.methods.rona.plans import answers_of
from stillroom.methods.rona.public_side import PublicSide, blocks_of
from stillroom.methods.rona.road import Progress, RonaWay, Tell
from stillroom.methods.rona.terms import rounds_paid, votes_a_round
from stillroom.private import Ensemble, Hints
from stillroom.private.ensemble import Rows
from stillroom.public.query_groups import group
from stillroom.public.selection import select
from stillroom.randomness import order
from stillroom.release.compression import report

HINT_MAPS = 2000
"""Public records that a teacher's map to the public hints is fitted on, at most."""
LEAST_PROBABILITY = 1e-6


class FromEnsemble(RonaWay):
    """A student of noisy votes and hints."""

    def __init__(self, recipe: Recipe, split: Split, run_folder: Path) -> None:
        super().__init__(recipe, split, run_folder)
        # Of the learner only its public features are used, those of the teachers.
        self._features = LinearLearner(recipe, split, run_folder)
        assert recipe.teachers is not None
        if recipe.teachers.grouped:
            blocks_of(self.student, "rona.student")
        elif self._plan.votes > len(self.public.x):
            raise BadInput(
                "there are fewer public records than questions that would be paid for",
                where="teachers.votes",
                why="a record is asked about once; the rest would be paid for and never drawn",
                remedy="ask fewer questions, or make more records public",
            )

    @cached_property
    def _plan(self) -> EnsembleAnswers:
        return answers_of(self.recipe, self.public.classes, self.width)

    @property
    def width(self) -> int:
        """Of a hint."""
        return math.prod(self.guide[1]) if self.part.hint_epochs else 1

    def prepare(self, tell: Tell, on_step: Progress) -> None:
        """Public networks, and the teachers: what cannot be trained on is found before paying."""
        super().prepare(tell, on_step)
        tell("teachers")
        self._features.fit(None)
        self._ensemble = Ensemble.train(
            self.split.sensitive,
            self._features.rows,
            self._plan.teachers,
            engine=Engine("serial"),
            on_done=on_step,
        )

    def follow(self, ways: Sequence[Passage], tell: Tell, on_step: Progress) -> Outcome:
        """Algorithm 1, each answer through the gate."""
        source = EnsembleSource(self._plan, self._ensemble, ways)
        del self._ensemble  # the source lets go of the teachers after the last answer
        lessons = PaidAnswers(self.recipe, source, ways[0].count, self.public)
        if self.part.hint_epochs:
            lessons.hinting = (self.auxiliary, self.guide[1], self._features.rows)
        model = self.taught(lessons, tell, on_step)
        auxiliary = self.released(self.auxiliary, f"network `{self.part.auxiliary}`")
        tell("compression")
        return Outcome(
            model=model,
            guesses=self.guesses(model),
            facts={"public records": len(self.public.x)},
            rivals=self.rivals(**{"auxiliary teacher": auxiliary}),
            compression=report(auxiliary, model, self.split.public.classes),
        )


class PaidAnswers:
    """An ensemble that is asked a few questions a round, as many as were paid for.

    Args:
        recipe: its numbers.
        source: the ensemble behind the gate.
        paid: votes that were paid for.
        public: what is asked about.
    """

    hinting: tuple[nn.Module, tuple[int, ...], Rows] | None = None
    """The public network hints are centred on, their shape, and the teachers' features."""

    def __init__(
        self, recipe: Recipe, source: EnsembleSource, paid: int, public: PublicSide
    ) -> None:
        assert recipe.teachers is not None
        self.source, self._part = source, recipe.teachers
        self._public, self._seen = public, public.seen()
        self._a_round = votes_a_round(recipe, len(public.x))
        self.rounds = rounds_paid(recipe, len(public.x), paid)
        self._asked = np.zeros(0, dtype=np.int64)
        self._labels = np.zeros((0, public.classes))
        self._hints: tuple[Tensor, Tensor] | None = None

    def hints(self, epoch: int) -> tuple[Tensor, Tensor]:
        """The pictures that were asked about, at random, and the noisy hints on them."""
        if self._hints is None:
            self._hints = self._ask_hints()
        return self._hints

    def _ask_hints(self) -> tuple[Tensor, Tensor]:
        assert self.hinting is not None
        network, shape, rows = self.hinting
        public, plan = self._public, self.source.plan

        def said(x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
            found = public.hints(network, shape, torch.from_numpy(np.array(x)))
            return found.flatten(1).double().numpy()

        places = order(public.part.start_seed, "hint queries", size=len(public.x))
        x, known = public.x[places[: plan.hints]], public.labelled.x[:HINT_MAPS]
        hints, centre = Hints(known, said(known)), said(x)
        open_to_all = PublicPictures(public.labelled.x, "the labelled public part")
        bound = public_bound(
            plan, open_to_all, public.labelled.y, x, centre, hints, rows=rows, engine=SERIAL
        )
        targets = self.source.hint_targets(x, centre, hints, bound)
        assert targets is not None
        shaped = torch.from_numpy(targets).float().reshape(len(targets), *shape)
        return torch.from_numpy(np.array(x[: len(targets)])), shaped

    def answers(self, number: int, epoch: int, student: nn.Module) -> tuple[Tensor, Tensor]:
        """A view of every picture asked so far, with the logarithms of its noisy labels."""
        if epoch == 0:
            self._ask(number, student)
            if number == self.rounds - 1:
                self.source.close()
        count = number * self._public.part.distillation_epochs + epoch
        view = self._seen[count % len(self._seen)]
        scores = np.log(np.maximum(self._labels, LEAST_PROBABILITY))
        return view[self._asked], torch.from_numpy(scores).float()

    def _ask(self, number: int, student: nn.Module) -> None:
        public, seed = self._public, self._public.part.start_seed
        if self._part.grouped:
            # Each round's groups follow the student as it is then; the last word counts.
            groups = group(public.features(student), self._a_round, seed=seed + number)
            labels = self.source.group_labels(public.x, groups)
            self._asked = np.flatnonzero(groups < len(labels))
            self._labels = labels[groups[self._asked]]
            return
        new = np.setdiff1d(np.arange(len(public.x)), self._asked)
        count = min(self._a_round, len(new))
        chances = probabilities(student, public.pictures, self._seen[0][new]).numpy()
        picks = new[select(public.part.selection, chances, count, seed=seed, round=number)]
        answered, labels = self.source.soft_labels(public.x[picks])
        self._asked = np.concatenate([self._asked, picks[answered]])
        self._labels = np.concatenate([self._labels, labels])


SERIAL = Engine("serial")
"""Ridge teachers are solved faster than workers are started."""
