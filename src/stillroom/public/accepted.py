"""Samples of a mixture that a sanitised judge agrees with; all of it is post-processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stillroom.public.mixture import Mixture
from stillroom.randomness import order
from stillroom.vocabulary import Integers

Pictures = npt.NDArray[np.float32]
Judge = Callable[[Pictures, Integers], npt.NDArray[np.bool_]]

ROUNDS = 20
"""A class of which the judge takes hardly a picture is filled up with what was drawn last."""


def accepted_samples(
    mixture: Mixture, seed: int, count: int, judge: Judge, **retouching: Any
) -> tuple[Pictures, Integers]:
    """Pictures in [0, 1] that the judge accepts, and their classes, all classes alike.

    Guarantee: free, where the judge is made of sanitised values and public numbers only.

    Args:
        mixture: what is drawn from.
        seed: of the draws; the same one gives the same pictures.
        count: how many.
        judge: from pictures and the classes they were drawn for to whether each is kept.
        retouching: as `Mixture.sample` takes it.

    >>> from stillroom.features.basis import Basis
    >>> blank = Mixture(np.ones((2, 1)), np.zeros((2, 1, 4)), np.eye(4), np.ones((2, 4, 4)),
    ...                 Basis(5, 5, 4))
    >>> bright = lambda pictures, classes: pictures.mean(axis=(1, 2)) > 0.1
    >>> pictures, classes = accepted_samples(blank, 7, 10, bright)
    >>> bool(pictures.mean(axis=(1, 2)).min() > 0.1), np.bincount(classes).tolist()
    (True, [5, 5])
    """
    own = len(mixture.weights)
    kept: list[Pictures] = []
    labels: list[Integers] = []
    missing = count // own + (np.arange(own) < count % own)
    for number in range(ROUNDS):
        if not missing.any():
            break
        drawn = own * (2 * int(missing.max()) + 50)
        pictures, classes = mixture.sample(seed + number, drawn, **retouching)
        agreed = judge(pictures, classes) | (number == ROUNDS - 1)
        for which in np.flatnonzero(missing):
            chosen = np.flatnonzero(agreed & (classes == which))[: missing[which]]
            kept.append(pictures[chosen])
            labels.append(classes[chosen])
            missing[which] -= len(chosen)
    if not kept:
        return mixture.sample(seed, 0)
    mixed = order(seed, "accepted", size=sum(map(len, labels)))
    return np.concatenate(kept)[mixed], np.concatenate(labels)[mixed]
