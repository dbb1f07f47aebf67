"""Distillation: a student network learns a teacher's scores on pictures that anyone may see.

Hinton et al. 2015, with a part that regresses centred logits beside the softened probabilities.
All of it is post-processing: pictures and scores are public or sanitised before they come here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.randomness import uniforms

LOGIT_SHARE = 0.1
WEIGHT_DECAY = 1e-3
RAREST = 20.0
"""A class the pictures hardly show is seen at most this much more often than it appears."""


def distil(
    student: nn.Module,
    pictures: torch.Tensor,
    scores: npt.NDArray[np.float32],
    *,
    epochs: int,
    batch: int,
    learning_rate: float,
    seed: int,
    on_epoch: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Train the student in place, one cycle of AdamW; leaves it in eval mode.

    Args:
        student: takes pictures, gives logits.
        pictures: one a row.
        scores: the teacher's logits for them.
        epochs: passes over as many pictures as there are.
        batch: pictures a step.
        learning_rate: the highest.
        seed: of the order.
        on_epoch: told after each pass.

    Raises:
        BadInput: the loss is not a number.
    """
    centred = torch.from_numpy(scores - scores.mean(axis=1, keepdims=True))
    temperature = max(float(centred.std()) / 2, 1e-3)
    targets = centred / temperature
    chances = _balanced(scores.argmax(axis=1))
    steps = max(1, len(pictures) // batch)
    optimiser = torch.optim.AdamW(student.parameters(), lr=learning_rate, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=learning_rate, total_steps=epochs * steps
    )
    student.train()
    for epoch in range(epochs):
        drawn = np.searchsorted(
            np.cumsum(chances), uniforms(seed, "distil", epoch, size=steps * batch)
        )
        places = torch.from_numpy(np.minimum(drawn, len(pictures) - 1)).reshape(steps, batch)
        for place in places:
            guess = student(pictures[place])
            guess = (guess - guess.mean(dim=1, keepdim=True)) / temperature
            target = targets[place]
            divergence = F.kl_div(
                F.log_softmax(guess, 1), F.softmax(target, 1), reduction="batchmean"
            )
            loss = divergence + LOGIT_SHARE * F.mse_loss(guess, target)
            if not torch.isfinite(loss):
                raise BadInput(
                    "the student's loss is not a number",
                    where=f"student, epoch {epoch}",
                    why="it would learn nothing more",
                    remedy="lower the student's learning rate",
                )
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        on_epoch(epoch + 1, epochs)
    student.eval()


def _balanced(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Chances with which the teacher's classes come equally often, as far as they appear."""
    counts = np.bincount(labels)[labels]
    weights = np.minimum(len(labels) / counts, RAREST * len(np.unique(labels)))
    chances: npt.NDArray[np.float64] = weights / weights.sum()
    return chances
