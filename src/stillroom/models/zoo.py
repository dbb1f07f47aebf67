"""Networks by name: teachers, students, and one that DP-SGD likes.

Each is a sequence of named blocks, so that a hidden layer is a number: `network[: i + 1]` is the
network up to and with block i. Norms work within one record (GroupNorm), never over a batch; but
for the mobile, deep and wavelet ones, which are for students of public pictures alone. The three
after the Keras examples have dropout, and are for the publishers of parameters.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import nn

from stillroom.features.scattering import ORIENTATIONS, morlet_bank
from stillroom.models.keras_examples import cifar_net, mnist_net, refuse_small, svhn_net

Shape = tuple[int, ...]


def linear(shape: Shape, classes: int) -> nn.Sequential:
    """One linear layer."""
    return _sequence(flat=nn.Flatten(), classes=nn.Linear(math.prod(shape), classes))


def mlp(shape: Shape, classes: int) -> nn.Sequential:
    """Two hidden layers of 256."""
    return _sequence(
        flat=nn.Flatten(),
        hidden1=nn.Sequential(nn.Linear(math.prod(shape), 256), nn.ReLU()),
        hidden2=nn.Sequential(nn.Linear(256, 256), nn.ReLU()),
        classes=nn.Linear(256, classes),
    )


def conv(widths: tuple[int, int, int, int, int], shape: Shape, classes: int) -> nn.Sequential:
    """The Conv family of RONA: three convolutions, pool, three, pool, three, average, linear.

    RONA names the networks and their sizes (Table 2) but prints no layers. It cites Conv-Large
    from Laine and Aila 2017, and the authors' demonstration for CIFAR-10 shows the same: zero
    padding, two 1x1 convolutions at the end, leaky ReLUs of slope 0.1. Widths of 128, 256 and
    512-256-128 give the 3.12M parameters of the table; 96, 192 and 192-192-192 the 1.41M of
    Conv-Middle; 32, 64 and 64-32-32 the 0.15M of the CIFAR-10 student, a "modified Conv-Small".
    The MNIST teacher of 155.21K has the last name too, but its widths are not published; ours
    has 152K there.

    Chosen here: GroupNorm where the cited network normalises over the batch, which would mix
    records (the demonstration has no norm at all), and no dropout. Counted from one, blocks are
    the demonstration's layers: its hint layer is the teacher's 4th, its guided layer the
    student's 7th.
    """
    refuse_small(shape, 4)
    first, second, third, fourth, fifth = widths
    channels = shape[0]
    return _sequence(
        conv1a=_convolution(channels, first, 3),
        conv1b=_convolution(first, first, 3),
        conv1c=_convolution(first, first, 3),
        pool1=nn.MaxPool2d(2),
        conv2a=_convolution(first, second, 3),
        conv2b=_convolution(second, second, 3),
        conv2c=_convolution(second, second, 3),
        pool2=nn.MaxPool2d(2),
        conv3a=_convolution(second, third, 3),
        conv3b=_convolution(third, fourth, 1),
        conv3c=_convolution(fourth, fifth, 1),
        average=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        classes=nn.Linear(fifth, classes),
    )


def student(
    widths: tuple[int, int, int], shape: Shape, classes: int, *, over_batch: bool = False
) -> nn.Sequential:
    """Three convolutions, each normed and pooled, and one linear layer.

    A norm over the batch mixes records, so DP-SGD refuses it. A student of public pictures may
    have it, and pays nothing for it later: it is folded into the convolution before it runs.
    """
    refuse_small(shape, 8)
    channels, height, width = shape
    first, second, third = widths
    block = _batch_normed_convolution if over_batch else _pooled_convolution
    return _sequence(
        conv1=block(channels, first),
        conv2=block(first, second),
        conv3=block(second, third),
        flat=nn.Flatten(),
        classes=nn.Linear(third * (height // 8) * (width // 8), classes),
    )


def deep_student(shape: Shape, classes: int) -> nn.Sequential:
    """Five thin convolutions with a norm over the batch, pooled three times, and a linear layer."""
    refuse_small(shape, 8)
    channels, height, width = shape
    block = _batch_normed_convolution
    return _sequence(
        conv1=block(channels, 8),
        conv2a=block(8, 16, pooled=False),
        conv2b=block(16, 16),
        conv3a=block(16, 16, pooled=False),
        conv3b=block(16, 16),
        flat=nn.Flatten(),
        classes=nn.Linear(16 * (height // 8) * (width // 8), classes),
    )


def wavelet_student(shape: Shape, classes: int) -> nn.Sequential:
    """Three convolutions and a linear layer; the first begins as a public bank of wavelets.

    Its blocks have the order of a scattering transform: wavelets, absolute value, average, and a
    norm within the record, one orientation at a time. All weights are learnt. A student of public
    pictures alone: its later norms are over the batch.
    """
    refuse_small(shape, 4)
    channels, height, width = shape
    first = nn.Conv2d(channels, 3 * ORIENTATIONS, 7, padding=3, bias=False)
    with torch.no_grad():
        first.weight /= _length(first.weight)
        for phase, waves in enumerate(morlet_bank()):
            kept = waves[..., 1:-1, 1:-1]
            first.weight[phase::3] = kept / _length(kept) / channels
    return _sequence(
        conv1=nn.Sequential(
            first, Absolute(), nn.AvgPool2d(2), nn.GroupNorm(ORIENTATIONS, 3 * ORIENTATIONS)
        ),
        conv2=nn.Sequential(
            nn.Conv2d(3 * ORIENTATIONS, 48, 3, padding=1, bias=False),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.AvgPool2d(2),
        ),
        conv3=_batch_normed_convolution(48, 64, pooled=False),
        flat=nn.Flatten(),
        classes=nn.Linear(64 * (height // 4) * (width // 4), classes),
    )


def resnet_small(shape: Shape, classes: int) -> nn.Sequential:
    """Three stages of two residual blocks, 16, 32 and 64 wide, with GroupNorm and ReLU."""
    refuse_small(shape, 4)
    return _sequence(
        stem=nn.Sequential(
            nn.Conv2d(shape[0], 16, 3, padding=1, bias=False), nn.GroupNorm(8, 16), nn.ReLU()
        ),
        stage1a=Residual(16, 16),
        stage1b=Residual(16, 16),
        stage2a=Residual(16, 32, stride=2),
        stage2b=Residual(32, 32),
        stage3a=Residual(32, 64, stride=2),
        stage3b=Residual(64, 64),
        average=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        classes=nn.Linear(64, classes),
    )


def tanh_cnn(shape: Shape, classes: int) -> nn.Sequential:
    """Two wide-stepped convolutions with tanh, whose bounded activations suit DP-SGD."""
    refuse_small(shape, 14)
    channels, height, width = shape
    cells = math.prod(((side // 2 - 1) - 4) // 2 for side in (height, width))
    return _sequence(
        conv1=nn.Sequential(nn.Conv2d(channels, 16, 8, stride=2, padding=3), nn.Tanh()),
        pool1=nn.MaxPool2d(2, stride=1),
        conv2=nn.Sequential(nn.Conv2d(16, 32, 4, stride=2), nn.Tanh()),
        pool2=nn.MaxPool2d(2, stride=1),
        flat=nn.Flatten(),
        hidden=nn.Sequential(nn.Linear(32 * cells, 32), nn.Tanh()),
        classes=nn.Linear(32, classes),
    )


class Absolute(nn.Module):
    """The absolute value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs()


