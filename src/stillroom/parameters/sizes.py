"""How many weights a network of the zoo has, told without building it.

A price is known before torch is loaded, and where every weight is drawn by itself it depends on
their number. A test compares these sums with the networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Shape = Sequence[int]


def _convolution(before: int, after: int) -> int:
    return (9 * before + 1) * after


def _dense(before: int, after: int) -> int:
    return (before + 1) * after


def mnist_net(shape: Shape, classes: int) -> int:
    """Two convolutions, a pool and two dense layers.

    >>> mnist_net((1, 28, 28), 10)
    1199882
    """
    channels, height, width = shape
    left = ((height - 4) // 2) * ((width - 4) // 2)
    convolutions = _convolution(channels, 32) + _convolution(32, 64)
    return convolutions + _dense(64 * left, 128) + _dense(128, classes)


def cifar_net(shape: Shape, classes: int, width: int = 32) -> int:
    """Two blocks of two convolutions and a pool, and two dense layers.

    >>> cifar_net((3, 32, 32), 10), cifar_net((3, 32, 32), 10, width=16)
    (1250858, 314394)
    """
    channels, *sides = shape
    for _ in range(2):
        sides = [(side - 2) // 2 for side in sides]
    convolutions = sum(
        _convolution(before, after)
        for before, after in ((channels, width), (width, width), (width, 2 * width))
    )
    convolutions += _convolution(2 * width, 2 * width)
    flat = 2 * width * sides[0] * sides[1]
    return convolutions + _dense(flat, 16 * width) + _dense(16 * width, classes)


def svhn_net(shape: Shape, classes: int) -> int:
    """CIFAR-Net with half of everything."""
    return cifar_net(shape, classes, width=16)


SIZES: dict[str, Callable[[Shape, int], int]] = {
    "mnist-net": mnist_net,
    "cifar-net": cifar_net,
    "svhn-net": svhn_net,
}
"""By the network's name in the zoo; each is given (channels, height, width) and the classes."""
