"""What a student of a sanitised teacher is shown: pictures that nobody took, round after round.

Each round asks about fresh queries: samples of the sketch, random structured pictures, and both
joined. Some are moved to where student and teacher disagree. A bank keeps the last rounds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from stillroom.errors import BadInput
from stillroom.models.training import NetworkTraining, by_logits, fitting_temperature
from stillroom.public.query_mixing import lookalikes, mixed_queries, retouched
from stillroom.public.refinement import Refinement
from stillroom.public.structured_queries import structured_queries
from stillroom.randomness import order, uniforms
from stillroom.sources.base import Answers

LOGIT_SHARE = 1.0
"""Of the squared distance of logits in the loss: what a query that looks like nothing can tell is
how all classes rank."""
CODES = 255
"""A bank keeps eight bits per value, as most pictures have."""
TOGETHER = 50
"""Queries that are refined at once."""
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LessonPlan:
    """How a student is taught; all numbers are public.

    Args:
        rounds: of fresh queries.
        samples: queries per round that are samples of the sketch; none where there is no sketch.
        structured: queries per round that are random shapes, curves and clouds.
        candidates: random pictures that each of these is chosen from, for its likeness to a sample.
        mixed: queries per round that join a sample with another, or with a structured one.
        refined: share of a round's queries that are moved to where student and teacher disagree,
            from the second round on.
        refinement_length: the longest way of a refined query, root mean square per pixel, as a
            share of white.
        refinement_steps: gradient steps on that way.
        frequencies: cosines per side and channel that a step may move, from the lowest on.
        bank: queries that are kept, the latest ones.
        epochs: passes over the bank per round.
        batch: queries per step.
        learning_rate: the highest of its one cycle.
        start_seed: of queries, order and refinement.
    """

    rounds: int = 10
    samples: int = 2500
    structured: int = 1500
    candidates: int = 8
    mixed: int = 4000
    refined: float = 0.2
    refinement_length: float = 0.1
    refinement_steps: int = 1
    frequencies: int = 150
    bank: int = 40_000
    epochs: int = 2
    batch: int = 128
    learning_rate: float = 3e-3
    start_seed: int = 0


class Lessons:
    """A student, its teacher's answers and its bank; one call per round.

    Guarantee: sees sanitised things and public numbers only, so it costs nothing.

    Args:
        student: trained in place, from pictures to logits; in eval mode between rounds.
        pictures: from stored records to what the student reads.
        answers: asked without limit; its network is differentiated through, where it has one.
        plan: the numbers.
        shape: of one stored record.
        full_scale: the largest value of a stored record.

    Raises:
        BadInput: no query can be made of such a shape.
    """

    def __init__(
        self,
        student: nn.Module,
        pictures: nn.Module,
        answers: Answers,
        plan: LessonPlan,
        *,
        shape: tuple[int, ...],
        full_scale: float,
    ) -> None:
        # Channels last: a convolution on a processor takes half the time.
        student.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.student = student
        self._answers, self._plan = answers, plan
        self._shape, self._full_scale = tuple(shape), full_scale
        self._decoded = nn.Sequential(_Codes(full_scale), pictures)
        self._whole = nn.Sequential(pictures, student)
        self.done = 0
        self._temperature: float | None = None
        self._x = torch.zeros(0, *shape, dtype=torch.uint8)
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
            self._keep(self._queries())
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

    def _queries(self) -> Tensor:
        """The round's queries in stored units, some of them refined."""
        plan, seed, shape = self._plan, self._seed, self._shape
        parts = (plan.samples, plan.mixed, plan.mixed // 2, plan.structured)
        samples = self._samples(sum(parts))
        if samples is None:
            made = structured_queries(plan.structured, shape, seed=seed)
        else:
            plain, one, other, wanted = np.split(samples, np.cumsum(parts)[:-1])
            size = max(plan.candidates * plan.structured, plan.mixed)
            pool = structured_queries(size, shape, seed=seed)
            likely = lookalikes(pool, wanted)
            other = np.concatenate([other, pool[: plan.mixed - len(other)]])
            mixed = mixed_queries(one, other, seed=seed)
            made = np.concatenate([retouched(plain, seed=seed), mixed, likely])
        return self._refined(torch.from_numpy(made) * self._full_scale)

    def _samples(self, count: int) -> Floats | None:
        drawn = self._answers.samples(count, self._seed)
        return None if drawn is None else (drawn / self._full_scale).astype(np.float32)

    @property
    def _seed(self) -> int:
        """Of this round's queries, apart from those of other rounds."""
        return self._plan.start_seed + 1000 * (self.done + 1)

    def _refined(self, x: Tensor) -> Tensor:
        plan, teacher = self._plan, self._answers.network
        count = round(plan.refined * len(x))
        if self.done == 0 or teacher is None or not count:
            return x
        which = torch.from_numpy(order(self._seed, "refined", size=len(x))[:count])
        length = torch.from_numpy(uniforms(self._seed, "length", size=count)).float()
        length *= plan.refinement_length
        move = Refinement(teacher, self._whole, self._shape, self._full_scale, plan.frequencies)
        for at, far in zip(
            torch.split(which, TOGETHER), torch.split(length, TOGETHER), strict=True
        ):
            x[at] = move.moved(x[at], far, plan.refinement_steps)
        return x

    def _keep(self, x: Tensor) -> None:
        """Into the bank, with the teacher's word; the oldest queries leave."""
        if not torch.isfinite(x).all():
            raise BadInput(
                "a query is not a number",
                where="queries",
                why="the student would learn nothing more",
                remedy="lower dpdfd.refinement_length, or look at the teacher's weights",
            )
        codes = (x * (CODES / self._full_scale)).round().clamp(0, CODES).to(torch.uint8)
        asked = self._decoded[0](codes).numpy()
        scores = torch.from_numpy(self._answers.scores(asked).values).float()
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
    pictures: nn.Module,
    answers: Answers,
    plan: LessonPlan,
    *,
    shape: tuple[int, ...],
    full_scale: float,
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
        plan: the numbers.
        shape: of one stored record.
        full_scale: the largest value of a stored record.
        state: of the last round that was finished, from `Lessons.state`.
        on_round: told how many rounds are done, and given the lessons, to keep their state.
        on_step: told how many passes are done, and of how many.

    Raises:
        BadInput: no query can be made, or a query or the loss is not a number.
    """
    lessons = Lessons(student, pictures, answers, plan, shape=shape, full_scale=full_scale)
    if state is not None:
        lessons.restore(state)
    total = plan.rounds * plan.epochs
    while lessons.done < plan.rounds:
        before = lessons.done * plan.epochs
        lessons.round(lambda done, _: on_step(before + done, total))  # noqa: B023 (called at once)
        on_round(lessons.done, lessons)
    return student
