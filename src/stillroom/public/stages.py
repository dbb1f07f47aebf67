"""The stages of a student's training: hints, self learning, distillation (RONA, Algorithm 1).

Each call is one epoch. All of it is post-processing: pictures, labels, hints and scores are public
or sanitised before they come here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.randomness import order

WEIGHT_DECAY = 1e-3
LOGIT_SHARE = 0.1
WARM_UP, LOWEST = 0.3, 0.02


def softened(temperature: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Cross-entropy between softened probabilities (eq. 4 of RONA)."""

    def loss(guess: Tensor, scores: Tensor) -> Tensor:
        target = F.softmax(scores / temperature, 1)
        return -(target * F.log_softmax(guess / temperature, 1)).sum(1).mean()

    return loss


def by_logits(temperature: float, share: float = LOGIT_SHARE) -> Callable[[Tensor, Tensor], Tensor]:
    """Divergence of softened probabilities, and the squared distance of centred logits.

    A softmax hides classes that a picture hardly shows; its logits still tell how they rank. A
    student that has seen no picture of a class learns it from these alone.
    """

    def loss(guess: Tensor, scores: Tensor) -> Tensor:
        guess = (guess - guess.mean(1, keepdim=True)) / temperature
        target = (scores - scores.mean(1, keepdim=True)) / temperature
        divergence = F.kl_div(F.log_softmax(guess, 1), F.softmax(target, 1), reduction="batchmean")
        return divergence + share * F.mse_loss(guess, target)

    return loss


class Stages:
    """A network and its optimiser: AdamW with one cycle of the learning rate over all epochs.

    Args:
        network: trained in place, from pictures to logits.
        pictures: from records as they are stored to pictures.
        epochs: how many epochs there will be, of all kinds together.
        learning_rate: the highest.
        seed: of the order of the records.
        adaptation: from the guided layer to hints; trained by `hint` alone.
    """

    def __init__(
        self,
        network: nn.Module,
        pictures: nn.Module,
        *,
        epochs: int,
        learning_rate: float,
        seed: int,
        adaptation: nn.Module | None = None,
    ) -> None:
        self.network, self._pictures = network, pictures
        self._adaptation = nn.Identity() if adaptation is None else adaptation
        self._epochs, self._done, self._order_key = epochs, 0, seed
        self._highest = learning_rate
        weights = chain(network.parameters(), self._adaptation.parameters())
        self._optimiser = torch.optim.AdamW(weights, lr=learning_rate, weight_decay=WEIGHT_DECAY)

    def learn(self, x: Tensor, y: Tensor, batch: int) -> None:
        """An epoch of self learning: cross-entropy with public labels (eq. 5)."""
        self._epoch(x, batch, lambda seen, at: F.cross_entropy(self.network(seen), y[at]))

    def distil(
        self, x: Tensor, scores: Tensor, batch: int, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        """An epoch of distillation: the teacher's scores, by `softened` or `by_logits`."""
        self._epoch(x, batch, lambda seen, at: loss(self.network(seen), scores[at]))

    def hint(self, x: Tensor, targets: Tensor, batch: int, guided: nn.Module) -> None:
        """An epoch of hint learning: the guided layer follows the hints (eq. 3).

        Args:
            x: the records.
            targets: a hint a record.
            batch: records a step.
            guided: the first blocks of the network, up to the guided layer.
        """

        def loss(seen: Tensor, at: Tensor) -> Tensor:
            return F.mse_loss(self._adaptation(guided(seen)), targets[at])

        self._epoch(x, batch, loss)

    def _epoch(self, x: Tensor, batch: int, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        places = torch.from_numpy(order(self._order_key, "stages", self._done, size=len(x)))
        parts = torch.split(places, batch)
        if len(parts[-1]) < (batch if len(parts) > 1 else 1):
            parts = parts[:-1]  # a rest of a batch, or nothing at all
        self.network.train()
        for number, at in enumerate(parts):
            self._set_rate((self._done + number / len(parts)) / self._epochs)
            found = loss(self._pictures(x[at]), at)
            if not torch.isfinite(found):
                raise BadInput(
                    "the loss on public records is not a number",
                    where=f"epoch {self._done + 1}",
                    why="the network would learn nothing more",
                    remedy="scale the records, or lower the learning rate",
                )
            self._optimiser.zero_grad()
            found.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
        self._done += 1
        self.network.eval()

    def _set_rate(self, share: float) -> None:
        """One cycle: up for three tenths of the way, then down to nothing; both by cosine."""
        up = share < WARM_UP
        angle = share / WARM_UP - 1 if up else (share - WARM_UP) / (1 - WARM_UP)
        factor = max((1 + math.cos(math.pi * angle)) / 2, LOWEST)
        for group in self._optimiser.param_groups:
            group["lr"] = self._highest * factor
