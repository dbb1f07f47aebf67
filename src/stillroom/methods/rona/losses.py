"""RONA's losses and its Algorithm 2, as published: torch, and public or paid-for numbers only.

A batch loss is the mean over the batch. The teacher's part of a loss has come through the gate
before it is seen here, without protection in the literal reading (`gate.Unprotected`).
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

Shape = tuple[int, ...]
"""Of what one record is turned into by a layer: (features,), or (channels, height, width)."""


def hint_loss(adapted: torch.Tensor, hints: torch.Tensor) -> torch.Tensor:
    """Eq. 3: half the squared distance between the adapted guided layer and the hints."""
    return 0.5 * (adapted - hints).square().sum() / len(hints)


def distill_loss(
    logits: torch.Tensor, teacher_logits: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Eq. 4: the cross-entropy between the softened probabilities of teacher and student."""
    return F.cross_entropy(logits / temperature, F.softmax(teacher_logits / temperature, dim=1))


def self_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Eq. 5: the cross-entropy with the labels of public samples."""
    return F.cross_entropy(logits, labels)


def privacy_sanitize(
    loss: torch.Tensor, bound: float, noise: float, *, detached: bool
) -> torch.Tensor:
    """Algorithm 2: the loss, scaled down to at most `bound`, plus noise.

    Guarantee: none for what is learnt from it. The noise does not depend on the student, so the
    gradient is that of the clipped loss, exactly; only the number itself is noisy.

    Args:
        loss: of one batch, a number.
        bound: B.
        noise: already drawn, by the gate.
        detached: whether the divisor counts as a constant. The paper does not say. Where it does
            not, a loss above the bound is the constant B and its gradient is 0.

    >>> loss = torch.tensor(5.0)
    >>> float(privacy_sanitize(loss, bound=2.0, noise=0.5, detached=True))
    2.5
    """
    divisor = torch.clamp(loss / bound, min=1.0)
    return loss / (divisor.detach() if detached else divisor) + noise


def matched(guided: Shape, hint: Shape) -> Shape:
    """The shape in which a guided layer and a hint are compared.

    Two convolutional layers meet in the smaller of their heights and widths; a flat one and any
    other meet flat.

    >>> matched((64, 16, 16), (128, 8, 8)), matched((24, 4, 4), (128, 8, 8)), matched((256,), (9,))
    ((128, 8, 8), (128, 4, 4), (9,))
    """
    if len(guided) == len(hint) == 3:
        return hint[0], min(guided[1], hint[1]), min(guided[2], hint[2])
    return (math.prod(hint),)


def in_shape(said: torch.Tensor, shape: Shape) -> torch.Tensor:
    """A hint layer's outputs in the shape `matched` gives: averaged to smaller maps, or flat."""
    if len(shape) == 3:
        return F.adaptive_avg_pool2d(said, shape[1:])
    return said.flatten(1)


def adaptation(guided: Shape, hint: Shape) -> nn.Module:
    """The adaptation layer: a 1x1 convolution between convolutional layers, else a linear one.

    Args:
        guided: of the student's guided layer.
        hint: of the teacher's hint layer; what comes out has the shape `matched(guided, hint)`.

    >>> adaptation((4, 8, 8), (6, 2, 2))(torch.zeros(5, 4, 8, 8)).shape
    torch.Size([5, 6, 2, 2])
    """
    target = matched(guided, hint)
    if len(target) == 3:
        to_channels = nn.Conv2d(guided[0], target[0], 1)
        if guided[1:] == target[1:]:
            return to_channels
        return nn.Sequential(nn.AdaptiveAvgPool2d(target[1:]), to_channels)
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(guided), target[0]))
