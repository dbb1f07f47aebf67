"""What a student of a sanitised teacher is shown: pictures that nobody took, round after round.

Each round asks about fresh queries: samples of the sketch, random structured pictures, and both
joined. Some are moved to where student and teacher disagree. A bank keeps the last rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.errors import BadInput
from stillroom.methods.dpdfd.queries import Queries
from stillroom.methods.dpdfd.section import DpdfdSection
from stillroom.models import AsPictures
from stillroom.models.training import NetworkTraining, by_logits, fitting_temperature
from stillroom.public.refinement import Refinement
from stillroom.randomness import order, uniforms
from stillroom.sources.base import Answers

LOGIT_SHARE = 1.0
"""Of the squared distance of logits in the loss: what a query that looks like nothing can tell is
how all classes rank."""
CODES = 255
"""A bank keeps eight bits per value, as most pictures have."""
TOGETHER = 50
"""Queries that are refined at once."""


class Lessons:
    """A student, its teacher's answers and its bank; one call per round.

    Guarantee: sees sanitised things and public numbers only, so it costs nothing.

    Args:
        student: trained in place, from pictures to logits; in eval mode between rounds.
        pictures: from stored records to what the student reads.
        answers: asked without limit; its network is differentiated through, where it has one.
        queries: what each round asks about.
        plan: the numbers.
    """

    def __init__(
        self,
        student: nn.Module,
        pictures: AsPictures,
        answers: Answers,
        queries: Queries,
        plan: DpdfdSection,
    ) -> None:
        # Channels last: a convolution on a processor takes half the time.
        student.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.student = student
        self._answers, self._queries, self._plan = answers, queries, plan
        self._shape, self._full_scale = pictures.shape, pictures.full_scale
        self._decoded = nn.Sequential(_Codes(self._full_scale), pictures)
        self._whole = nn.Sequential(pictures, student)
        self.done = 0
        self._temperature: float | None = None
        self._x = torch.zeros(0, *self._shape, dtype=torch.uint8)
        self._scores = torch.zeros(0, 0)
        self._training = NetworkTraining(
            student,
            self._decoded,
            epochs=plan.rounds * plan.epochs,
            learning_rate=plan.learning_rate,
            seed=plan.start_seed,
        )

    def round(self, on_step: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Fresh queries, the teacher's word on them, and some passes over the bank.

        Args:
            on_step: told how many passes of this round are done.

        Raises:
            BadInput: a query or the loss is not a number; the student is as it was before.
        """
        good = copy.deepcopy(self.student.state_dict())
        try:
            known = self._queries.known(self.done)
            first = 0 if known is None else len(known)
            x = self._refined(self._queries.of_round(self.done), first)
            self._keep(x, known)
            assert self._temperature is not None
            loss = by_logits(self._temperature, LOGIT_SHARE)
            for epoch in range(self._plan.epochs):
                self._training.distil(self._x, self._scores, self._plan.batch, loss, balanced=True)
                on_step(epoch + 1, self._plan.epochs)
        except BadInput as error:
            self.student.load_state_dict(good)
            error.where = f"round {self.done + 1}, {error.where}"
            raise
        self.done += 1

    def state(self) -> dict[str, Any]:
        """Everything the next round depends on."""
        return {
            "done": self.done,
            "training": self._training.state(),
            "temperature": self._temperature,
            "bank": self._x,
            "scores": self._scores,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same plan."""
        self.done, self._temperature = state["done"], state["temperature"]
        self._x, self._scores = state["bank"], state["scores"]
        self._training.restore(state["training"])

    def latest(self, count: int) -> npt.NDArray[np.float32]:
        """Some of the last queries, in the units of stored records."""
        latest: npt.NDArray[np.float32] = self._decoded[0](self._x[-count:]).numpy()
        return latest

    def _refined(self, x: Tensor, first: int) -> Tensor:
        """A share of the queries is moved; the first ones, whose scores are known, stay."""
        plan, teacher, seed = self._plan, self._answers.network, self._queries.start(self.done)
        count = round(plan.refined * (len(x) - first))
        if self.done == 0 or teacher is None or not count:
            return x
        which = first + torch.from_numpy(order(seed, "refined", size=len(x) - first)[:count])
        length = torch.from_numpy(uniforms(seed, "length", size=count)).float()
        length *= plan.refinement_length
        move = Refinement(teacher, self._whole, self._shape, self._full_scale, plan.frequencies)
        for at, far in zip(
            torch.split(which, TOGETHER), torch.split(length, TOGETHER), strict=True
        ):
            x[at] = move.moved(x[at], far, plan.refinement_steps)
        return x

    def _keep(self, x: Tensor, known: Tensor | None) -> None:
        """Into the bank, with the teacher's word, known or asked for; the oldest queries leave."""
        if not torch.isfinite(x).all():
            raise BadInput(
                "a query is not a number",
                where="queries",
                why="the student would learn nothing more",
                remedy="lower dpdfd.refinement_length, or look at the teacher's weights",
            )
        codes = (x * (CODES / self._full_scale)).round().clamp(0, CODES).to(torch.uint8)
        first = 0 if known is None else len(known)
        asked = self._decoded[0](codes[first:]).numpy()
        scores = torch.from_numpy(self._answers.scores(asked).values).float()
        if known is not None:
            scores = torch.cat([known, scores.reshape(-1, known.shape[1])])
        if self._temperature is None:
            self._temperature = fitting_temperature(scores)
        old = self._scores if len(self._scores) else scores[:0]
        self._x = torch.cat([self._x, codes])[-self._plan.bank :]
        self._scores = torch.cat([old, scores])[-self._plan.bank :]


class _Codes(nn.Module):
    """From the bank's eight bits back to stored units."""

    def __init__(self, full_scale: float) -> None:
        super().__init__()
        self._step = full_scale / CODES

    def forward(self, codes: Tensor) -> Tensor:
        return codes.to(torch.float32) * self._step


def teach(
    student: nn.Module,
    pictures: AsPictures,
    answers: Answers,
    queries: Queries,
    plan: DpdfdSection,
    *,
    state: Mapping[str, Any] | None = None,
    on_round: Callable[[int, Lessons], None] = lambda done, lessons: None,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> nn.Module:
    """The student after all rounds, or after those that a state leaves.

    Guarantee: sees sanitised things and public numbers only, so it costs nothing.

    Args:
        student: trained in place, from pictures to logits.
        pictures: from stored records to what the student reads.
        answers: asked without limit.
        queries: what each round asks about.
        plan: the numbers.
        state: of the last round that was finished, from `Lessons.state`.
        on_round: told how many rounds are done, and given the lessons, to keep their state.
        on_step: told how many passes are done, and of how many.

    Raises:
        BadInput: no query can be made, or a query or the loss is not a number.
    """
    lessons = Lessons(student, pictures, answers, queries, plan)
    if state is not None:
        lessons.restore(state)
    total = plan.rounds * plan.epochs
    while lessons.done < plan.rounds:
        before = lessons.done * plan.epochs
        lessons.round(lambda done, _: on_step(before + done, total))  # noqa: B023 (called at once)
        on_round(lessons.done, lessons)
    return student