class Residual(nn.Module):
    """Two convolutions beside a short cut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(8, after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.GroupNorm(8, after),
        )
        self.short_cut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.short_cut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.GroupNorm(8, after)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.main(x) + self.short_cut(x))


def _sequence(**blocks: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(blocks))


def _convolution(before: int, after: int, size: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, size, padding=size // 2),
        nn.GroupNorm(8, after),
        nn.LeakyReLU(0.1),
    )


def _pooled_convolution(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.ReLU(), nn.MaxPool2d(2)
    )


def _batch_normed_convolution(before: int, after: int, *, pooled: bool = True) -> nn.Sequential:
    pool = [nn.MaxPool2d(2)] if pooled else []
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), *pool, nn.ReLU()
    )


def _length(filters: torch.Tensor) -> torch.Tensor:
    lengths: torch.Tensor = filters.flatten(1).norm(dim=1)
    return lengths[:, None, None, None]


ZOO: Mapping[str, Callable[[Shape, int], nn.Module]] = {
    "linear": linear,
    "mlp": mlp,
    "conv-large": partial(conv, (128, 256, 512, 256, 128)),
    "conv-middle": partial(conv, (96, 192, 192, 192, 192)),
    "conv-small": partial(conv, (32, 64, 64, 32, 32)),
    "student-10k": partial(student, (8, 24, 24)),
    "student-50k": partial(student, (24, 56, 64)),
    "mobile-10k": partial(student, (8, 24, 24), over_batch=True),
    "mobile-50k": partial(student, (24, 56, 64), over_batch=True),
    "deep-10k": deep_student,
    "wavelet-70k": wavelet_student,
    "resnet-small": resnet_small,
    "tanh-cnn": tanh_cnn,
    "mnist-net": mnist_net,
    "cifar-net": cifar_net,
    "svhn-net": svhn_net,
}
"""The networks a recipe can name: each is given (channels, height, width) and how many classes."""
