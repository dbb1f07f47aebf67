"""RONA's losses, and what noise on a loss does to a gradient: nothing."""

from __future__ import annotations

import pytest
import torch
from stillroom.public.published_losses import (
    adaptation,
    distill_loss,
    hint_loss,
    in_shape,
    matched,
    privacy_sanitize,
    self_loss,
)
from torch import nn

HINT = torch.tensor([[0.3, -0.7, 0.2]])


def gradient(noise, *, bound=10.0, detached=True, hint=HINT):
    said = torch.zeros(1, 3, requires_grad=True)
    privacy_sanitize(hint_loss(said, hint), bound, noise, detached=detached).backward()
    return said.grad


@pytest.mark.parametrize("detached", [True, False])
def test_one_step_reveals_the_hint_whatever_the_noise(detached):
    for noise in (0.0, 123.0, -4e6):
        assert torch.equal(-gradient(noise, detached=detached), HINT)


def test_above_the_bound_the_gradient_is_zero_unless_the_divisor_is_detached():
    far = 100 * HINT
    assert not gradient(5.0, bound=1.0, detached=False, hint=far).any()
    kept = gradient(5.0, bound=1.0, detached=True, hint=far)
    loss = float(hint_loss(torch.zeros(1, 3), far))
    assert torch.allclose(kept, -far / loss)
    # Privacy.md 1b, item 2: at most sqrt(2B), and not B.
    assert float(kept.norm()) <= 2**0.5 < float(kept.norm()) * loss


def test_the_number_itself_is_clipped_and_noisy():
    for loss, shown in ((0.5, 0.75), (1.0, 1.25), (40.0, 1.25)):
        assert float(privacy_sanitize(torch.tensor(loss), 1.0, 0.25, detached=True)) == shown


def test_losses_by_hand():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    taught = torch.tensor([[1.0, 1.0], [-3.0, 3.0]])
    soft, own = torch.softmax(taught / 3, 1), torch.log_softmax(logits / 3, 1)
    assert torch.allclose(distill_loss(logits, taught, 3.0), -(soft * own).sum(1).mean())
    right = torch.log_softmax(logits, 1)[[0, 1], [0, 0]]
    assert torch.allclose(self_loss(logits, torch.tensor([0, 0])), -right.mean())
    said = torch.zeros(2, 3)
    assert float(hint_loss(said, torch.ones(2, 3))) == 1.5


@pytest.mark.parametrize(
    ("guided", "hint", "target"),
    [
        ((5,), (7,), (7,)),
        ((4, 8, 8), (6, 8, 8), (6, 8, 8)),
        ((4, 8, 8), (6, 4, 4), (6, 4, 4)),
        ((4, 4, 4), (6, 8, 8), (6, 4, 4)),
        ((4, 4, 8), (6, 8, 4), (6, 4, 4)),
        ((4, 2, 2), (7,), (7,)),
        ((5,), (6, 2, 2), (24,)),
    ],
)
def test_the_adaptation_layer_meets_the_hint(guided, hint, target):
    assert matched(guided, hint) == target
    assert adaptation(guided, hint)(torch.zeros(3, *guided)).shape == (3, *target)
    assert in_shape(torch.zeros(3, *hint), target).shape == (3, *target)


def test_convolutions_are_adapted_by_1x1_convolutions():
    layer = adaptation((4, 8, 8), (6, 8, 8))
    assert isinstance(layer, nn.Conv2d)
    assert layer.kernel_size == (1, 1)
    assert isinstance(adaptation((5,), (7,))[1], nn.Linear)
