"""One call of RONA's privacy_sanitize and the step that follows it, in both readings."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.gate import Passage
from stillroom.methods.rona.losses import privacy_sanitize
from stillroom.methods.rona.published_plan import STEPS, PublishedPlan
from stillroom.private.plain import bounded_loss, loss_steps
from stillroom.private.unprotected import GRID
from stillroom.vocabulary import Bounded


@dataclass
class Stage:
    """One of the two stages that ask the teacher.

    Args:
        name: of the stage.
        plan: the numbers.
        passages: paid for its answers and, in the literal reading, for noise on its losses.
        says: what the student says of a batch, with its gradient.
        auxiliary: what the auxiliary teacher says.
        words: turns either into what a residual is taken of.
        loss: student and teacher to the batch loss.
        outputs: the teacher's unprotected answer.
        residual: the teacher's clipped residual to the student's words, for a bound.
        weights: that the stage moves.
    """

    name: str
    plan: PublishedPlan
    passages: list[Passage]
    says: Callable[[torch.Tensor], torch.Tensor]
    auxiliary: Callable[[torch.Tensor], torch.Tensor]
    words: Callable[[torch.Tensor], torch.Tensor]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    outputs: Callable[[torch.Tensor], Bounded]
    residual: Callable[[torch.Tensor, npt.NDArray[np.float32], float], Bounded]
    weights: Iterable[nn.Parameter]

    def __post_init__(self) -> None:
        self._optimiser = torch.optim.Adam(self.weights, lr=self.plan.rona.learning_rate)
        self._auxiliary_losses: list[float] = []
        self._calls = 0

    @property
    def ready(self) -> bool:
        """Whether another call is paid for."""
        return bool(self.passages) and all(passage.ahead(1) for passage in self.passages)

    def call(self, batch: torch.Tensor) -> None:
        """One executed call of privacy_sanitize and the step that follows it."""
        self._calls += 1
        (self._literal if self.plan.literal else self._residual)(batch)

    def descend(self, loss: torch.Tensor) -> None:
        """One step of Adam."""
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()

    def _literal(self, batch: torch.Tensor) -> None:
        outputs, losses = self.passages
        said = self.says(batch)
        bound = self._bound(float(self.loss(said.detach(), self._public(batch))))
        told = outputs.answer(self._question(batch), lambda: self.outputs(batch))
        taught = told.value.reshape(said.shape) / GRID
        loss = self.loss(said, torch.from_numpy(taught.astype(np.float32)))
        number = float(loss.detach())
        noised = losses.answer(self._question(batch), lambda: bounded_loss(number, bound, STEPS))
        noise = (noised.value.item() - loss_steps(number, bound, STEPS)) * bound / STEPS
        self.descend(privacy_sanitize(loss, bound, noise, detached=self.plan.published.detached))

    def _residual(self, batch: torch.Tensor) -> None:
        (residuals,) = self.passages
        said = self.says(batch)
        words = self.words(said.detach())
        bound = self._bound(float((words - self.words(self._public(batch))).norm()))
        told = residuals.answer(
            self._question(batch), lambda: self.residual(batch, words.numpy(), bound)
        )
        e = torch.from_numpy((told.value.reshape(said.shape) * (bound / STEPS)).astype(np.float32))
        self._optimiser.zero_grad()
        said.backward(gradient=e)  # type: ignore[no-untyped-call]
        self._optimiser.step()

    def _public(self, batch: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.auxiliary(batch)

    def _bound(self, auxiliary_loss: float) -> float:
        """B: fixed, or the average so far of what the auxiliary teacher shows."""
        if not math.isfinite(auxiliary_loss):
            raise BadInput(
                "the student's loss is not a number",
                where="learning_rate",
                why="it would learn nothing more",
                remedy="lower the learning rate",
            )
        if self.plan.published.bound is not None:
            return self.plan.published.bound
        self._auxiliary_losses.append(auxiliary_loss)
        return max(math.fsum(self._auxiliary_losses) / len(self._auxiliary_losses), 1e-9)

    def _question(self, batch: torch.Tensor) -> bytes:
        """Which call it is, and which public records it asks about."""
        digest = hashlib.sha256(batch.numpy().tobytes()).digest()
        return f"{self.name} {self._calls} ".encode() + digest
