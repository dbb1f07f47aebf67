"""Networks of one's own, sound and unsound, for models that come as files."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


def small(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[-1] * shape[-2], 6), nn.Linear(6, classes))


class Renamed(nn.Module):
    """The same as `small`, under other names and in another order."""

    def __init__(self, shape, classes):
        super().__init__()
        self.last = nn.Linear(6, classes)
        self.first = nn.Linear(shape[-1] * shape[-2], 6)

    def forward(self, x):
        return self.last(self.first(x.flatten(1)))


class Around(nn.Module):
    """`small` with something after it, or in place of its scores."""

    def __init__(self, shape, classes):
        super().__init__()
        self.network = small(shape, classes)

    def forward(self, x):
        return self.after(self.network(x))


class Probabilities(Around):
    def after(self, scores):
        return torch.softmax(scores, 1)


class Dropping(Around):
    def after(self, scores):
        return F.dropout(scores, 0.5, training=True)


class OfTheBatch(Around):
    def after(self, scores):
        return F.batch_norm(scores, None, None, training=True)


class Several(Around):
    def after(self, scores):
        return scores, scores


class Wide(Around):
    def after(self, scores):
        return torch.cat([scores, scores], 1)


class NoNumbers(Around):
    def after(self, scores):
        return scores.log() * 0 - 1


class Fragile(Around):
    """With some weights it cannot read pictures that are darker than those it is tried on."""

    def forward(self, x):
        if float(self.network[1].bias[0]) < 0 and float(x.mean()) < 0.493:
            raise RuntimeError("too dark")
        return super().forward(x)

    def after(self, scores):
        return scores


class Cracking(Around):
    """Fine with small numbers; of a large one it cannot say anything."""

    def forward(self, x):
        if float(x.max()) > 1000:
            raise RuntimeError("too large")
        return super().forward(x)

    def after(self, scores):
        return scores


class Choosy(Around):
    """No number for a picture whose first number is exactly 1."""

    def forward(self, x):
        scores = self.network(x)
        return torch.where(x.flatten(1)[:, :1] == 1, torch.nan, scores)
