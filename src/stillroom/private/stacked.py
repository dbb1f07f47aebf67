"""Teachers trained by gradient steps: small ones side by side in a stack, networks one by one.

In a stack every teacher has its own slice of every tensor, and nothing is summed across slices. All
lengths (places per shard, steps, batch) come from the plan, so no shard changes another teacher. A
teacher whose loss is no number is not reported: its answers count as the public default (K10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from stillroom.engine.workers import one_thread
from stillroom.errors import BadInput
from stillroom.models.build import build
from stillroom.models.place_training import order_of_places, train_over_places
from stillroom.randomness import integers
from stillroom.vocabulary import Integers

if TYPE_CHECKING:
    from stillroom.private.ensemble_plan import EnsemblePlan

Floats = npt.NDArray[np.floating]
Rows = npt.NDArray[np.float32]
Arrays = Mapping[str, npt.NDArray[Any]]
Tensors = dict[str, torch.Tensor]

QUERIES = 1024
"""Queries per forward pass: memory, not privacy."""


def train_networks(
    plan: EnsemblePlan,
    features: Sequence[Rows],
    labels: Sequence[Integers],
    first: int,
    classes: int,
    start: Arrays | None,
) -> dict[str, npt.NDArray[Any]]:
    """The weights of some teachers, stacked by name; zeros where a shard is empty.

    Args:
        plan: the public constants.
        features: one array per shard.
        labels: one array per shard.
        first: the number of the first teacher.
        classes: how many classes there are.
        start: public weights to start from.

    Raises:
        BadInput: the start does not fit.
    """
    shape = features[0].shape[1:]
    modules = [
        _fresh(plan, shape, classes, first + offset, start) for offset in range(len(features))
    ]
    with one_thread():
        if plan.one_by_one:
            for offset, module in enumerate(modules):
                train_over_places(
                    module,
                    torch.from_numpy(features[offset]),
                    torch.from_numpy(np.array(labels[offset])),
                    *(plan.training_seed, "teacher", first + offset),
                    places=plan.shard_cap,
                    epochs=plan.epochs,
                    batch=plan.batch,
                    learning_rate=plan.learning_rate,
                )
            states = [dict(module.state_dict()) for module in modules]
            trained = {name: torch.stack([s[name] for s in states]) for name in states[0]}
        else:
            trained = _train_stack(plan, modules, features, labels, first)
    for offset, found in enumerate(features):
        if len(found) == 0:
            for stacked in trained.values():
                stacked[offset] = 0
    return {name: stacked.numpy() for name, stacked in trained.items()}


class Asker:
    """One network that takes the weights of one teacher after another, and answers."""

    def __init__(self, plan: EnsemblePlan, shape: tuple[int, ...], classes: int) -> None:
        self._module = _fresh(plan, shape, classes, 0, None).eval()
        linear = [part for part in self._module.modules() if isinstance(part, nn.Linear)]
        self._last = linear[-1] if linear else None

    def scores(self, state: Arrays, inputs: Floats) -> Rows:
        """The scores of the teacher with these weights, one row per query."""
        return self._ask(state, inputs, lambda batch: self._module(batch))

    def hidden(self, state: Arrays, inputs: Floats) -> Rows:
        """What enters the last linear layer, one row per query.

        Raises:
            BadInput: the network has no linear layer.
        """
        if self._last is None:
            raise BadInput(
                "the network has no linear layer",
                where="teacher",
                why="the hint is what enters the last linear layer",
                remedy="use a network that ends in a linear layer",
            )
        seen: list[torch.Tensor] = []
        hook = self._last.register_forward_pre_hook(lambda _, given: seen.append(given[0]))

        def entering(batch: torch.Tensor) -> torch.Tensor:
            seen.clear()
            self._module(batch)
            return seen[-1].reshape(len(batch), -1)

        try:
            return self._ask(state, inputs, entering)
        finally:
            hook.remove()

    def _ask(
        self, state: Arrays, inputs: Floats, answer: Callable[[torch.Tensor], torch.Tensor]
    ) -> Rows:
        weights = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
        self._module.load_state_dict(weights)
        # Torch aligns its own memory; products may round differently elsewhere.
        own_memory = torch.from_numpy(np.array(inputs, dtype=np.float32)).clone()
        batches = torch.split(own_memory, QUERIES)
        with torch.no_grad(), one_thread():
            answers: Rows = torch.cat([answer(b) for b in batches]).numpy()
        return answers


def _train_stack(
    plan: EnsemblePlan,
    modules: Sequence[nn.Module],
    features: Sequence[Rows],
    labels: Sequence[Integers],
    first: int,
) -> Tensors:
    """All teachers of a stack at once; places without a record have weight zero."""
    count, cap = len(modules), plan.shard_cap
    shape = features[0].shape[1:]
    inputs, present = torch.zeros(count, cap, *shape), torch.zeros(count, cap)
    wanted = torch.zeros(count, cap, dtype=torch.int64)
    for teacher, (found, label) in enumerate(zip(features, labels, strict=True)):
        inputs[teacher, : len(found)] = torch.from_numpy(found)
        wanted[teacher, : len(found)] = torch.from_numpy(np.array(label))
        present[teacher, : len(found)] = 1.0
    weights: Tensors = {
        name: torch.stack([dict(module.named_parameters())[name].detach() for module in modules])
        for name, _ in modules[0].named_parameters()
    }

    def loss(own: Tensors, x: torch.Tensor, y: torch.Tensor, here: torch.Tensor) -> torch.Tensor:
        each = nn.functional.cross_entropy(
            functional_call(modules[0], own, (x,)), y, reduction="none"
        )
        return (each * here).sum() / here.sum().clamp(min=1.0)

    gradients = vmap(grad(loss))
    optimiser = torch.optim.Adam(weights.values(), lr=plan.learning_rate)
    rows = torch.arange(count)[:, None]
    for epoch in range(plan.epochs):
        places = torch.stack([_places(plan, first + teacher, epoch) for teacher in range(count)])
        for chosen in torch.split(places, plan.batch, dim=1):
            picked = inputs[rows, chosen], wanted[rows, chosen], present[rows, chosen]
            moves = gradients(weights, *picked)
            for name, stacked in weights.items():
                stacked.grad = moves[name]
            optimiser.step()
    return weights


def _fresh(
    plan: EnsemblePlan,
    shape: tuple[int, ...],
    classes: int,
    teacher: int,
    start: Arrays | None,
) -> nn.Module:
    """A network with the initial weights of one teacher, keyed by its number."""
    words = plan.training_seed, "teacher", teacher, "weights"
    own = int(integers(*words, size=1, below=2**31)[0])
    module = build(plan.teacher, shape, classes, seed=own)
    if start is not None:
        weights = {name: torch.from_numpy(np.array(array)) for name, array in start.items()}
        try:
            module.load_state_dict(weights)
        except RuntimeError:
            raise BadInput(
                "the weights to start from do not fit the teacher's network",
                where="start",
                why="every teacher must start from the same public weights",
                remedy="take the weights of the same network, trained on public data",
            ) from None
    return module


def _places(plan: EnsemblePlan, teacher: int, epoch: int) -> torch.Tensor:
    """The places of a shard in the order of an epoch, whether a record is there or not."""
    words = plan.training_seed, "teacher", teacher
    return order_of_places(*words, epoch=epoch, places=plan.shard_cap)
