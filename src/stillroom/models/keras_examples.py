"""The networks that PG, PGP and PGC are evaluated on, after the Keras examples (Mao et al. 2021).

MNIST-Net is `mnist_cnn`, CIFAR-Net is `cifar10_cnn`, and SVHN-Net is the latter with half of
everything: the paper states 1,199,882, 1,250,858 and 314,394 parameters, which fix their layers.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from stillroom.errors import BadInput


def mnist_net(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two convolutions without padding, a pool, and a dense layer of 128, with dropout."""
    refuse_small(shape, 8)
    channels, height, width = shape
    left = ((height - 4) // 2) * ((width - 4) // 2)
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Sequential(nn.Conv2d(channels, 32, 3), nn.ReLU()),
            conv2=nn.Sequential(nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
            flat=nn.Sequential(nn.Dropout(0.25), nn.Flatten()),
            dense=nn.Sequential(nn.Linear(64 * left, 128), nn.ReLU(), nn.Dropout(0.5)),
            classes=nn.Linear(128, classes),
        )
    )


def cifar_net(shape: tuple[int, ...], classes: int, width: int = 32) -> nn.Sequential:
    """Two blocks of a padded convolution, one without padding and a pool; dense layers; dropout."""
    refuse_small(shape, 12)
    channels, *sides = shape
    for _ in range(2):
        sides = [(side - 2) // 2 for side in sides]
    flat = 2 * width * sides[0] * sides[1]
    return nn.Sequential(
        OrderedDict(
            block1=_block(channels, width),
            block2=_block(width, 2 * width),
            flat=nn.Flatten(),
            dense=nn.Sequential(nn.Linear(flat, 16 * width), nn.ReLU(), nn.Dropout(0.5)),
            classes=nn.Linear(16 * width, classes),
        )
    )


def svhn_net(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """CIFAR-Net with half of everything."""
    return cifar_net(shape, classes, width=16)


def _block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(after, after, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
    )


def refuse_small(shape: tuple[int, ...], least: int) -> None:
    """Refuse pictures that would vanish in a network.

    Raises:
        BadInput: they are smaller than that.
    """
    if len(shape) != 3 or min(shape[1:]) < least:
        raise BadInput(
            f"this network needs pictures of at least {least}x{least}, got {tuple(shape)}",
            where="model",
            why="smaller ones vanish in its pools",
            remedy="use the model mlp or linear, or larger pictures",
        )
