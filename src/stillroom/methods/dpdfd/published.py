"""DPDFD as published (Liu et al. 2023): Algorithm 1, with one ordinary teacher or several.

What passes the gate is the noisy gradient g~ alone. y_s = phi_s(D) - gamma g~ is made of it
outside: a target for the student, and for the generator a function of its pictures in which g~ is
a constant. Where it is none (`detached = false`, Algorithm 1 differentiated as it stands), the
generator's gradient has the teacher's Jacobian in it, and noise has no derivative: that derivative
leaves unprotected, and the block's price is infinite (theory.md#dpdfd).

The paper leaves open: L_S is the cross-entropy of the student's probabilities with those of y_s;
both networks step from the same forward pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from stillroom.gate import Passage
from stillroom.methods.dpdfd.published_plan import DERIVATIVES, GRADIENTS, STEPS, PublishedPlan
from stillroom.private.output_gradients import FINE_GRID, PlainTeachers, TermBound
from stillroom.public.data_free_losses import (
    decoupled_loss,
    generator_loss,
    logits_and_features,
    soft_cross_entropy,
)
from stillroom.public.generators import Generator, latents
from stillroom.randomness import seeded_torch

OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


@dataclass(frozen=True)
class Taught:
    """How far the training came.

    Args:
        iterations: those whose gradients were answered and followed.
        finished: whether all that were planned were.
        broken_at: the iteration that left a number which is not finite; networks are as they were
            before it, and nothing was asked after it.
    """

    iterations: int
    finished: bool
    broken_at: int | None = None


def train(
    student: nn.Module,
    generator: Generator,
    teachers: PlainTeachers,
    plan: PublishedPlan,
    passages: Mapping[str, Passage],
    on_step: Callable[[int], None] = lambda iteration: None,
) -> Taught:
    """Algorithm 1: train student and generator in place; leaves them in eval mode.

    Where a passage has no answers left, training ends. A run that was cut off replays the answers
    it had paid for and goes on.

    Guarantee: the price of the passages' block: infinite where g~ is not detached.
    Assumes: student and generator saw nothing.

    Args:
        student: from pictures to logits.
        generator: from latent numbers to pictures.
        teachers: asked through the passages only.
        plan: the numbers.
        passages: those of `plan.requests(...)`, by name.
        on_step: told after each iteration how many there were.
    """
    # A student of one's own may have dropout: a replay must drop the same.
    with seeded_torch(plan.start_seed, "published"):
        student.train()
        generator.train()
        taught = _algorithm_1(_Algorithm(student, generator, teachers, plan, passages), on_step)
    student.eval()
    generator.eval()
    return taught


def _algorithm_1(own: _Algorithm, on_step: Callable[[int], None]) -> Taught:
    planned, done = own.plan.part.iterations, 0
    try:
        while done < planned and own.ready:
            own.iterate(done)
            on_step(done := done + 1)
        own.forward(done)
    except _NotFiniteError as broken:
        return Taught(broken.good, finished=False, broken_at=broken.good + 1)
    return Taught(done, finished=done == planned)


class _NotFiniteError(ArithmeticError):
    """A number is not finite any more, after so many good iterations."""

    def __init__(self, good: int) -> None:
        super().__init__(good)
        self.good = good


class _Algorithm:
    """One run of Algorithm 1, iteration by iteration."""

    def __init__(
        self,
        student: nn.Module,
        generator: Generator,
        teachers: PlainTeachers,
        plan: PublishedPlan,
        passages: Mapping[str, Passage],
    ) -> None:
        self.student, self.generator, self.teachers = student, generator, teachers
        self.plan, self.passages, part = plan, passages, plan.part
        rates = part.student_rate, plan.generator.learning_rate
        self._networks = student, generator
        self._optimisers = [
            OPTIMISERS[part.optimiser](network.parameters(), lr=rate)
            for network, rate in zip(self._networks, rates, strict=True)
        ]
        self._rule = TermBound(
            part.bound,
            STEPS,
            together=part.reading == "batch",
            normalised=part.operation == "normalise",
            stability=part.stability,
        )
        self._kept = [copied(network) for network in self._networks]

    @property
    def ready(self) -> bool:
        """Whether another iteration is paid for."""
        rows = self.plan.rows
        return self.passages[GRADIENTS].ahead(rows) == rows and (
            self.plan.part.detached or self.passages[DERIVATIVES].ahead(1) == 1
        )

    def iterate(self, t: int) -> None:
        """Lines 2 to 14."""
        part = self.plan.part
        pictures, said, features = self.forward(t)
        g = self.noisy_gradient(t, pictures, said).requires_grad_()
        target = (said - part.gamma * g).detach()
        student_loss = soft_cross_entropy(said, target)
        own = torch.autograd.grad(student_loss, weights_of(self.student), retain_graph=True)
        numbers = self.plan.generator
        aim = generator_loss(
            said,
            features,
            numbers.alpha,
            numbers.beta,
            one_hot=numbers.one_hot,
            entropy=part.entropy,
            activation=part.activation,
        )
        drawn = self.generator_gradient(t, pictures, said, g, aim)
        if not finite([*own, *drawn]):
            raise _NotFiniteError(good=t)
        self._step(t, own, drawn)

    def forward(self, t: int) -> tuple[Tensor, Tensor, Tensor]:
        """Lines 2 and 3, and what the student says; undoes a step after which it says nothing."""
        seed, size = self.plan.start_seed, self.generator.latent
        z = latents(seed, "published", t, count=self.plan.part.batch, size=size)
        pictures = self.generator(z)
        said, features = logits_and_features(self.student, pictures)
        if not finite([pictures, said]):
            self._undo()
            raise _NotFiniteError(good=max(0, t - 1))
        return pictures, said, features

    def _step(self, t: int, *gradients: Sequence[Tensor]) -> None:
        """Lines 12 and 14."""
        self._kept = [copied(network) for network in self._networks]
        for network, optimiser, own in zip(
            self._networks, self._optimisers, gradients, strict=True
        ):
            for weight, gradient in zip(weights_of(network), own, strict=True):
                weight.grad = gradient
            optimiser.step()
        if not finite(weight for network in self._networks for weight in weights_of(network)):
            self._undo()
            raise _NotFiniteError(good=t)

    def _undo(self) -> None:
        for network, state in zip(self._networks, self._kept, strict=True):
            network.load_state_dict(state)

    def noisy_gradient(self, t: int, pictures: Tensor, said: Tensor) -> Tensor:
        """Lines 4 to 9: g~, one row for the batch, or one per picture."""
        queries, outputs = pictures.detach(), said.detach()
        told = self.passages[GRADIENTS].answer(
            question(t, queries, outputs),
            lambda: self.teachers.gradients(queries, outputs, self._loss, self._rule),
        )
        scale = self.plan.part.bound / (STEPS * self.plan.terms)
        return torch.from_numpy(told.value * scale).to(said.dtype)

    def generator_gradient(
        self, t: int, pictures: Tensor, said: Tensor, g: Tensor, aim: Tensor | float
    ) -> list[Tensor]:
        """Line 14: of L_S + L_G, with g~ a constant, or with the derivative it has by the teacher.

        Args:
            t: the iteration.
            pictures: of the generator.
            said: the student's logits of them.
            g: g~.
            aim: L_G.
        """
        weights, part = weights_of(self.generator), self.plan.part
        loss = soft_cross_entropy(said, said - part.gamma * g) + aim
        *gradients, along = torch.autograd.grad(loss, [*weights, g], retain_graph=True)
        if part.detached:
            return gradients
        direction = along * (part.bound / self.plan.terms)
        queries, outputs = pictures.detach(), said.detach()
        told = self.passages[DERIVATIVES].answer(
            question(t, queries, outputs, direction),
            lambda: self.teachers.open_derivative(
                queries, outputs, self._loss, self._rule, direction
            ),
        )
        numbers = torch.from_numpy(told.value.ravel() / FINE_GRID).to(said.dtype)
        of_pictures, of_said = numbers[: pictures.numel()], numbers[pictures.numel() :]
        more = torch.autograd.grad(
            [pictures, said],
            weights,
            [of_pictures.reshape(pictures.shape), of_said.reshape(said.shape)],
        )
        return [one + other for one, other in zip(gradients, more, strict=True)]

    def _loss(self, said: Tensor, taught: Tensor) -> Tensor:
        """L_T, with the teacher's best class as the target."""
        part = self.plan.part
        return decoupled_loss(
            said, taught, part.temperature, part.target_weight, part.others_weight
        )


def copied(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def weights_of(network: nn.Module) -> list[nn.Parameter]:
    return list(network.parameters())


def finite(tensors: Iterable[Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def question(t: int, *public: Tensor) -> bytes:
    """Which iteration it is, and all that its answer depends on beside the teachers."""
    digest = hashlib.sha256()
    for tensor in public:
        digest.update(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
    return f"published {t} ".encode() + digest.digest()
