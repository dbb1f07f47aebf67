"""The training of a network: hints, self learning, distillation, one epoch per call.

Hinton et al. 2015, and Algorithm 1 of Wang et al. 2019. Teachers and students, private and
public ones, share this loop: AdamW with one cycle of the learning rate over all epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.randomness import order, seeded_torch, uniforms

WEIGHT_DECAY = 1e-3
LOGIT_SHARE = 0.1
WARM_UP, LOWEST = 0.3, 0.02
RAREST = 20.0
"""A class the records hardly show is seen at most this much more often than it appears."""

Loss = Callable[[Tensor, Tensor], Tensor]


def softened(temperature: float) -> Loss:
    """Cross-entropy between softened probabilities (eq. 4 of Wang et al. 2019)."""

    def loss(guess: Tensor, scores: Tensor) -> Tensor:
        target = F.softmax(scores / temperature, 1)
        return -(target * F.log_softmax(guess / temperature, 1)).sum(1).mean()

    return loss


def by_logits(temperature: float, share: float = LOGIT_SHARE) -> Loss:
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


def fitting_temperature(scores: Tensor) -> float:
    """Half the spread of the teacher's centred logits: for `by_logits` where none is given."""
    centred = scores - scores.mean(1, keepdim=True)
    return max(float(centred.std()) / 2, 1e-3)


class NetworkTraining:
    """A network and its optimiser: AdamW with one cycle of the learning rate over all epochs.

    Guarantee: none. Where the records are public or sanitised, all of it is post-processing.

    Args:
        network: trained in place, from pictures to logits; in eval mode after each epoch.
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

    @property
    def done(self) -> int:
        """Epochs that are behind it."""
        return self._done

    def learn(self, x: Tensor, y: Tensor, batch: int, weight: Tensor | None = None) -> None:
        """An epoch of self learning: cross-entropy with public labels (eq. 5).

        Args:
            x: the records.
            y: their labels.
            batch: records per step.
            weight: of each class; None where all count alike.
        """
        self._epoch(x, batch, lambda seen, at: F.cross_entropy(self.network(seen), y[at], weight))

    def distil(
        self, x: Tensor, scores: Tensor, batch: int, loss: Loss, *, balanced: bool = False
    ) -> None:
        """An epoch of distillation: the teacher's scores, by `softened` or `by_logits`.

        Args:
            x: the records.
            scores: the teacher's logits, one row per record.
            batch: records per step.
            loss: of the student's and the teacher's logits.
            balanced: draw records, with replacement, so that the teacher's classes come equally
                often, as far as they appear.
        """
        drawn = self._balanced(scores, batch) if balanced else None
        self._epoch(x, batch, lambda seen, at: loss(self.network(seen), scores[at]), drawn)

    def hint(self, x: Tensor, targets: Tensor, batch: int, guided: nn.Module) -> None:
        """An epoch of hint learning: the guided layer follows the hints (eq. 3).

        Args:
            x: the records.
            targets: one hint per record.
            batch: records per step.
            guided: the first blocks of the network, up to the guided layer.
        """

        def loss(seen: Tensor, at: Tensor) -> Tensor:
            return F.mse_loss(self._adaptation(guided(seen)), targets[at])

        self._epoch(x, batch, loss)

    def state(self) -> dict[str, Any]:
        """Everything the next epoch depends on; for `restore`."""
        return {
            "network": self.network.state_dict(),
            "adaptation": self._adaptation.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "done": self._done,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of the same training."""
        self.network.load_state_dict(state["network"])
        self._adaptation.load_state_dict(state["adaptation"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._done = state["done"]

    def _balanced(self, scores: Tensor, batch: int) -> npt.NDArray[np.int64]:
        steps = max(1, len(scores) // batch)
        drawn = uniforms(self._order_key, "distil", self._done, size=steps * batch)
        places = np.searchsorted(np.cumsum(balanced_chances(scores.argmax(1).numpy())), drawn)
        return np.minimum(places, len(scores) - 1)

    def _epoch(
        self, x: Tensor, batch: int, loss: Loss, places: npt.NDArray[np.int64] | None = None
    ) -> None:
        # A network of one's own may have dropout: after a break it must drop the same.
        with seeded_torch(self._order_key, "drops", self._done):
            self._steps(x, batch, loss, places)

    def _steps(
        self, x: Tensor, batch: int, loss: Loss, places: npt.NDArray[np.int64] | None
    ) -> None:
        if places is None:
            places = order(self._order_key, "stages", self._done, size=len(x))
        parts = torch.split(torch.from_numpy(places), batch)
        if len(parts[-1]) < (batch if len(parts) > 1 else 1):
            parts = parts[:-1]  # a rest of a batch, or nothing at all
        self.network.train()
        for number, at in enumerate(parts):
            self._set_rate((self._done + number / len(parts)) / self._epochs)
            found = loss(self._pictures(x[at]), at)
            if not torch.isfinite(found):
                raise BadInput(
                    "the loss is not a number",
                    where=f"epoch {self._done + 1}, step {number + 1}",
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


def balanced_chances(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Chances with which the classes come equally often, as far as they appear.

    >>> balanced_chances(np.array([0, 0, 0, 1])).round(2).tolist()
    [0.17, 0.17, 0.17, 0.5]
    """
    counts = np.bincount(labels)[labels]
    weights = np.minimum(len(labels) / counts, RAREST * len(np.unique(labels)))
    chances: npt.NDArray[np.float64] = weights / weights.sum()
    return chances
