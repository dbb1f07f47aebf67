"""RONA as published (Wang et al. 2019): Algorithm 1 with one ordinary teacher, in two readings.

literal: Algorithm 2 adds noise to a batch loss. The noise never reaches the gradient, which is a
function of the teacher's own answers; these leave unprotected and the block's price is infinite.

residual (R3, theory.md#rona-as-published): the difference between student and teacher over a batch
is clipped to B as one vector, noised, and back-propagated as it comes: grad = J^T e. What follows
the gate is post-processing, so this is sound for one teacher, with D = 2B.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.gate import Passage
from stillroom.methods.rona.losses import (
    adaptation,
    distill_loss,
    hint_loss,
    in_shape,
    matched,
    self_loss,
)
from stillroom.methods.rona.published_plan import HINTS, LOSSES, OUTPUTS, STEPS, PublishedPlan
from stillroom.methods.rona.published_stage import Stage
from stillroom.private.plain import PlainTeacher
from stillroom.public.selection import select
from stillroom.randomness import order, seeded_torch
from stillroom.vocabulary import Integers


@dataclass(frozen=True)
class Taught:
    """How far the training came.

    Args:
        calls: answered batches.
        finished: whether all that were planned were answered.
    """

    calls: int
    finished: bool


def hint_width(
    student: nn.Sequential, auxiliary: nn.Sequential, plan: PublishedPlan, shape: tuple[int, ...]
) -> int:
    """Numbers in one hint, in the shape in which it meets the student's guided layer."""
    return math.prod(matched(*_layer_shapes(student, auxiliary, plan, shape)))


def train(
    student: nn.Sequential,
    teacher: PlainTeacher,
    auxiliary: nn.Sequential,
    x: torch.Tensor,
    y: torch.Tensor,
    plan: PublishedPlan,
    passages: Mapping[str, Passage],
    on_step: Callable[[int], None] = lambda call: None,
) -> Taught:
    """Algorithm 1: train the student in place; leaves it in eval mode.

    Where a passage has no answers left its stage ends; without answers for distillation, training
    does. A run that was cut off replays the answers it had paid for and goes on.

    Guarantee: the price of the passages' block: infinite in the literal reading.
    Assumes: `student` and `auxiliary` saw public records only; teacher and auxiliary are of one
    make; `x` and `y` are public.

    Args:
        student: a sequence of blocks that gives logits.
        teacher: asked through the passages only.
        auxiliary: the teacher's network, trained on public samples; only its losses are used.
        x: the public samples, as networks are given them.
        y: their labels.
        plan: the numbers.
        passages: those of `plan.requests(...)`, by name.
        on_step: told after each answered batch how many there were.

    Raises:
        BadInput: a layer does not exist, the queries do not fill a batch, or the student's loss is
            not a number.
    """
    auxiliary.eval()
    student.train()
    # A student of one's own may have dropout: a replay must drop the same.
    with seeded_torch(plan.rona.start_seed, "student"):
        calls = _algorithm_1(student, teacher, auxiliary, x, y, plan, passages, on_step)
    student.eval()
    return Taught(calls, finished=calls == plan.calls(len(x)))


