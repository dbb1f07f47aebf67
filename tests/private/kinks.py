"""Records within one float of a kink of a network: a ReLU's corner, or a tie of a max pool."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ROWS = 64


def sides(network, x):
    """Which side of each kink each record is on, computed in chunks as the product computes them.

    One row per record: whether each ReLU is open, and which input each max pool takes.
    """
    found = []

    def look(layer, given, _):
        if isinstance(layer, nn.MaxPool2d):
            size, stride, padding = layer.kernel_size, layer.stride, layer.padding
            side = F.max_pool2d(given[0], size, stride, padding, return_indices=True)[1]
        else:
            side = (given[0] > 0).long()
        found.append(side.flatten(1))

    kinds = (nn.ReLU, nn.LeakyReLU, nn.MaxPool2d)
    hooks = [m.register_forward_hook(look) for m in network.modules() if isinstance(m, kinds)]
    rows = []
    for part in x.split(ROWS):
        found.clear()
        with torch.no_grad():
            network(torch.cat([part, part.new_zeros((ROWS - len(part), *x.shape[1:]))]))
        rows.append(
            torch.cat([*found, torch.zeros(ROWS, 0, dtype=torch.int64)], dim=1)[: len(part)]
        )
    for hook in hooks:
        hook.remove()
    return torch.cat(rows)


def at_kinks(network, shape, size, seed=0):
    """Pairs of records, one on each side of a kink, and no float between them.

    By bisection of the way between two records. Each record has a kink of its own, one of the later
    layers'; a network without kinks gets the records it would start from.
    """
    rng = np.random.default_rng(seed)
    here, there = torch.from_numpy(rng.uniform(size=(2, size, *shape)).astype(np.float32))
    start, end = sides(network, here), sides(network, there)
    if not start.shape[1]:
        return here, there
    kinks = torch.empty(size, 1, dtype=torch.int64)
    for i in range(size):
        between = torch.nonzero(start[i] != end[i])[:, 0]
        kinks[i] = between[-1 - i % (1 + len(between) // 2)]
    side = start.gather(1, kinks)
    for _ in range(40):
        middle = (here + there) / 2
        if torch.equal(torch.where(middle == there, here, middle), here):
            break
        same = sides(network, middle).gather(1, kinks) == side
        same = same.reshape(-1, *[1] * len(shape))
        here, there = torch.where(same, middle, here), torch.where(same, there, middle)
    assert not torch.equal(sides(network, here), sides(network, there))
    return here, there
