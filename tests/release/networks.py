"""Small networks to release."""

from __future__ import annotations

import numpy as np
from torch import nn

from stillroom.models import AsPictures
from stillroom.randomness import integers, seeded_torch
from stillroom.release.torch_model import TorchModel

CLASSES = ("one", "two", "three")


def network(shape, outputs=3):
    """A few hundred parameters, and every layer whose form depends on training or on the batch."""
    pictures = AsPictures(shape, 16)
    with seeded_torch(3, "network"):
        layers = nn.Sequential(
            pictures,
            nn.Conv2d(pictures.given[0], 6, 3, padding=1),
            nn.GroupNorm(2, 6),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 4, 3),
            nn.BatchNorm2d(4),
            nn.Dropout(),
            nn.Flatten(),
            nn.Linear(16, outputs),
        )
    # Running averages that differ from those of any batch.
    layers[6].running_mean.fill_(0.1)
    layers[6].running_var.fill_(0.7)
    return layers


def cnn(shape, outputs=3):
    return TorchModel(network(shape, outputs), shape, "network of two convolutions")


def records(shape, count=100):
    return integers(1, "records", size=(count, *shape), below=17).astype(np.float32)