def _algorithm_1(
    student: nn.Sequential,
    teacher: PlainTeacher,
    auxiliary: nn.Sequential,
    x: torch.Tensor,
    y: torch.Tensor,
    plan: PublishedPlan,
    passages: Mapping[str, Passage],
    on_step: Callable[[int], None],
) -> int:
    seed, size, calls = plan.rona.start_seed, plan.asked(len(x)), 0
    if plan.rona.hint_epochs:
        hints = _hint_stage(student, teacher, auxiliary, plan, tuple(x.shape[1:]), passages)
        for epoch in range(plan.rona.hint_epochs):
            queries = order(seed, "hint queries", epoch, size=len(x))[:size]
            for i in range(plan.batches(len(x))):
                if not hints.ready:
                    break
                hints.call(x[_batch(queries, plan.rona.batch, seed, "hint", epoch, i)])
                on_step(calls := calls + 1)
    distillation = _distillation_stage(student, teacher, auxiliary, plan, passages)
    for round in range(plan.rona.rounds):
        for epoch in range(plan.rona.self_epochs):
            for i in range(len(x) // plan.rona.self_batch + 1):
                place = _batch(
                    np.arange(len(x)), plan.rona.self_batch, seed, "self", round, epoch, i
                )
                distillation.descend(self_loss(student(x[place]), y[place]))
        for epoch in range(plan.rona.distillation_epochs):
            if not distillation.ready:
                return calls
            number = round * plan.rona.distillation_epochs + epoch
            queries = select(
                plan.rona.selection, _probabilities(student, x), size, seed=seed, round=number
            )
            for i in range(plan.batches(len(x))):
                if not distillation.ready:
                    return calls
                distillation.call(x[_batch(queries, plan.rona.batch, seed, "distill", number, i)])
                on_step(calls := calls + 1)
    return calls


def _hint_stage(
    student: nn.Sequential,
    teacher: PlainTeacher,
    auxiliary: nn.Sequential,
    plan: PublishedPlan,
    shape: tuple[int, ...],
    passages: Mapping[str, Passage],
) -> Stage:
    guided, hint = _layer_shapes(student, auxiliary, plan, shape)
    target, (layer, guided_layer) = matched(guided, hint), plan.layers
    with seeded_torch(plan.rona.start_seed, "adaptation"):
        adapt = adaptation(guided, hint)
    up_to, hinting = student[:guided_layer], auxiliary[:layer]
    return Stage(
        HINTS,
        plan,
        _of(passages, HINTS, plan),
        says=lambda batch: adapt(up_to(batch)),
        auxiliary=lambda batch: in_shape(hinting(batch), target),
        words=lambda said: said,
        loss=hint_loss,
        outputs=lambda batch: teacher.hints(batch, layer, target),
        residual=lambda batch, words, bound: teacher.residual(
            batch, words, bound=bound, steps=STEPS, layer=layer
        ),
        weights=[*up_to.parameters(), *adapt.parameters()],
    )


def _distillation_stage(
    student: nn.Sequential,
    teacher: PlainTeacher,
    auxiliary: nn.Sequential,
    plan: PublishedPlan,
    passages: Mapping[str, Passage],
) -> Stage:
    return Stage(
        OUTPUTS,
        plan,
        _of(passages, OUTPUTS, plan),
        says=student,
        auxiliary=auxiliary,
        words=lambda logits: torch.softmax(logits / plan.temperature, dim=1),
        loss=lambda logits, taught: distill_loss(logits, taught, plan.temperature),
        outputs=teacher.outputs,
        residual=lambda batch, words, bound: teacher.residual(
            batch, words, bound=bound, steps=STEPS, temperature=plan.temperature
        ),
        weights=student.parameters(),
    )


def _of(passages: Mapping[str, Passage], name: str, plan: PublishedPlan) -> list[Passage]:
    """The passages a stage needs, in order; none where one was not paid for."""
    names = [name, LOSSES] if plan.literal else [name]
    return [passages[each] for each in names] if all(each in passages for each in names) else []


def _layer_shapes(
    student: nn.Sequential, auxiliary: nn.Sequential, plan: PublishedPlan, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of the guided and of the hint layer, by a record of zeros."""
    shapes = []
    for name, network, layer in (
        ("guided_layer", student, plan.layers[1]),
        ("hint_layer", auxiliary, plan.layers[0]),
    ):
        if layer > len(network):
            raise BadInput(
                f"there is no block {layer} in a network of {len(network)}",
                where=name,
                why="hints are taken from the output of a block",
                remedy="name a block of the network, counted from 1",
            )
        with torch.no_grad():
            shapes.append(tuple(network[:layer](torch.zeros(1, *shape)).shape[1:]))
    return shapes[0], shapes[1]


def _batch(places: Integers, size: int, seed: int, *names: str | int) -> npt.NDArray[np.int64]:
    """A batch of `size` of the places, each at most once."""
    return places[order(seed, "batch", *names, size=len(places))[:size]]


def _probabilities(student: nn.Sequential, x: torch.Tensor) -> npt.NDArray[np.float64]:
    student.eval()
    with torch.no_grad():
        logits = torch.cat([student(some) for some in torch.split(x, 1024)])
    student.train()
    return torch.softmax(logits.double(), dim=1).numpy()
