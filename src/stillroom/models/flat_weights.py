"""A network's weights as one flat vector and back: what sums and steps work on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from stillroom.errors import BadInput

Flat = npt.NDArray[np.float32]


def trainable(network: nn.Module) -> list[nn.Parameter]:
    """The weights that training moves, in the order of the flat vector."""
    return [weight for weight in network.parameters() if weight.requires_grad]


def flatten(network: nn.Module) -> Flat:
    """A copy of all trainable weights, one after the other.

    >>> flatten(nn.Linear(2, 3)).shape
    (9,)
    """
    parts = [weight.detach().cpu().reshape(-1).numpy() for weight in trainable(network)]
    return np.concatenate([np.zeros(0, np.float32), *parts]).astype(np.float32)


def unflatten(network: nn.Module, flat: Flat) -> None:
    """Put a flat vector into the network's trainable weights; what is frozen stays.

    Args:
        network: the network, changed in place.
        flat: as many numbers as it has trainable weights.

    Raises:
        BadInput: the vector has another length.

    >>> layer = nn.Linear(1, 1)
    >>> unflatten(layer, np.array([2.0, 0.5], dtype=np.float32))
    >>> layer.weight.item(), layer.bias.item()
    (2.0, 0.5)
    """
    weights = trainable(network)
    needed = sum(weight.numel() for weight in weights)
    if flat.shape != (needed,):
        raise BadInput(
            f"a vector of shape {flat.shape} for {needed} weights",
            where="weights",
            why="every weight needs its own number",
            remedy="use a vector made by flatten for the same network",
        )
    values = torch.from_numpy(np.array(flat, dtype=np.float32))
    start = 0
    with torch.no_grad():
        for weight in weights:
            weight.copy_(values[start : start + weight.numel()].view_as(weight))
            start += weight.numel()


def layers_of(network: nn.Module) -> list[slice]:
    """Where each layer's trainable weights stand in the flat vector, biases with their weights.

    >>> layers_of(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))
    [slice(0, 9, None), slice(9, 13, None)]
    """
    places: dict[str, slice] = {}
    end = 0
    for name, weight in network.named_parameters():
        if weight.requires_grad:
            layer, end = name.rpartition(".")[0], end + weight.numel()
            start = places[layer].start if layer in places else end - weight.numel()
            places[layer] = slice(start, end)
    return list(places.values())
