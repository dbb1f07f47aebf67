"""Whether a network's per-record gradients are what clipping takes them for, before any payment.

Clipping bounds a record's influence if the gradient that is clipped is the record's own: that of
its loss, whole, and the same whoever shares the chunk. Neither can be read from the layers, since a
network may use a weight or draw a number in any function. So it is tried, with the code that later
sums the records, on made-up records, at the network's weights and at others.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from stillroom.errors import BadInput
from stillroom.models.fit import (
    COMPANY_TOLERANCE,
    made_up_records,
    mixes,
    not_finite,
    refuse_draws,
)
from stillroom.models.flat_weights import Flat, flatten, unflatten
from stillroom.private.network_gradients import NetworkGradients
from stillroom.randomness import normals

AUTOGRAD_TOLERANCE = 1e-3
"""How far Opacus' gradients may be from autograd's, as a share of their length: they are sums of
the same numbers in another order."""
SHORTEST = 1e-2
"""A gradient shorter than this share of the longest is compared as if it were that long: a loss
near zero has few digits."""
MOST_NUMBERS = 2**21
"""Gradient numbers per pass: wide networks are tried in chunks of fewer rows, to take no longer."""
Figures = tuple[torch.Tensor, torch.Tensor]
LARGEST = 3e38
"""About as large as a record's numbers can be."""


def check_gradients(
    gradients: NetworkGradients, shape: tuple[int, ...], classes: int, chunk: int
) -> None:
    """Refuse a network whose per-record gradients are not those of the records.

    Guarantee: on made-up records, at two sets of weights, gradients are within 0.1 % of autograd's,
    and within 0.01 % the same in other company, at another place and beside blank rows. Compared
    are each record's length, and the sum of all at equal lengths, which no clip can make stricter.

    Args:
        gradients: of the network; its weights are put back.
        shape: of one record.
        classes: how many classes there are.
        chunk: how many rows are computed together.

    Raises:
        BadInput: a weight is used where Opacus does not see it, or has no gradient; records are
            mixed; random numbers are drawn; or a gradient is not finite.

    >>> from torch import nn
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> check_gradients(NetworkGradients(network, augment=None, views=1), (1, 8, 8), 10, 64)
    """
    width = sum(weight.numel() for weight in gradients.weights)
    rows = min(chunk, max(4, MOST_NUMBERS // width))
    trial = _Trial(gradients, shape, classes, rows)
    start = flatten(gradients.network)
    for weights in (start, start + _elsewhere(gradients.weights)):
        unflatten(gradients.network, weights)
        trial.run()
    unflatten(gradients.network, start)


class _Trial:
    """Made-up records in two chunks, in front of others and behind stranger ones.

    By autograd in the first and as they will be summed in the second, they must be the same.
    """

    def __init__(
        self, gradients: NetworkGradients, shape: tuple[int, ...], classes: int, rows: int
    ) -> None:
        self._gradients, self._rows = gradients, rows
        own, self._labels = made_up_records(shape, classes, min(4, rows // 2))
        others = torch.from_numpy(normals(0, "company", size=(rows - len(own), *shape))).float()
        # What is not finite, or not there, must leave its neighbours alone as well; and what is
        # alike sways most where records look for their likes.
        strange = 0.9 * own[torch.arange(len(others)) % len(own)]
        strange[0::4], strange[1::4], strange[2::4] = torch.nan, 0, LARGEST
        self._front, self._back = torch.arange(len(own)), torch.arange(rows)[-len(own) :].flip(0)
        self._first = torch.cat([own, others])
        self._second = torch.cat([strange, own.flip(0)])

    def run(self) -> None:
        """Compare at the network's present weights."""
        true = self._autograd(self._first, self._front)
        lengths = torch.linalg.vector_norm(true, dim=1)
        if not torch.isfinite(lengths).all():
            raise not_finite("for made-up records of numbers between 0 and 1")
        # Equal lengths, as after a clip that all of them exceed: no clip can be stricter.
        scale = torch.maximum(lengths, SHORTEST * lengths.max()).clamp(min=1e-30)
        expected = lengths, (true / scale[:, None]).sum(dim=0)
        moved = self._computed(self._second, self._back, scale)
        if _close(moved, expected, scale, COMPANY_TOLERANCE):
            return
        # Which of the two is it? Seldom neither, but a sum in another order.
        found = self._computed(self._first, self._front, scale)
        if not torch.isfinite(found[0]).all():
            raise _unseen("a weight has no gradient of its own for every record")
        if not _close(found, expected, scale, AUTOGRAD_TOLERANCE):
            raise _unseen("the gradients that Opacus finds are not those of the loss")
        if not _close(moved, found, scale, COMPANY_TOLERANCE):
            raise mixes("a record's gradient changes with its company, its place or by itself")

    def _computed(self, x: torch.Tensor, places: torch.Tensor, scale: torch.Tensor) -> Figures:
        """The lengths of the made-up records' gradients, and their sum, each by its scale."""
        factors = torch.zeros(self._rows, dtype=torch.float64)
        factors[places] = 1 / scale
        with refuse_draws():
            norms = self._gradients.norms(x, self._labelled(places), 0)
            total, _ = self._gradients.weighted(factors)
        return norms[places], torch.from_numpy(total)

    def _autograd(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The made-up records' gradients by autograd alone, one by one.

        In the same chunk, so that no kink of the network turns the other way.
        """
        found = torch.zeros(len(places), sum(weight.numel() for weight in self._gradients.weights))
        with refuse_draws(), self._gradients.without_hooks():
            for view in range(self._gradients.views):
                seen = self._gradients.seen(x, 0, view).clone().requires_grad_()
                scores = self._gradients.network(seen)
                losses = self._gradients.losses(scores, self._labelled(places))
                for row, place in enumerate(places):
                    parts = torch.autograd.grad(
                        losses[place],
                        self._gradients.weights,
                        retain_graph=True,
                        allow_unused=True,
                        materialize_grads=True,
                    )
                    found[row] += torch.cat([part.reshape(-1) for part in parts])
        return found.double() / self._gradients.views

    def _labelled(self, places: torch.Tensor) -> torch.Tensor:
        labels = torch.zeros(self._rows, dtype=torch.int64)
        labels[places] = self._labels
        return labels


def _elsewhere(weights: list[nn.Parameter]) -> Flat:
    """Steps to other weights, about as long as what a network starts with.

    Some networks start with zeros, at which most gradients are zero whatever is wrong with them.
    """
    parts = [
        normals(0, "other weights", i, size=weight.numel())
        / (math.sqrt(weight[0].numel()) if weight.ndim > 1 else 10)
        for i, weight in enumerate(weights)
    ]
    return np.concatenate(parts).astype(np.float32)


def _close(found: Figures, expected: Figures, scale: torch.Tensor, tolerance: float) -> bool:
    """Whether lengths and sum differ by no more than this share of a record's length."""
    lengths = (found[0] - expected[0]).abs() <= tolerance * scale
    return bool(lengths.all() and torch.linalg.vector_norm(found[1] - expected[1]) <= tolerance)


def _unseen(what: str) -> BadInput:
    return BadInput(
        what,
        where="model",
        why="what is clipped and added would not be the gradient of the record's loss",
        remedy="use each weight through the layer that owns it, not by a function of its own, as "
        "in a head tied to an embedding by hand; and leave out layers that take no part",
    )
