"""Training in a fixed number of steps over numbered places, whether or not a record is there.

How many records a model has must not show in how long it is trained, in which order, or in what its
dropout draws: every length comes from a public cap, and all that is drawn from a seed of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stillroom.models.flat_weights import trainable
from stillroom.randomness import Name, order, seeded_torch


def train_over_places(
    network: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    seed: int,
    *names: Name,
    places: int,
    epochs: int,
    batch: int,
    learning_rate: float,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> None:
    """Train a network in place by Adam; a step without records moves by momentum alone.

    Args:
        network: from inputs to logits.
        inputs: of its records, at most `places` of them.
        labels: of its records.
        seed: of order and draws.
        names: whose training it is.
        places: passed over in each epoch.
        epochs: how many.
        batch: places per step.
        learning_rate: of Adam.
        on_epoch: told the number of each epoch that is done, from 1 on.
    """
    weights = trainable(network)
    optimiser = torch.optim.Adam(weights, lr=learning_rate)
    network.train()
    with seeded_torch(seed, *names, "training"):
        for epoch in range(epochs):
            for chosen in torch.split(
                order_of_places(seed, *names, epoch=epoch, places=places), batch
            ):
                here = chosen[chosen < len(inputs)]
                for weight in weights:
                    weight.grad = torch.zeros_like(weight)
                if len(here):
                    torch.autograd.backward(F.cross_entropy(network(inputs[here]), labels[here]))
                optimiser.step()
            on_epoch(epoch + 1)
    network.eval()


def order_of_places(seed: int, *names: Name, epoch: int, places: int) -> Tensor:
    """The places in the order of an epoch."""
    return torch.from_numpy(order(seed, *names, "order", epoch, size=places))
