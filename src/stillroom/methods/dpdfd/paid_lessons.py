"""DPDFD-E: a student of paid answers, normalised after the noise (theory.md#dpdfd-e).

With cross-entropy the gradient at the student's outputs is p - v, its own probabilities less the
teachers' votes. The student is public, so it is enough to buy noisy votes: the gradient is formed
and normalised outside, is a constant to everything before it, and can be formed again for free
when the student has moved on. Where a sketch has taught the student before, its own word is what
Bayes' rule starts from, and votes correct it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.methods.dpdfd.queries import Queries
from stillroom.methods.dpdfd.section import DpdfdSection
from stillroom.models.training import Loss, NetworkTraining
from stillroom.public.data_free_losses import logits_and_features
from stillroom.public.query_groups import group
from stillroom.public.selection import select
from stillroom.sources.base import Answers
from stillroom.sources.teachers import TeachersSection

STABILITY = 1e-3
SELECTION = "k-centre"
TOGETHER = 1024


def normalised(stability: float = STABILITY) -> Loss:
    """A loss whose gradient at the outputs is (p - v) / (|p - v| + e), picture by picture.

    >>> said = torch.zeros(1, 2, requires_grad=True)
    >>> normalised(0.0)(said, torch.tensor([[9.0, -9.0]])).backward()
    >>> round(float(said.grad.norm()), 4)
    1.0
    """

    def loss(guess: Tensor, scores: Tensor) -> Tensor:
        gradient = (F.softmax(guess, 1) - F.softmax(scores, 1)).detach()
        step = gradient / (gradient.norm(dim=1, keepdim=True) + stability)
        found: Tensor = (guess * step).sum(1).mean()
        return found

    return loss


class PaidLessons:
    """Rounds of questions about synthetic pictures, or groups of them, as many as are paid for.

    Guarantee: the price of the source's answers; everything else is post-processing of them.

    Args:
        student: trained in place, from pictures to logits.
        pictures: from stored records to what the student reads.
        answers: a source whose answers are charged.
        queries: the pool of each round.
        plan: the numbers.
        teachers: how many questions there are, and whether about groups.
        taught: whether the student knows something already: what it says of a picture then counts
            beside the votes, and alone where none was bought.
    """

    def __init__(
        self,
        student: nn.Module,
        pictures: nn.Module,
        answers: Answers,
        queries: Queries,
        plan: DpdfdSection,
        teachers: TeachersSection,
        *,
        taught: bool = False,
    ) -> None:
        self.student, self._pictures, self._taught = student, pictures, taught
        self._answers, self._queries, self._plan = answers, queries, plan
        self._grouped = teachers.grouped
        self._per_round = -(-teachers.questions // plan.rounds)
        self._training = NetworkTraining(
            student,
            pictures,
            epochs=plan.rounds * plan.epochs,
            learning_rate=plan.learning_rate,
            seed=plan.start_seed,
        )
        self._x: list[Tensor] = []
        self._scores: list[Tensor] = []

    def teach(self, on_round: Callable[[int, Tensor], None] = lambda done, asked: None) -> None:
        """All rounds; what is left unpaid is not asked.

        Args:
            on_round: told how many rounds are done, and given the pictures of the last one.
        """
        for number in range(self._plan.rounds):
            pool = self._queries.of_round(number)
            self._ask(pool, number)
            if number == self._plan.rounds - 1:
                self._answers.close()
            if self._x:
                self._learn(torch.cat(self._x), torch.cat(self._scores))
            on_round(number + 1, pool)
        if not self._x:
            raise BadInput(
                "no question was answered",
                where="teachers.threshold",
                why="the teachers agree on none of the queries, so the student learnt nothing",
                remedy="lower the threshold, or draw queries from a [sketch]",
            )

    def _learn(self, x: Tensor, scores: Tensor) -> None:
        """The gradient is formed anew from the same paid answers, pass after pass."""
        for _ in range(self._plan.epochs):
            self._training.distil(x, scores, min(self._plan.batch, len(x)), normalised())

    def _ask(self, pool: Tensor, number: int) -> None:
        """Buy answers about a part of the pool; the latest word on a group stays its own."""
        count, seed = min(self._per_round, len(pool)), self._queries.start(number)
        logits, features = self._says(pool)
        if self._grouped:
            groups = group(features.flatten(1).numpy(), count, seed=seed)
            told = self._answers.scores(pool.numpy(), groups)
            asked = pool
        else:
            shares = torch.softmax(logits.double(), 1).numpy()
            picks = select(SELECTION, shares, count, seed=seed, round=number)
            asked = pool[torch.from_numpy(picks)]
            told = self._answers.scores(asked.numpy())
        answered, values = torch.from_numpy(told.answered), torch.from_numpy(told.values).float()
        if self._taught:
            places = answered if self._grouped else torch.from_numpy(picks)[answered]
            own = F.log_softmax(logits, 1)
            own[places] += values
            self._x.append(pool)
            self._scores.append(own)
        elif len(answered):
            self._x.append(asked[answered])
            self._scores.append(values)

    def _says(self, pool: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            parts = [
                logits_and_features(self.student.eval(), self._pictures(some))
                for some in torch.split(pool, TOGETHER)
            ]
        logits, features = zip(*parts, strict=True)
        return torch.cat(logits), torch.cat(features)


def most_questions(plan: DpdfdSection) -> int:
    """How many questions can be asked: each round about its own pool."""
    return int(np.multiply(plan.rounds, plan.pool))
