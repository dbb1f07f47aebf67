"""RONA (Wang et al. 2019): a small student of a teacher that saw sensitive records.

Algorithm 1: hint learning, then rounds of self learning and distillation. Where the paper adds
noise to a loss, which protects nothing, the answers themselves come through the gate here: those
of a teacher trained with noise, as many as one likes, or those of an ensemble, each of them
charged. Everything in this file is then post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from stillroom.methods.recipe_parts import RonaPart
from stillroom.models.training import (
    NetworkTraining,
    by_logits,
    fitting_temperature,
    softened,
)

Progress = Callable[[int, int], None]


class Source(Protocol):
    """Where answers come from: records as they are stored, and what the teacher says of them."""

    @property
    def rounds(self) -> int:
        """How many rounds it can answer; fewer than planned where the budget ends earlier."""

    def hints(self, epoch: int) -> tuple[Tensor, Tensor]:
        """Records and hints for an epoch of hint learning."""

    def answers(self, number: int, epoch: int, student: nn.Module) -> tuple[Tensor, Tensor]:
        """Records and scores for an epoch of a round; what is asked may depend on the student."""


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
    source: Source,
    numbers: RonaPart,
    guide: Guide | None = None,
    on_epoch: Progress = lambda done, total: None,
) -> None:
    """Algorithm 1: train the student in place; leaves it in eval mode.

    Guarantee: sees public records and sanitised answers only, so it costs nothing.

    Args:
        student: from pictures to logits.
        pictures: from records as they are stored to pictures.
        labelled: for self learning.
        source: for hints and distillation.
        numbers: T_h, R, T_s, T_d, S, S' and the rest.
        guide: for hint learning.
        on_epoch: told after each epoch.
    """
    hint_epochs = numbers.hint_epochs if guide is not None else 0
    total = hint_epochs + source.rounds * (numbers.self_epochs + numbers.distillation_epochs)
    stages = NetworkTraining(
        student,
        pictures,
        epochs=total,
        learning_rate=numbers.learning_rate,
        seed=numbers.start_seed,
        adaptation=None if guide is None else guide.adaptation,
    )
    student.eval()  # before its first epoch it may be asked too
    done = 0
    for epoch in range(hint_epochs):
        assert guide is not None
        x, targets = source.hints(epoch)
        stages.hint(x, targets, numbers.batch, guide.up_to)
        on_epoch(done := done + 1, total)
    for number in range(source.rounds):
        for epoch in range(numbers.self_epochs):
            x, y = labelled.lesson(number * numbers.self_epochs + epoch)
            stages.learn(x, y, numbers.self_batch)
            on_epoch(done := done + 1, total)
        for epoch in range(numbers.distillation_epochs):
            x, scores = source.answers(number, epoch, student)
            stages.distil(x, scores, numbers.batch, _loss(numbers, scores))
            on_epoch(done := done + 1, total)


def _loss(numbers: RonaPart, scores: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    if numbers.loss == "softened" or not len(scores):
        return softened(numbers.temperature or 1.0)
    return by_logits(numbers.temperature or fitting_temperature(scores))


def probabilities(student: nn.Module, pictures: nn.Module, x: Tensor) -> Tensor:
    """The student's probabilities of public records, in double precision."""
    with torch.no_grad():
        parts = [student(pictures(some)) for some in torch.split(x, 1024)]
    return torch.softmax(torch.cat(parts).double(), dim=1)
