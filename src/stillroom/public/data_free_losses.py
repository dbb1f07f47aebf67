"""The losses of data-free distillation: Eq. 5 of Liu et al. 2023, and decoupled distillation.

Logits are one row per picture. Each loss is a mean over the batch.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Entropy = Literal["batch", "sample"]
Activation = Literal["printed", "argued"]


def one_hot_loss(logits: Tensor) -> Tensor:
    """Cross-entropy with the network's own best class: small where it is sure.

    >>> sure, unsure = torch.tensor([[9.0, 0.0]]), torch.tensor([[0.1, 0.0]])
    >>> bool(one_hot_loss(sure) < one_hot_loss(unsure))
    True
    """
    return F.cross_entropy(logits, logits.argmax(1))


def balance_loss(logits: Tensor, entropy: Entropy = "batch") -> Tensor:
    """Minus the information entropy, sum p log p: smallest where the classes are balanced.

    Args:
        logits: of a batch.
        entropy: of the batch's mean, which is what balances classes; or of each picture, as Eq. 5
            prints it, which asks every picture to be of all classes.

    >>> both = torch.tensor([[50.0, 0.0], [0.0, 50.0]])
    >>> round(float(balance_loss(both)), 4), round(abs(float(balance_loss(both, "sample"))), 4)
    (-0.6931, 0.0)
    """
    logs = F.log_softmax(logits, 1)
    if entropy == "sample":
        return (logs.exp() * logs).sum(1).mean()
    mean = logs.exp().mean(0)
    # A class that is never given has the probability 0, and a logarithm all the same.
    return (mean * mean.clamp_min(torch.finfo(mean.dtype).tiny).log()).sum()


def activation_loss(features: Tensor, sign: Activation = "argued") -> Tensor:
    """The norm of what reaches the last layer.

    Args:
        features: one row, or one map, per picture.
        sign: as Eq. 5 prints it, a norm to be made small; or as its text argues, that real pictures
            activate more, a norm to be made large.

    >>> float(activation_loss(torch.tensor([[3.0, 4.0]]), "printed"))
    5.0
    """
    norm: Tensor = features.flatten(1).norm(dim=1).mean()
    return norm if sign == "printed" else -norm


def generator_loss(
    logits: Tensor,
    features: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    one_hot: float = 1.0,
    entropy: Entropy = "batch",
    activation: Activation = "argued",
) -> Tensor:
    """Eq. 5: what a student that stays as it is says of a generator's pictures.

    Args:
        logits: the student's.
        features: what reaches its last layer.
        alpha: weight of the balance.
        beta: weight of the activation.
        one_hot: weight of the cross-entropy; 1 in the paper.
        entropy: see `balance_loss`.
        activation: see `activation_loss`.
    """
    sure, balance = one_hot_loss(logits), balance_loss(logits, entropy)
    return one_hot * sure + alpha * balance + beta * activation_loss(features, activation)


def decoupled_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    temperature: float = 4.0,
    alpha: float = 1.0,
    beta: float = 8.0,
) -> Tensor:
    """Decoupled distillation (Zhao et al. 2022), with the teacher's best class as the target.

    The divergence of teacher and student over {target, all others}, and that over the others
    alone, each with a weight of its own. With one weight for the first and the teacher's mass
    beyond the target for the second it is ordinary distillation.

    Args:
        student_logits: one row per picture.
        teacher_logits: of the same pictures.
        temperature: divides both.
        alpha: weight of the target's part.
        beta: weight of the part of the other classes.
    """
    student = F.log_softmax(student_logits / temperature, 1)
    teacher = F.log_softmax(teacher_logits / temperature, 1)
    target = F.one_hot(teacher_logits.argmax(1), teacher_logits.shape[1]).bool()
    of_target = _divergence(_target_or_not(student, target), _target_or_not(teacher, target))
    of_others = _divergence(_others(student, target), _others(teacher, target))
    return (alpha * of_target + beta * of_others) * temperature**2


def soft_cross_entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy of a network's probabilities with those of wanted logits.

    >>> same = torch.zeros(3, 2)
    >>> round(float(soft_cross_entropy(same, same)), 4)
    0.6931
    """
    return -(F.softmax(wanted, 1) * F.log_softmax(logits, 1)).sum(1).mean()


def logits_and_features(network: nn.Module, pictures: Tensor) -> tuple[Tensor, Tensor]:
    """What a network says of pictures, and what reached its last linear layer.

    Args:
        network: from pictures to logits.
        pictures: as it is given them.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> [tuple(each.shape) for each in logits_and_features(network, torch.zeros(3, 1, 2, 2))]
    [(3, 2), (3, 4)]
    """
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    reached: list[Tensor] = []
    handles = [
        layer.register_forward_pre_hook(lambda layer, given: reached.append(given[0]))
        for layer in layers
    ]
    try:
        logits = network(pictures)
    finally:
        for handle in handles:
            handle.remove()
    return logits, reached[-1] if reached else logits


def _target_or_not(logs: Tensor, target: Tensor) -> Tensor:
    """Log-probabilities of the target class and of all others together."""
    mine = logs[target]
    rest = logs.masked_fill(target, -torch.inf).logsumexp(1)
    return torch.stack([mine, rest], 1)


def _others(logs: Tensor, target: Tensor) -> Tensor:
    """Log-probabilities among the classes that are not the target."""
    return F.log_softmax(logs[~target].reshape(len(logs), -1), 1)


def _divergence(student: Tensor, teacher: Tensor) -> Tensor:
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)
