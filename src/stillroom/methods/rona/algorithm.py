"""RONA (Wang et al. 2019): a small student of a teacher that saw sensitive records.

Algorithm 1: hint learning, then rounds of self learning and distillation. Where the paper adds
noise to a loss, which protects nothing, the answers themselves come through the gate here: those
of a teacher trained with noise, as many as one likes, or those of an ensemble, each of them
charged. Everything in this file is then post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from stillroom.methods.rona.section import RonaSection
from stillroom.models.checkpoints import Checkpoint
from stillroom.models.training import (
    Loss,
    NetworkTraining,
    by_logits,
    fitting_temperature,
    softened,
)

Progress = Callable[[int, int], None]


class Lessons(Protocol):
    """Records as they are stored, and what the teacher says of them, epoch by epoch."""

    @property
    def rounds(self) -> int:
        """How many rounds there are; fewer than planned where the budget ends earlier."""

    def hints(self, epoch: int) -> tuple[Tensor, Tensor]:
        """Records and hints for an epoch of hint learning."""

    def answers(self, number: int, epoch: int, student: nn.Module) -> tuple[Tensor, Tensor]:
        """Records and scores for an epoch of a round; what is asked may depend on the student."""

    def state(self) -> Mapping[str, Any]:
        """What was asked so far; for `restore`."""

    def restore(self, state: Mapping[str, Any], *, hinted: bool) -> None:
        """Ask the same again, which costs nothing, to go on from there.

        Args:
            state: of the same lessons.
            hinted: whether hints were asked for.
        """


class Labelled(Protocol):
    """Public records with labels."""

    def lesson(self, epoch: int) -> tuple[Tensor, Tensor]:
        """Records, as some view of them, and labels."""


@dataclass(frozen=True)
class Guide:
    """The student's guided layer, and how it is brought to the shape of a hint."""

    up_to: nn.Module
    adaptation: nn.Module


def teach(
    student: nn.Module,
    pictures: nn.Module,
    labelled: Labelled,
    lessons: Lessons,
    numbers: RonaSection,
    guide: Guide | None = None,
    on_epoch: Progress = lambda done, total: None,
    kept: Checkpoint | None = None,
) -> None:
    """Algorithm 1: train the student in place; leaves it in eval mode.

    Guarantee: sees public records and sanitised answers only, so it costs nothing.

    Args:
        student: from pictures to logits.
        pictures: from records as they are stored to pictures.
        labelled: for self learning.
        lessons: for hints and distillation.
        numbers: T_h, R, T_s, T_d, S, S' and the rest.
        guide: for hint learning.
        on_epoch: told after each epoch.
        kept: keeps the state now and then; what it has is not done again.
    """
    hint_epochs = numbers.hint_epochs if guide is not None else 0
    total = hint_epochs + lessons.rounds * (numbers.self_epochs + numbers.distillation_epochs)
    training = NetworkTraining(
        student,
        pictures,
        epochs=total,
        learning_rate=numbers.learning_rate,
        seed=numbers.start_seed,
        adaptation=None if guide is None else guide.adaptation,
    )
    student.eval()  # before its first epoch it may be asked too
    if kept is not None and (found := kept.load()) is not None:
        training.restore(found["training"])
        lessons.restore(found["lessons"], hinted=hint_epochs > 0)

    before = 0

    def state() -> dict[str, Any]:
        return {"training": training.state(), "lessons": lessons.state()}

    def passed(epochs: int) -> Iterator[int]:
        """The epochs of a stage that are still to be done; each is kept and told when it ends."""
        nonlocal before
        for epoch in range(epochs):
            if before + epoch >= training.done:
                yield epoch
                if kept is not None:
                    kept.keep(state)
                on_epoch(training.done, total)
        before += epochs

    for epoch in passed(hint_epochs):
        assert guide is not None
        x, targets = lessons.hints(epoch)
        training.hint(x, targets, numbers.batch, guide.up_to)
    for number in range(lessons.rounds):
        for epoch in passed(numbers.self_epochs):
            x, y = labelled.lesson(number * numbers.self_epochs + epoch)
            training.learn(x, y, numbers.self_batch)
        for epoch in passed(numbers.distillation_epochs):
            x, scores = lessons.answers(number, epoch, student)
            training.distil(x, scores, numbers.batch, _loss(numbers, scores))


def _loss(numbers: RonaSection, scores: Tensor) -> Loss:
    if numbers.loss == "softened" or not len(scores):
        return softened(numbers.temperature or 1.0)
    return by_logits(numbers.temperature or fitting_temperature(scores))


def probabilities(student: nn.Module, pictures: nn.Module, x: Tensor) -> Tensor:
    """The student's probabilities of public records, in double precision."""
    with torch.no_grad():
        parts = [student(pictures(some)) for some in torch.split(x, 1024)]
    return torch.softmax(torch.cat(parts).double(), dim=1)
