"""The losses of data-free distillation, by hand, by bound and by gradient."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from stillroom.public.data_free_losses import (
    activation_loss,
    balance_loss,
    decoupled_loss,
    generator_loss,
    logits_and_features,
    one_hot_loss,
    soft_cross_entropy,
)
from stillroom.randomness import normals


def logits(*names, rows=7, classes=5, spread=2.0):
    return torch.from_numpy(spread * normals(3, *names, size=(rows, classes)))


def test_one_hot_loss_is_minus_the_log_of_the_largest_probability():
    said = logits("one hot")
    assert torch.allclose(one_hot_loss(said), -said.log_softmax(1).max(1).values.mean())


def test_balance_is_least_where_the_batch_is_balanced():
    balanced = 40 * torch.eye(5, dtype=torch.float64)
    one_class = balanced[[0] * 5]
    assert float(balance_loss(balanced)) == pytest.approx(-math.log(5))
    assert float(balance_loss(one_class)) == pytest.approx(0, abs=1e-9)
    assert -math.log(5) <= float(balance_loss(logits("balance"))) <= 0


def test_the_printed_entropy_does_not_balance_classes():
    """Per picture it cannot tell one class from all of them: it asks for doubt instead."""
    balanced = 40 * torch.eye(5, dtype=torch.float64)
    one_class = balanced[[0] * 5]
    assert float(balance_loss(balanced, "sample")) == float(balance_loss(one_class, "sample"))
    doubt = torch.zeros(5, 5, dtype=torch.float64)
    assert float(balance_loss(doubt, "sample")) == pytest.approx(-math.log(5))


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_gradients_are_numbers_where_a_class_is_never_given(scale):
    said = (scale * torch.eye(4)[[0, 0]]).requires_grad_()
    for entropy in ("batch", "sample"):
        (gradient,) = torch.autograd.grad(balance_loss(said, entropy), said)
        assert gradient.isfinite().all()


def test_the_sign_of_the_activation():
    features = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    assert float(activation_loss(features, "printed")) == 3.0
    assert float(activation_loss(features, "argued")) == -3.0
    maps = features.reshape(2, 2, 1, 1)
    assert float(activation_loss(maps, "printed")) == 3.0


def test_the_generators_loss_is_the_sum_of_eq_5():
    said, features = logits("eq 5"), logits("features", classes=3)
    for entropy in ("batch", "sample"):
        for sign in ("printed", "argued"):
            whole = generator_loss(said, features, 0.5, 2.0, entropy=entropy, activation=sign)
            parts = 0.5 * balance_loss(said, entropy) + 2 * activation_loss(features, sign)
            assert torch.allclose(whole, one_hot_loss(said) + parts)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_the_decoupled_parts_add_up_to_ordinary_distillation(temperature):
    """Zhao et al. 2022, Eq. 7: KD = TCKD + (1 - p_target) NCKD, picture by picture."""
    for row in range(7):
        student, teacher = (logits(name)[row : row + 1] for name in ("student", "teacher"))
        soft = F.softmax(teacher / temperature, 1)
        rest = 1 - float(soft.max())
        ordinary = F.kl_div(F.log_softmax(student / temperature, 1), soft, reduction="batchmean")
        decoupled = decoupled_loss(student, teacher, temperature, 1.0, rest)
        assert float(decoupled) == pytest.approx(float(ordinary) * temperature**2)


def test_decoupled_loss_is_least_at_the_teacher_and_finite_far_from_it():
    teacher = logits("teacher")
    assert float(decoupled_loss(teacher, teacher)) == pytest.approx(0, abs=1e-12)
    assert float(decoupled_loss(logits("student"), teacher)) > 0
    far = (1e4 * teacher).requires_grad_()
    (gradient,) = torch.autograd.grad(decoupled_loss(far, -1e4 * teacher), far)
    assert gradient.isfinite().all()


def test_two_classes_have_no_others_to_tell_apart():
    student, teacher = logits("student", classes=2), logits("teacher", classes=2)
    assert float(decoupled_loss(student, teacher, alpha=0.0)) == pytest.approx(0, abs=1e-12)


def test_soft_cross_entropy_pulls_towards_the_wanted():
    said, wanted = logits("said").requires_grad_(), logits("wanted")
    (gradient,) = torch.autograd.grad(soft_cross_entropy(said, wanted), said)
    assert torch.allclose(gradient, (said.softmax(1) - wanted.softmax(1)).detach() / len(said))


class Odd(nn.Module):
    """No sequence, and its last layer is used after another of its kind."""

    def __init__(self):
        super().__init__()
        self.classes, self.first = nn.Linear(4, 2), nn.Linear(6, 4)

    def forward(self, x):
        return self.classes(self.first(x).relu())


def test_features_are_what_reaches_the_last_layer_in_use():
    network = Odd().double()
    x = logits("pictures", classes=6)
    said, features = logits_and_features(network, x)
    assert torch.equal(features, network.first(x).relu())
    assert torch.equal(said, network(x))
    assert not network.classes._forward_pre_hooks
