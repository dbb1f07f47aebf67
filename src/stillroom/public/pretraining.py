"""Ordinary training on public records: a start that costs nothing."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from stillroom.errors import BadInput
from stillroom.randomness import order

BATCH = 128
WEIGHT_DECAY = 1e-3


def pretrain(
    network: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    epochs: int,
    learning_rate: float,
    seed: int,
) -> None:
    """Train in place on labelled public records, by AdamW.

    Args:
        network: takes records, gives logits.
        x: the public records.
        y: their labels.
        epochs: passes over them.
        learning_rate: the length of a step.
        seed: of the order.

    Raises:
        BadInput: the loss is not a number.
    """
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=WEIGHT_DECAY)
    network.train()
    for epoch in range(epochs):
        places = torch.from_numpy(order(seed, "pretraining", epoch, size=len(y)))
        for place in torch.split(places, BATCH):
            loss = F.cross_entropy(network(x[place]), y[place])
            if not torch.isfinite(loss):
                raise BadInput(
                    "the loss on public records is not a number",
                    where=f"pre-training, epoch {epoch}",
                    why="such a start is worse than none",
                    remedy="scale the records, or use fewer epochs",
                )
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    network.eval()
