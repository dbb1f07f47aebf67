"""Recipes over digits of 16x16, and networks small enough for a test."""

from __future__ import annotations

import numpy as np

from features.enlarged import pictures
from stillroom.gate import Budget, Ledger

BUDGET = Budget(8.0, 1e-5)

NETWORKS = """
import torch
from torch import nn

def tiny(shape, classes):
    return nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 12), nn.Tanh(),
                         nn.Linear(12, classes))

def steep(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(256, 8), nn.Linear(8, 8), nn.Linear(8, 8),
                         nn.Linear(8, classes))

def wide(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(256, classes + 1))

def normed(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(256), nn.Linear(256, classes))

class Ordered(nn.Module):
    def forward(self, x):
        return x.sort(1)[0]

def ordered(shape, classes):
    return nn.Sequential(nn.Flatten(), Ordered(), nn.Linear(256, classes))
"""

SKETCH = """
[sketch]
mu = "1/5"
coefficients = 64
directions = 8
centres = 2
lloyd = 1
radius = 12
residual = 8
samples = 150
"""

RECIPE = """
[data]
source = "scans.npz"
classes = 10
test_is_public = true
declared_size = 1400
[engine]
kind = "serial"
[features]
full_scale = 16
{features}
[training]
rate = 1
{training}
[privacy]
epsilon = {epsilon}
{privacy}
"""


def recipe_in(
    folder, *, features="", training="steps = 12", epsilon=1.0, privacy="", more="", records=None
):
    """A recipe beside its records."""
    if not (folder / "scans.npz").exists():
        x, y = pictures(records)
        np.savez(folder / "scans.npz", x=x, y=y)
    file = folder / "recipe.toml"
    parts = {"features": features, "training": training, "epsilon": epsilon, "privacy": privacy}
    file.write_text(RECIPE.format(**parts) + more)
    return file


SCATTERED = 'name = "scattering"\ncomponents = 20\nfitted_on = "sketch"'
NETWORK = 'model = "own_networks:tiny"\nclip = 1\nlearning_rate = 2.0\nsteps = {steps}'


def charged(folder, ledger="ledger.sqlite"):
    """How many blocks were paid for, and how many answers drawn."""
    if not (folder / ledger).exists():
        return 0, 0
    store = Ledger.open(folder / ledger).store
    draws = sum(row.body["count"] for row in store.rows("kind = 'draw'"))
    return len(list(store.rows("kind = 'block'"))), draws


class Cut:
    """Stops a run after a step of its training."""

    def __init__(self, last, of):
        self.last, self.of, self.steps = last, of, []

    def __call__(self, step, steps):
        if steps == self.of:
            self.steps.append(step)
            if step == self.last:
                raise KeyboardInterrupt
